"""A stage: a module, and the transform that made it of another, tried in the worker first."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import cloudpickle
import tvm
from tvm import ir

from irviz.errors import NotFoundError, TransformError
from irviz.model.graph.infer_layers import LayersByNode
from irviz.runtime.local.packed_module import pack_module, unpack_module
from irviz.transforms.change_summary import ModuleChanges, compare_modules
from irviz.transforms.python_script import PythonScript
from irviz.worker.shared_arrays import UnsharedError
from irviz.worker.stderr_capture import captured_stderr
from irviz.worker.supervisor import TRIES, WorkerError

Apply = Callable[[ir.IRModule], ir.IRModule]

SECONDS = 120.0
"""The time limit for a transform."""


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


INITIAL = "initial module"
"""The label of a stage that was made from no other one."""


@dataclass(frozen=True, eq=False)
class Stage:
    """A module, and how it was made.

    Attributes:
        id: A number, as text; "0" is the first.
        module: The module; the parent's where the transform failed.
        parent: The id of the stage that it was made from, None for a root.
        error: Why the transform failed, "" where it did not.
        stderr: What TVM wrote to standard error meanwhile.
        seconds: How long a recorded pass took.
        enclosing_passes: The passes that ran a recorded pass, outermost first.
        is_unchanged: Whether a recorded pass changed nothing.
        files: The opened files that the module or the transform came from. Their code is run only
            where the user said so, and never in this process.
        made_from: The stage that it was made from, None for a root.
        layers: The layers of a model that a root's bindings come from, by function.
    """

    id: str
    module: ir.IRModule
    label: str = INITIAL
    parent: str | None = None
    transform: Transform | None = None
    error: str = ""
    constant_names: Mapping[tvm.runtime.Tensor, str] = field(default_factory=dict)
    stderr: str = ""
    seconds: float | None = None
    enclosing_passes: tuple[str, ...] = ()
    is_unchanged: bool = False
    files: frozenset[str] = frozenset()
    made_from: Stage | None = field(default=None, repr=False)
    layers: Mapping[str, LayersByNode] = field(default_factory=dict, repr=False)


def apply_transform(
    stage: Stage, transform: Transform, new_id: str, *, isolate: bool = True
) -> Stage:
    """Return the stage that a transform makes of another.

    With `isolate`, the worker first tries what might end the process; then it is applied here
    again, so that variables keep their identity. A transform that fails, or ends the worker, makes
    a stage with an error. Raises TransformError or NotFoundError, and makes no stage, when the
    transform refuses its arguments.
    """
    module, error, stderr = stage.module, "", ""
    tried = transform.tried_as if isolate else None
    if stage.files and transform.evaluates_code:
        module, error, stderr = _apply_in_worker(stage.module, transform)
    elif tried is not None:
        outcome = try_transform(stage.module, tried)
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


def _apply_in_worker(mod: ir.IRModule, transform: Transform) -> tuple[ir.IRModule, str, str]:
    """Return the module that a transform makes in the worker, its error and what TVM wrote.

    Raises TransformError if the transform cannot be sent.
    """
    outcome = try_transform(mod, transform.tried_as or transform, keep=True)
    if outcome.module is None and not outcome.error:
        raise TransformError(
            f"{transform.label} may run code of an opened file, which only another process may do, "
            "and it cannot be sent there: apply it by its name in the catalog, to which "
            "irviz.register_pass adds your own"
        )
    return outcome.module or mod, outcome.error, outcome.stderr


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
    mod: ir.IRModule, transform: Apply, *, look: bool = False, keep: bool = False
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
            return TRIES.call(_try_in_worker, sent, look, keep, seconds=SECONDS)
        except UnsharedError:  # a system that hides the memory of processes
            sent = cloudpickle.dumps((pack_module(mod, whole=True), transform))
            return TRIES.call(_try_in_worker, sent, look, keep, seconds=SECONDS)
    except WorkerError as failure:
        return TrialOutcome(error=f"{type(failure).__name__}: {failure}", is_deadly=True)


def _try_in_worker(sent: bytes, look: bool, keep: bool) -> TrialOutcome:
    """Apply the transform; this runs in the worker."""
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
