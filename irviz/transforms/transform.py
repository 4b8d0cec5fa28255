"""The interface of transforms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping

import tvm
from tvm import ir

from irviz.transforms.python_script import PythonScript, UnwritableError

Apply = Callable[[ir.IRModule], ir.IRModule]


class Transform(ABC):
    """A function from module to module that has a label and can be written as Python."""

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
        """What the worker tries first; None if everything that can fail is checked before."""
        return None

    @property
    def evaluates_code(self) -> bool:
        """Whether it runs code of the module, as constant folding and tuning do."""
        return False

    @abstractmethod
    def __call__(self, mod: ir.IRModule) -> ir.IRModule:
        """Return the new module, leaving the old one unchanged."""

    @abstractmethod
    def write(self, script: PythonScript, before: ir.IRModule, after: ir.IRModule) -> None:
        """Write statements that turn `before` into `after`; raise UnwritableError if impossible."""

    def write_failing(self, script: PythonScript) -> None:  # noqa: ARG002 - passes write
        """Write the statements of a failing transform; raise UnwritableError if impossible."""
        raise UnwritableError(f"{self.label} has no statements of TVM alone")
