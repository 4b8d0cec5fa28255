"""Try a transform in the worker: whether it survives, what it says, what it would change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import cloudpickle
from tvm import ir

from irviz.ir.identity import NoFunctionError
from irviz.transforms.difference import Change, difference
from irviz.worker.noise import caught_noise
from irviz.worker.pool import TRIES, WorkerError

Apply = Callable[[ir.IRModule], ir.IRModule]

SECONDS = 120.0
"""How long a transform may take."""


@dataclass(frozen=True)
class Outcome:
    """What came of a try; `is_refused` when the arguments cannot be right.

    `is_deadly` when it ended the worker or did not end itself, so that it must not be done here.
    """

    error: str = ""
    said: str = ""
    change: Change | None = None
    is_refused: bool = False
    is_deadly: bool = False


def attempt(mod: ir.IRModule, transform: Apply, *, look: bool = False) -> Outcome:
    """Apply a transform in the worker; with `look` say what it changes.

    What cannot travel there is not tried, and the outcome is empty.
    """
    try:
        sent = cloudpickle.dumps((mod, transform))
    except Exception:  # a callback, or a pass, that cannot be sent
        return Outcome()
    try:
        return TRIES.call(_attempt, sent, look, seconds=SECONDS)
    except WorkerError as failure:
        return Outcome(error=f"{type(failure).__name__}: {failure}", is_deadly=True)


def _attempt(sent: bytes, look: bool) -> Outcome:
    """Do it; the worker calls this."""
    try:
        mod, transform = cloudpickle.loads(sent)
    except Exception:  # it names what only the other process has
        return Outcome()
    error, after, is_refused = "", None, False
    with caught_noise() as noise:
        try:
            after = transform(mod)
        except NoFunctionError as failure:
            error, is_refused = str(failure), True
        except Exception as failure:  # TVM raises what its C++ side threw, of any class
            # by name, because this module is what the room of stages stands on
            is_refused = type(failure).__name__ == "TransformError"
            error = str(failure) if is_refused else f"{type(failure).__name__}: {failure}".strip()
    change = difference(mod, after) if look and after is not None else None
    return Outcome(error, noise.text, change, is_refused)
