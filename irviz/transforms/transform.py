"""The interface of transforms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import UnionType
from typing import Any, ClassVar

import tvm
from tvm import ir

from irviz.transforms.python_script import PythonScript, UnwritableError

Apply = Callable[[ir.IRModule], ir.IRModule]


@dataclass(frozen=True)
class SavedAs:
    """What a session file calls a kind of transform, and the fields that describe one there.

    Without a kind, the file has only the label.
    """

    kind: str = ""
    fields: Mapping[str, type | UnionType] = field(default_factory=dict)


class Transform(ABC):
    """A function from module to module that has a label and can be written as Python."""

    saved_as: ClassVar = SavedAs()

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
        fields, has = self.saved_as.fields, vars(self)
        is_all = all(isinstance(has[name], expected) for name, expected in fields.items())
        is_all = is_all and all(has[name] is None for name in has.keys() - fields.keys())
        return {name: has[name] for name in fields} if is_all else None

    @classmethod
    def restored(cls, values: Mapping[str, Any]) -> Transform:
        """Return the transform with these saved values, each of its type, without applying it.

        Raises TransformError for values that it does not take: they come from a file.
        """
        return cls(**values)

    def write_failing(self, script: PythonScript) -> None:  # noqa: ARG002 - passes write
        """Write the statements of a failing transform; raise UnwritableError if impossible."""
        raise UnwritableError(f"{self.label} has no statements of TVM alone")
