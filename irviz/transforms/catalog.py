"""The passes that can be applied as they are, found in `tvm.relax.transform`."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import tvm
from tvm import ir, relax

from irviz.transforms.python import Script
from irviz.transforms.stage import Transform, TransformError


@dataclass(frozen=True)
class Entry:
    """A pass of the catalog: its name and the first line TVM says of it."""

    name: str
    summary: str
    make: Callable[..., tvm.ir.transform.Pass]


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


@dataclass(frozen=True)
class PassCall:
    """A pass of the catalog, called by its name with these arguments."""

    name: str
    arguments: Mapping[str, object] = field(default_factory=dict)
    constant_names: Mapping[tvm.runtime.Tensor, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The pass's name, with its arguments."""
        given = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return f"{self.name}({given})" if given else self.name

    @property
    def tried_as(self) -> Transform:
        """Itself: no pass is known to be harmless."""
        return self

    def __call__(self, mod: ir.IRModule) -> ir.IRModule:
        """Make the pass and run it."""
        return _entry(self.name).make(**self.arguments)(mod)

    def write(self, script: Script, before: ir.IRModule, after: ir.IRModule) -> None:  # noqa: ARG002
        """Write the call."""
        given = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        script.add(
            f"mod = relax.transform.{self.name}({given})(mod)", needs=("from tvm import relax",)
        )


def named_pass(name: str, **arguments: object) -> PassCall:
    """Return the call of the pass of this name; raise TransformError when there is none."""
    return PassCall(_entry(name).name, arguments)


def _entry(name: str) -> Entry:
    for entry in catalog():
        if entry.name == name:
            return entry
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
