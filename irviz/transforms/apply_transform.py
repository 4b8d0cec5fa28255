"""Apply a transform to a stage, after trying it in the worker."""

from __future__ import annotations

from dataclasses import dataclass

import cloudpickle
from tvm import ir

import irviz.ir.module_json  # noqa: F401 - modules in answers
from irviz.errors import NotFoundError, TransformError
from irviz.runtime.module_bytes import pack_module, unpack_module
from irviz.transforms.change_summary import ModuleChanges, compare_modules
from irviz.transforms.stage import Stage
from irviz.transforms.transform import Apply, Transform
from irviz.worker.captured_output import captured_stderr
from irviz.worker.shared_arrays import UnsharedError
from irviz.worker.supervisor import TRIES, WorkerError

# --- try in worker -----------------------------------------------------------------------------
#
# Try a transform in a separate process, which it may crash.


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


# --- apply transform ------------------------------


def apply_transform(
    stage: Stage,
    transform: Transform,
    new_id: str,
    *,
    isolate: bool = True,
    seconds: float = SECONDS,
) -> Stage:
    """Return the stage that a transform produces from another.

    With `isolate`, a transform that might crash is first tried in the worker and then applied again
    here, so that variables keep their identity. If it fails or kills the worker, the stage has an
    error. Raises TransformError or NotFoundError, and makes no stage, if the transform rejects its
    arguments.
    """
    module, error, stderr = stage.module, "", ""
    tried = transform.tried_as if isolate else None
    if stage.files and transform.evaluates_code:
        module, error, stderr = _apply_in_worker(stage.module, transform, seconds)
    elif tried is not None:
        outcome = try_transform(stage.module, tried, seconds=seconds)
        # any other failure may be the worker's own: it lacks the user's target and functions
        error, stderr = outcome.error if outcome.is_deadly else "", outcome.stderr
    if not error and module is stage.module:
        with captured_stderr() as captured:
            try:
                # some passes write into the module itself; a copy shares its functions
                module = transform(stage.module.clone())
            except (TransformError, NotFoundError):
                raise
            except Exception as failure:  # TVM raises what its C++ side threw, of any class
                error = f"{type(failure).__name__}: {failure}".strip()
        stderr = captured.text
    return Stage(
        id=new_id,
        module=module,
        label=transform.label,
        parent=stage.id,
        transform=transform,
        error=error,
        constant_names={**stage.constant_names, **transform.constant_names},
        stderr=stderr,
        files=stage.files,
        made_from=stage,
    )


def _apply_in_worker(
    mod: ir.IRModule, transform: Transform, seconds: float
) -> tuple[ir.IRModule, str, str]:
    """Apply a transform in the worker; return the module, the error and what TVM wrote.

    Raises TransformError if the transform cannot be sent.
    """
    outcome = try_transform(mod, transform.tried_as or transform, keep=True, seconds=seconds)
    if outcome.module is None and not outcome.error:
        raise TransformError(
            f"{transform.label} may run code of an opened file, which only another process may do, "
            "and it cannot be sent there: apply it by its name in the catalog, to which "
            "irviz.register_pass adds your own"
        )
    return outcome.module or mod, outcome.error, outcome.stderr
