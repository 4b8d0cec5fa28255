"""Apply a transform to a stage, after trying it in the worker."""

from __future__ import annotations

from tvm import ir

from irviz.errors import NotFoundError, TransformError
from irviz.transforms.stage import Stage
from irviz.transforms.transform import Transform
from irviz.transforms.try_in_worker import SECONDS, try_transform
from irviz.worker.stderr_capture import captured_stderr


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
