"""An entry of the catalog: a pass, its parameters, and the Python that creates it."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass

from irviz.errors import TransformError
from irviz.runtime.local.pickle_by_value import PortableFunction
from irviz.transforms.passes.parameters import ParameterKind, PassParameter
from irviz.transforms.passes.rewrite import Rewrite


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
        python: The expression that creates the pass, up to its arguments.
        is_measured: Whether it measures, so that it gives another module each time.
        own: The user's function or rewrite, where it is not a pass of TVM.
    """

    name: str
    namespace: str
    group: str
    summary: str
    parameters: tuple[PassParameter, ...]
    make: Callable[..., object]
    python: str
    needs_target: TargetUse = TargetUse.NONE
    is_measured: bool = False
    own: PortableFunction | Rewrite | None = None

    @property
    def full_name(self) -> str:
        """The unique name, such as "tirx.StmtSimplify"."""
        return f"{self.namespace}.{self.name}"

    @property
    def label(self) -> str:
        """The name in stage labels, without the namespace for Relax's and the user's passes."""
        return self.name if self.namespace in ("relax", "yours") else self.full_name

    @property
    def code_only(self) -> str:
        """How to apply it from code, "" where a form can give all its arguments."""
        required = [one for one in self.parameters if one.is_required]
        names = " and ".join(one.name for one in required if one.kind is ParameterKind.CODE)
        if not names:
            return ""
        return (
            f"{self.name} takes {names}, which a form cannot give. From code: "
            f"session.apply({self.python}{', '.join(one.name for one in required)}))"
        )

    def parameter(self, name: str) -> PassParameter:
        """Return a parameter by its name; raise TransformError with the names there are."""
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        there = ", ".join(repr(parameter.name) for parameter in self.parameters)
        advice = f"its parameters are {there}: give one of these" if there else "it takes none"
        raise TransformError(f"{self.label} has no parameter {name!r}; {advice}")
