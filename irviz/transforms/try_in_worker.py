"""Try a transform in a separate process, which it may crash."""

from __future__ import annotations

from dataclasses import dataclass

import cloudpickle
from tvm import ir

import irviz.ir.module_json  # noqa: F401 - modules in answers
from irviz.errors import NotFoundError, TransformError
from irviz.runtime.local.module_bytes import pack_module, unpack_module
from irviz.transforms.change_summary import ModuleChanges, compare_modules
from irviz.transforms.transform import Apply
from irviz.worker.shared_arrays import UnsharedError
from irviz.worker.stderr_capture import captured_stderr
from irviz.worker.supervisor import TRIES, WorkerError

SECONDS = 120.0
"""The time limit for a transform, if no shorter one is given."""


@dataclass(frozen=True)
class TrialOutcome:
    """The outcome of a trial.

    Attributes:
        stderr: What TVM wrote to standard error.
        is_deadly: It crashed the worker or timed out, and must not be run in this process.
        module: The new module, if it was to be kept.
    """

    error: str = ""
    stderr: str = ""
    change: ModuleChanges | None = None
    is_deadly: bool = False
    module: ir.IRModule | None = None


def try_transform(
    mod: ir.IRModule,
    transform: Apply,
    *,
    look: bool = False,
    keep: bool = False,
    seconds: float = SECONDS,
) -> TrialOutcome:
    """Apply a transform in the worker; with `look` compare the modules, with `keep` return the new.

    A transform that cannot be pickled is not tried, and its outcome is empty.
    """
    try:
        sent = cloudpickle.dumps((pack_module(mod), transform))
    except Exception:  # it cannot be pickled, such as a pass with a callback
        return TrialOutcome()
    try:
        try:
            return TRIES.call(_try_in_worker, sent, look, keep, seconds=seconds)
        except UnsharedError:  # a system that hides the memory of processes
            sent = cloudpickle.dumps((pack_module(mod, whole=True), transform))
            return TRIES.call(_try_in_worker, sent, look, keep, seconds=seconds)
    except WorkerError as failure:
        return TrialOutcome(error=f"{type(failure).__name__}: {failure}", is_deadly=True)


def _try_in_worker(sent: bytes, look: bool, keep: bool) -> TrialOutcome:
    """Apply the transform. Runs in the worker."""
    try:
        packed, transform = cloudpickle.loads(sent)
        mod = unpack_module(packed)
    except UnsharedError:
        raise
    except Exception:  # it refers to objects that only the other process has
        return TrialOutcome()
    error, after = "", None
    with captured_stderr() as captured:
        try:
            after = transform(mod)
        except (TransformError, NotFoundError) as refusal:
            error = str(refusal)
        except Exception as failure:  # TVM raises what its C++ side threw, of any class
            error = f"{type(failure).__name__}: {failure}".strip()
    change = compare_modules(mod, after) if look and after is not None else None
    return TrialOutcome(error, captured.text, change, module=after if keep else None)
