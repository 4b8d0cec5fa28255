"""The passes that can be applied as they are, found in `tvm.relax.transform`."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import tvm
from tvm import relax

from irviz.transforms.stage import TransformError, TVMPass


@dataclass(frozen=True)
class Entry:
    """A pass of the catalog: its name and the first line TVM says of it."""

    name: str
    summary: str
    make: Callable[[], tvm.ir.transform.Pass]


@functools.cache
def catalog() -> tuple[Entry, ...]:
    """Return the passes of `relax.transform` that need no arguments, by name."""
    entries = []
    for name in sorted(vars(relax.transform)):
        member = getattr(relax.transform, name)
        if name[0].isupper() and callable(member) and _makes_pass(member):
            summary = (inspect.getdoc(member) or "").strip().partition("\n")[0]
            entries.append(Entry(name, summary, member))
    return tuple(entries)


def named_pass(name: str) -> TVMPass:
    """Return the pass of this name, with its defaults; raise TransformError when there is none."""
    for entry in catalog():
        if entry.name == name:
            return TVMPass(entry.make())
    raise TransformError(
        f"the catalog has no pass {name!r}; irviz lists the passes of tvm.relax.transform "
        "that need no arguments: give one of these, or a pass object"
    )


def _makes_pass(member: Callable[[], object]) -> bool:
    required = [
        parameter
        for parameter in inspect.signature(member).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if required:
        return False
    with warnings.catch_warnings(record=True) as deprecations:
        warnings.simplefilter("always")
        try:
            made = member()
        except tvm.error.InternalError:  # it wants a target around it
            return False
    return isinstance(made, tvm.ir.transform.Pass) and not deprecations
