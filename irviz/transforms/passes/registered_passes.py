"""The user's own passes and rewrites, which the catalog lists beside TVM's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar, overload

from tvm import ir

from irviz.runtime.local.pickle_by_value import PortableFunction
from irviz.transforms.passes.catalog_entry import CatalogEntry
from irviz.transforms.passes.parameters import (
    ParameterKind,
    PassParameter,
    first_sentence,
    read_parameters,
)
from irviz.transforms.passes.rewrite import Build, Pattern, Rewrite, Rewriter

Make = TypeVar("Make", bound=Callable[..., object])

_passes: dict[str, PortableFunction | Rewrite] = {}


def register_pass(name: str) -> Callable[[Make], Make]:
    """List the decorated function, which returns a `tvm.transform.Pass`, in the catalog.

    Its parameters are read from its signature, its summary from its docstring. Registering a
    name again replaces the pass. Raises ValueError for an empty name.
    """
    _check_name(name)

    def decorate(make: Make) -> Make:
        _passes[name] = PortableFunction(make)
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
    """List a rewrite of particular operators in the catalog, and return it; see `Rewrite`.

    Without a pattern this is a decorator for a function that returns pattern and rewriter.
    Raises ValueError for an empty name, TransformError for what is not a pattern.
    """
    _check_name(name)
    if pattern is None:

        def decorate(build: Build) -> Build:
            register_rewrite(name, build)
            return build

        return decorate
    rewrite = _passes[name] = Rewrite(name, pattern, rewriter)
    return rewrite


def registered_entries() -> Iterator[CatalogEntry]:
    """Yield the entries registered so far."""
    for name, own in _passes.items():
        yield user_entry(name, own)


def user_entry(
    name: str, own: PortableFunction | Rewrite, namespace: str = "yours", group: str = "yours"
) -> CatalogEntry:
    """Return the entry of a function that creates a pass, or of a rewrite."""
    make: Callable[..., object]
    parameters: tuple[PassParameter, ...]
    if isinstance(own, Rewrite):
        make, parameters, summary = own.within, (_WHERE,), "Rewrite what a pattern matches."
        if isinstance(own.pattern, PortableFunction):
            summary = first_sentence(own.pattern.function)
    else:
        make = own.function
        parameters, summary = read_parameters(make), first_sentence(make)
    python = f"{getattr(make, '__name__', name)}("
    return CatalogEntry(name, namespace, group, summary, parameters, make, python, own=own)


_WHERE = PassParameter(
    "function", ParameterKind.FUNCTION, summary="The function to rewrite; all functions by default."
)


def _check_name(name: str) -> None:
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"a pass needs a name to be found by, not {name!r}: give some words")
