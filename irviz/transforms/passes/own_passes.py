"""The user's own passes and rewrites, which the catalog lists beside TVM's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar, overload

from tvm import ir

from irviz.transforms.passes.carried import Carried
from irviz.transforms.passes.docstring import first_sentence
from irviz.transforms.passes.entry import Entry, code_only
from irviz.transforms.passes.parameter import Parameter, ParameterKind, read_parameters
from irviz.transforms.passes.rewrite import Build, Pattern, Rewrite, Rewriter

Make = TypeVar("Make", bound=Callable[..., object])

_passes: dict[str, Callable[..., object] | Rewrite] = {}


def register_pass(name: str) -> Callable[[Make], Make]:
    """List the decorated function in the catalog: it returns a `tvm.transform.Pass`.

    Its parameters are read from its signature, and what the catalog says of it from its
    docstring. Registering a name again replaces the pass. Raises ValueError for an empty name.
    """
    _check_name(name)

    def decorate(make: Make) -> Make:
        _passes[name] = make
        return make

    return decorate


@overload
def register_rewrite(name: str) -> Callable[[Build], Build]: ...


@overload
def register_rewrite(
    name: str, pattern: Pattern | ir.IRModule | Build, rewriter: Rewriter | None = None
) -> Rewrite: ...


def register_rewrite(
    name: str,
    pattern: Pattern | ir.IRModule | Build | None = None,
    rewriter: Rewriter | None = None,
) -> Rewrite | Callable[[Build], Build]:
    """List a rewrite of particular operators in the catalog, and return it.

    `pattern` and `rewriter` are as in `Rewrite`. Without a pattern this decorates the function
    that returns the two. Raises ValueError for an empty name, TransformError for no pattern.
    """
    _check_name(name)
    if pattern is None:

        def decorate(build: Build) -> Build:
            register_rewrite(name, build)
            return build

        return decorate
    rewrite = Rewrite(name, pattern, rewriter)
    _passes[name] = rewrite
    return rewrite


def own_entries() -> Iterator[Entry]:
    """Yield the entries of what is registered by now."""
    for name, own in _passes.items():
        yield own_entry(name, own)


def own_entry(
    name: str, own: Callable[..., object] | Rewrite, namespace: str = "yours", group: str = "yours"
) -> Entry:
    """Return the entry of a function that makes a pass, or of a rewrite."""
    if isinstance(own, Rewrite):
        parameters: tuple[Parameter, ...] = (_WHERE,)
        build = own.pattern.function if isinstance(own.pattern, Carried) else None
        make: Callable[..., object] = _RewriteIn(own)
        summary = first_sentence(build) if build else "Rewrite what a pattern matches."
    else:
        make = own.function if isinstance(own, Carried) else own
        parameters, summary = read_parameters(make), first_sentence(make)
    words = code_only(name, parameters, f"{getattr(make, '__name__', name)}(")
    return Entry(name, namespace, group, summary, parameters, make, code_only=words, own=own)


_WHERE = Parameter(
    "function", ParameterKind.FUNCTION, summary="Where it rewrites; everywhere if none is given."
)


@dataclass(frozen=True)
class _RewriteIn:
    """Makes a rewrite that is for one function, or for all."""

    rewrite: Rewrite

    def __call__(self, function: str | None = None) -> Rewrite:
        own = self.rewrite
        return Rewrite(own.name, own.pattern, own.rewriter, function or "")


def _check_name(name: str) -> None:
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"a pass needs a name to be found by, not {name!r}: give some words")
