"""Apply a transform to a stage, after trying it in the worker; or those of a path, in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import cloudpickle
from tvm import ir

import irviz.loaders.tvm_json  # noqa: F401 - modules in answers
from irviz.errors import NotFoundError, TransformError
from irviz.limits import PASSES_SECONDS
from irviz.model.graph.graph import NodeId
from irviz.runtime.module_serialization import pack_module, unpack_module
from irviz.transforms.stage import Apply, Stage, Transform
from irviz.worker.captured_output import captured_stderr
from irviz.worker.shared_arrays import UnsharedError
from irviz.worker.supervisor import TRIES, WorkerError, load_ahead

load_ahead(__name__)

# --- Try a transform in a separate process, which it may crash -----------------------------------


class Change(NamedTuple):
    """What a transform changes: in words, "nothing" if it is nothing, and which nodes."""

    words: str
    nodes: tuple[NodeId, ...]


Comparison = Callable[[ir.IRModule, ir.IRModule], Change]


@dataclass(frozen=True)
class TrialOutcome:
    """The outcome of a trial.

    Attributes:
        stderr: What TVM wrote to standard error.
        change: What the comparison of both modules returned, if there is one.
        is_deadly: It crashed the worker or timed out, and must not be run in this process.
        module: The new module, if it was to be kept.
    """

    error: str = ""
    stderr: str = ""
    change: Change | None = None
    is_deadly: bool = False
    module: ir.IRModule | None = None


def try_transform(
    mod: ir.IRModule,
    transform: Apply,
    *,
    compare: Comparison | None = None,
    keep: bool = False,
    seconds: float = PASSES_SECONDS,
) -> TrialOutcome:
    """Apply a transform in the worker, and return the new module if it is to be kept.

    The worker compares the modules before and after, if there is a comparison.
    A transform that cannot be pickled is not tried, and its outcome is empty.
    """
    try:
        sent = cloudpickle.dumps((pack_module(mod), transform, compare))
    except Exception:  # it cannot be pickled, such as a pass with a callback
        return TrialOutcome()
    try:
        try:
            return TRIES.call(_try_in_worker, sent, keep, seconds=seconds)
        except UnsharedError:  # a system that hides the memory of processes
            sent = cloudpickle.dumps((pack_module(mod, whole=True), transform, compare))
            return TRIES.call(_try_in_worker, sent, keep, seconds=seconds)
    except WorkerError as failure:
        return TrialOutcome(error=f"{type(failure).__name__}: {failure}", is_deadly=True)


def _try_in_worker(sent: bytes, keep: bool) -> TrialOutcome:
    """Apply the transform. Runs in the worker."""
    try:
        packed, transform, compare = cloudpickle.loads(sent)
        mod = unpack_module(packed)
    except UnsharedError:
        raise
    except Exception:  # it refers to objects that only the other process has
        return TrialOutcome()
    try:
        made = _applied(mod, transform)
    except (TransformError, NotFoundError) as refusal:
        return TrialOutcome(str(refusal))
    change = None if compare is None or made.module is None else compare(mod, made.module)
    return replace(made, change=change, module=made.module if keep else None)


def _applied(mod: ir.IRModule, transform: Apply) -> TrialOutcome:
    """Apply a transform; raise TransformError or NotFoundError if it rejects its arguments."""
    after, error = None, ""
    with captured_stderr() as captured:
        try:
            # some passes write into the module itself; a copy shares its functions
            after = transform(mod.clone())
        except (TransformError, NotFoundError):
            raise
        except Exception as failure:  # TVM raises what its C++ side threw, of any class
            error = f"{type(failure).__name__}: {failure}".strip()
    return TrialOutcome(error, captured.text, module=after)


# --- Make a stage from another -------------------------------------------------------------------


def apply_transform(
    stage: Stage,
    transform: Transform,
    new_id: str,
    *,
    isolate: bool = True,
    seconds: float = PASSES_SECONDS,
) -> Stage:
    """Return the stage that a transform produces from another.

    With `isolate`, a transform that might crash is first tried in the worker and then applied again
    here, so that variables keep their identity. If it fails or kills the worker, the stage has an
    error. Raises TransformError or NotFoundError, and makes no stage, if the transform rejects its
    arguments.
    """
    if stage.files and transform.evaluates_code:
        sent = transform.tried_as or transform
        made = try_transform(stage.module, sent, keep=True, seconds=seconds)
        if made.module is None and not made.error:
            raise TransformError(
                f"{transform.label} may run code of an opened file, which only another process may "
                "do, and it cannot be sent there: apply it by its name in the catalog, to which "
                "irviz.register_pass adds your own"
            )
    else:
        made = TrialOutcome()
        if isolate and (tried := transform.tried_as) is not None:
            made = try_transform(stage.module, tried, seconds=seconds)
        if not made.is_deadly:  # any other failure may be the worker's: it lacks the user's target
            made = _applied(stage.module, transform)
    return _made_from(stage, transform, new_id, made)


def _made_from(stage: Stage, transform: Transform, new_id: str, made: TrialOutcome) -> Stage:
    return Stage(
        id=new_id,
        module=made.module or stage.module,
        label=transform.label,
        parent=stage.id,
        transform=transform,
        error=made.error,
        constant_names={**stage.constant_names, **transform.constant_names},
        stderr=made.stderr,
        files=stage.files,
        made_from=stage,
    )


def replay(steps: Sequence[Stage], on: Stage, first_id: int, *, isolate: bool) -> list[Stage]:
    """Apply the transforms of these stages to another stage, in order.

    A step that rejects the module makes a stage with the error, and the next step continues with
    the unchanged module. A step from an opened file stays marked as from that file.
    """
    made: list[Stage] = []
    for step in steps:
        if step.transform is None:
            continue
        before, new_id = (made or [on])[-1], str(first_id + len(made))
        before = replace(before, files=before.files | step.files)
        try:
            stage = apply_transform(before, step.transform, new_id, isolate=isolate)
        except (TransformError, NotFoundError) as refusal:
            refused = TrialOutcome(str(refusal))
            stage = _made_from(before, step.transform, new_id, refused)
        made.append(replace(stage, label=step.label))
    return made
