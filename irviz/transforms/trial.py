"""Try a transform in the worker: whether it crashes, what TVM prints, what would change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import cloudpickle
from tvm import ir

from irviz.errors import TransformError
from irviz.ir.functions import NoFunctionError
from irviz.transforms.module_changes import ModuleChanges, compare_modules
from irviz.worker.stderr_capture import captured_stderr
from irviz.worker.supervisor import TRIES, WorkerError

Apply = Callable[[ir.IRModule], ir.IRModule]

SECONDS = 120.0
"""The time limit for a transform."""


@dataclass(frozen=True)
class TrialOutcome:
    """The outcome of a trial.

    Attributes:
        stderr: What TVM wrote to standard error.
        is_refused: The transform refused its arguments or the module.
        is_deadly: It crashed the worker or timed out, and must not be run in this process.
    """

    error: str = ""
    stderr: str = ""
    change: ModuleChanges | None = None
    is_refused: bool = False
    is_deadly: bool = False


def try_transform(mod: ir.IRModule, transform: Apply, *, look: bool = False) -> TrialOutcome:
    """Apply a transform in the worker; with `look` also compare the modules.

    A transform that cannot be pickled is not tried, and its outcome is empty.
    """
    try:
        sent = cloudpickle.dumps((mod, transform))
    except Exception:  # it cannot be pickled, such as a pass with a callback
        return TrialOutcome()
    try:
        return TRIES.call(_try_in_worker, sent, look, seconds=SECONDS)
    except WorkerError as failure:
        return TrialOutcome(error=f"{type(failure).__name__}: {failure}", is_deadly=True)


def _try_in_worker(sent: bytes, look: bool) -> TrialOutcome:
    """Apply the transform; this runs in the worker."""
    try:
        mod, transform = cloudpickle.loads(sent)
    except Exception:  # it refers to objects that only the other process has
        return TrialOutcome()
    error, after, is_refused = "", None, False
    with captured_stderr() as captured:
        try:
            after = transform(mod)
        except NoFunctionError as failure:
            error, is_refused = str(failure), True
        except Exception as failure:  # TVM raises what its C++ side threw, of any class
            # a subclass has more than a message, and is raised again where the transform is applied
            is_refused = type(failure) is TransformError
            error = str(failure) if is_refused else f"{type(failure).__name__}: {failure}".strip()
    change = compare_modules(mod, after) if look and after is not None else None
    return TrialOutcome(error, captured.text, change, is_refused)
