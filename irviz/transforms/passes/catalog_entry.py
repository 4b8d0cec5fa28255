"""An entry of the catalog: a pass, its parameters, and the Python that creates it."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from irviz.errors import TransformError
from irviz.transforms.passes.parameters import ParameterKind, PassParameter


class TargetUse(enum.Enum):
    """How a pass gets a target that is not one of its own parameters."""

    NONE = "it needs none"
    AROUND = "it is applied under the target"
    ANNOTATED = "PrimFuncs without a target are annotated with it first"


@dataclass(frozen=True)
class CatalogEntry:
    """A pass of the catalog.

    Attributes:
        make: Creates the pass, or a transform of irviz in its place.
        python: The expression that creates the pass, up to its arguments; `imports` is what it
            needs.
        code_only: How to apply it from code, where a form cannot give all its arguments.
        is_measured: Whether it measures, so that it gives another module each time.
        own: The user's function or rewrite, where it is not a pass of TVM.
    """

    name: str
    namespace: str
    group: str
    summary: str
    parameters: tuple[PassParameter, ...]
    make: Callable[..., object]
    python: str = ""
    imports: tuple[str, ...] = ()
    needs_target: TargetUse = TargetUse.NONE
    code_only: str = ""
    is_measured: bool = False
    own: Callable[..., object] | None = None

    @property
    def full_name(self) -> str:
        """The unique name, such as "tirx.StmtSimplify"."""
        return f"{self.namespace}.{self.name}"

    @property
    def label(self) -> str:
        """The name in stage labels, without the namespace for Relax's and the user's passes."""
        return self.name if self.namespace in ("relax", "yours") else self.full_name

    @property
    def is_plain(self) -> bool:
        """Whether it can be applied without arguments."""
        return not any(parameter.is_required for parameter in self.parameters)

    @property
    def function_parameter(self) -> str:
        """The parameter that names the function to apply the pass to, or ""."""
        for parameter in self.parameters:
            if parameter.kind is ParameterKind.FUNCTION:
                return parameter.name
        return ""

    def parameter(self, name: str) -> PassParameter:
        """Return a parameter by its name; raise TransformError with the names there are."""
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        there = ", ".join(repr(parameter.name) for parameter in self.parameters)
        advice = f"its parameters are {there}: give one of these" if there else "it takes none"
        raise TransformError(f"{self.label} has no parameter {name!r}; {advice}")

    def expression(self, arguments: Mapping[str, str]) -> str:
        """Return the expression that creates the pass; the arguments are expressions by name."""
        given = ", ".join(f"{name}={text}" for name, text in arguments.items())
        return f"{self.python}{given}".removesuffix(", ") + ")"


def code_only(name: str, parameters: tuple[PassParameter, ...], python: str) -> str:
    """Return how to apply from code a pass that a form cannot give all arguments, else ""."""
    needed = [one for one in parameters if one.is_required and one.kind is ParameterKind.CODE]
    if not needed:
        return ""
    names = " and ".join(one.name for one in needed)
    required = ", ".join(one.name for one in parameters if one.is_required)
    return (
        f"{name} takes {names}, which a form cannot give. From code: "
        f"session.apply({python}{required}))"
    )
