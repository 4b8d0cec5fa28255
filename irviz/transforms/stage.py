"""A stage: a module, and how it came to be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import tvm
from tvm import ir

from irviz.ir.identity import NoFunctionError
from irviz.transforms.python import Script
from irviz.transforms.trial import attempt
from irviz.worker.noise import caught_noise


class TransformError(ValueError):
    """A transform asked for with arguments that cannot be right; nothing was applied."""


@runtime_checkable
class Transform(Protocol):
    """Anything that makes a module from a module, can say its name and write itself as Python."""

    @property
    def label(self) -> str:
        """The words of the stage it makes."""

    @property
    def constant_names(self) -> Mapping[tvm.runtime.Tensor, str]:
        """The names of the tensors it puts into the module."""

    @property
    def tried_as(self) -> Transform | None:
        """What the worker tries before this is applied here; None for what cannot do harm."""

    def __call__(self, mod: ir.IRModule) -> ir.IRModule:
        """Return the new module; the old one is untouched."""

    def write(self, script: Script, before: ir.IRModule, after: ir.IRModule) -> None:
        """Write the statements that make `after` of `before`; raise UnwritableError if none can."""


@dataclass(frozen=True, eq=False)
class Stage:
    """A module and how it came to be; `error` says why there is no new module.

    `id` counts from "0". A stage with an error keeps the module of its parent. `said` is what
    TVM wrote to standard error meanwhile. A recorded pass has its time in `seconds`, the passes
    around it in `within`, outermost first, and `is_same` where it changed nothing.
    """

    id: str
    module: ir.IRModule
    label: str = "given"
    parent: str | None = None
    transform: Transform | None = None
    error: str = ""
    constant_names: Mapping[tvm.runtime.Tensor, str] = field(default_factory=dict)
    said: str = ""
    seconds: float | None = None
    within: tuple[str, ...] = ()
    is_same: bool = False


def apply(stage: Stage, transform: Transform, new_id: str, *, isolate: bool = True) -> Stage:
    """Return the stage that the transform makes of this one.

    What might end the process is tried in the worker first, unless `isolate` is false; here it
    is applied again, so that variables keep their identity. A pass that fails, or ends the
    worker, makes a stage that carries its error. Raises TransformError when the transform
    refuses its arguments, before anything is applied.
    """
    module, error, said = stage.module, "", ""
    tried = transform.tried_as if isolate else None
    if tried is not None:
        outcome = attempt(stage.module, tried)
        # any other failure may be the worker's own: it lacks the reader's target and functions
        error, said = outcome.error if outcome.is_deadly else "", outcome.said
        if outcome.is_refused:
            raise TransformError(outcome.error)
    if not error:
        with caught_noise() as noise:
            try:
                # some passes write into the very module; a copy shares its functions
                module = transform(stage.module.clone())
            except (TransformError, NoFunctionError):
                raise
            except Exception as failure:  # TVM raises what its C++ side threw, of any class
                error = f"{type(failure).__name__}: {failure}".strip()
        said = noise.text
    return Stage(
        id=new_id,
        module=module,
        label=transform.label,
        parent=stage.id,
        transform=transform,
        error=error,
        constant_names={**stage.constant_names, **transform.constant_names},
        said=said,
    )
