"""An entry of the catalog: a pass, what it takes, and how it is written."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from irviz.transforms.passes.parameter import Parameter, ParameterKind
from irviz.transforms.stage import TransformError


class TargetUse(enum.Enum):
    """How a pass comes by a target that is none of its own parameters."""

    NONE = "it needs none"
    AROUND = "it is applied under the target"
    ANNOTATED = "PrimFuncs without a target are annotated with it first"


@dataclass(frozen=True)
class Entry:
    """A pass of the catalog; `make` returns it, or a transform of irviz in its place.

    `python` is the expression that makes it, up to its arguments, and `imports` what that needs.
    `code_only` says how to apply it from code, where a form cannot give all it takes.
    """

    name: str
    namespace: str
    group: str
    summary: str
    parameters: tuple[Parameter, ...]
    make: Callable[..., object]
    python: str = ""
    imports: tuple[str, ...] = ()
    needs_target: TargetUse = TargetUse.NONE
    code_only: str = ""
    is_measured: bool = False
    own: Callable[..., object] | None = None

    @property
    def full_name(self) -> str:
        """The name that no other entry has, such as "tirx.StmtSimplify"."""
        return f"{self.namespace}.{self.name}"

    @property
    def label(self) -> str:
        """The name as stages have it: Relax's passes and the user's without where they are from."""
        return self.name if self.namespace in ("relax", "yours") else self.full_name

    @property
    def is_plain(self) -> bool:
        """Whether it can be applied without any arguments."""
        return not any(parameter.is_required for parameter in self.parameters)

    @property
    def function_parameter(self) -> str:
        """The parameter that names the function that the pass is about, or ""."""
        for parameter in self.parameters:
            if parameter.kind is ParameterKind.FUNCTION:
                return parameter.name
        return ""

    def parameter(self, name: str) -> Parameter:
        """Return a parameter by its name; raise TransformError with those there are."""
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        there = ", ".join(repr(parameter.name) for parameter in self.parameters)
        advice = f"its parameters are {there}: give one of these" if there else "it takes none"
        raise TransformError(f"{self.label} has no parameter {name!r}; {advice}")

    def expression(self, arguments: Mapping[str, str]) -> str:
        """Return the expression that makes the pass with these arguments, written already."""
        given = ", ".join(f"{name}={text}" for name, text in arguments.items())
        return f"{self.python}{given}".removesuffix(", ") + ")"


def code_only(name: str, parameters: tuple[Parameter, ...], python: str) -> str:
    """Say how to apply from code what a form cannot; "" where a form can give all it takes."""
    needed = [one for one in parameters if one.is_required and one.kind is ParameterKind.CODE]
    if not needed:
        return ""
    what = " and ".join(one.name for one in needed)
    required = ", ".join(one.name for one in parameters if one.is_required)
    return (
        f"{name} takes {what}, which a form cannot give. From code: "
        f"session.apply({python}{required}))"
    )
