"""What every transform can do, whatever it does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping

import tvm
from tvm import ir

from irviz.transforms.python_script import PythonScript, UnwritableError

Apply = Callable[[ir.IRModule], ir.IRModule]


class Transform(ABC):
    """A function from a module to a module that has a label and can be written as Python."""

    @property
    @abstractmethod
    def label(self) -> str:
        """The label of the stage that it makes."""

    @property
    def constant_names(self) -> Mapping[tvm.runtime.Tensor, str]:
        """The names of the tensors that it puts into the module."""
        return {}

    @property
    def tried_as(self) -> Apply | None:
        """What the worker tries first; None where all that can go wrong is checked before."""
        return None

    @property
    def evaluates_code(self) -> bool:
        """Whether it runs code of the module, as constant folding and tuning do."""
        return False

    @abstractmethod
    def __call__(self, mod: ir.IRModule) -> ir.IRModule:
        """Return the new module and leave the old one as it is."""

    @abstractmethod
    def write(self, script: PythonScript, before: ir.IRModule, after: ir.IRModule) -> None:
        """Write the statements that make `after` of `before`; raise UnwritableError if none can."""

    def write_failing(self, script: PythonScript) -> None:  # noqa: ARG002 - passes write
        """Write the statements of a transform that fails; raise UnwritableError if none can."""
        raise UnwritableError(f"{self.label} has no statements of TVM alone")
