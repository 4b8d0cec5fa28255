"""The interface of transforms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from types import MappingProxyType, UnionType
from typing import Any, ClassVar

import tvm
from tvm import ir

from irviz.transforms.python_script import PythonScript, UnwritableError

Apply = Callable[[ir.IRModule], ir.IRModule]


class Transform(ABC):
    """A function from module to module that has a label and can be written as Python.

    `kind` is what a session file calls such a transform, "" where it has the label alone; `saved`
    has the fields that describe one there, with the types of their values.
    """

    kind: ClassVar[str] = ""
    saved: ClassVar[Mapping[str, type | UnionType]] = MappingProxyType({})

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

    def saved_values(self) -> Mapping[str, object] | None:
        """Return the values of the saved fields, None if these do not say all."""
        others = vars(self).keys() - self.saved.keys()
        if not self.kind or any(getattr(self, name) is not None for name in others):
            return None
        return {name: getattr(self, name) for name in self.saved}

    @classmethod
    def restored(cls, values: Mapping[str, Any]) -> Transform:
        """Return the transform with these saved values, each of its type, without applying it.

        Raises TransformError for values that it does not take: they come from a file.
        """
        return cls(**values)

    def write_failing(self, script: PythonScript) -> None:  # noqa: ARG002 - passes write
        """Write the statements of a failing transform; raise UnwritableError if impossible."""
        raise UnwritableError(f"{self.label} has no statements of TVM alone")
