"""The user's own passes and rewrites, which the catalog lists beside TVM's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeVar, overload

from tvm import ir

from irviz.runtime.local.pickle_by_value import PortableFunction
from irviz.transforms.entry_points import PASSES, load_entry_points
from irviz.transforms.passes.pattern_rewrite import Build, Pattern, Rewrite, Rewriter

Make = TypeVar("Make", bound=Callable[..., object])

_passes: dict[str, PortableFunction | Rewrite] = {}


def register_pass(name: str) -> Callable[[Make], Make]:
    """Add the decorated function, which returns a `tvm.transform.Pass`, to the catalog.

    The catalog takes the pass's parameters from the signature and its summary from the docstring.
    Registering a name again replaces the pass. Raises ValueError for an empty name.
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
    """Add a rewrite of particular operators to the catalog, and return it; see `Rewrite`.

    Without a pattern, this decorates a function that returns a pattern and a rewriter. Raises
    ValueError for an empty name, TransformError if `pattern` is not a pattern.
    """
    _check_name(name)
    if pattern is None:

        def decorate(build: Build) -> Build:
            register_rewrite(name, build)
            return build

        return decorate
    rewrite = _passes[name] = Rewrite(name, pattern, rewriter)
    return rewrite


def registered_passes() -> Mapping[str, PortableFunction | Rewrite]:
    """Return the passes and rewrites registered so far, by name, other packages' too."""
    load_entry_points(PASSES)
    return MappingProxyType(_passes)


def _check_name(name: str) -> None:
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"a pass needs a name, not {name!r}: give one that is not empty")
