"""Try a transform in the worker: whether it survives, what it says, what it would change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import cloudpickle
from tvm import ir, relax
from tvm_ffi import structural_equal

from irviz.ir.extract import extract
from irviz.ir.identity import NoFunctionError
from irviz.model.change import changed
from irviz.worker.noise import caught_noise
from irviz.worker.pool import WorkerError, call

Apply = Callable[[ir.IRModule], ir.IRModule]

SECONDS = 120.0
"""How long a transform may take."""


@dataclass(frozen=True)
class Change:
    """What a transform changes: functions by name, and how many bindings of Relax functions."""

    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    bindings: int = 0

    def __str__(self) -> str:
        """Say it in a line; "nothing" when nothing changes."""
        if not (self.changed or self.added or self.removed):
            return "nothing"
        words = [f"{self.bindings} binding{'s' * (self.bindings != 1)}"] if self.bindings else []
        for verb in ("changed", "added", "removed"):
            names: tuple[str, ...] = getattr(self, verb)
            if names:
                shown = ", ".join(names[:4]) + (", …" if len(names) > 4 else "")
                words.append(f"{len(names)} function{'s' * (len(names) != 1)} {verb} ({shown})")
        return "; ".join(words)


@dataclass(frozen=True)
class Outcome:
    """What came of a try; `is_refused` when the arguments cannot be right."""

    error: str = ""
    said: str = ""
    change: Change | None = None
    is_refused: bool = False


def attempt(mod: ir.IRModule, transform: Apply, *, look: bool = False) -> Outcome:
    """Apply a transform in the worker; with `look` say what it changes.

    What cannot travel there is not tried, and the outcome is empty.
    """
    try:
        sent = cloudpickle.dumps((mod, transform))
    except Exception:  # a callback, or a pass, that cannot be sent
        return Outcome()
    try:
        return call(_attempt, sent, look, seconds=SECONDS)
    except WorkerError as failure:
        return Outcome(error=f"{type(failure).__name__}: {failure}")


def difference(before: ir.IRModule, after: ir.IRModule) -> Change:
    """Return what was changed between two modules, functions matched by name."""
    old = {gvar.name_hint: function for gvar, function in before.functions.items()}
    new = {gvar.name_hint: function for gvar, function in after.functions.items()}
    both = sorted(old.keys() & new.keys())
    other = tuple(name for name in both if not structural_equal(old[name], new[name]))
    bindings = 0
    for name in other:
        if isinstance(old[name], relax.Function) and isinstance(new[name], relax.Function):
            was, now = extract(before, name), extract(after, name)
            gone = was.index.keys() - now.index.keys()
            bindings += len({*changed(now, was), *gone})
    return Change(
        other,
        tuple(sorted(new.keys() - old.keys())),
        tuple(sorted(old.keys() - new.keys())),
        bindings,
    )


def _attempt(sent: bytes, look: bool) -> Outcome:
    """Do it; the worker calls this."""
    mod, transform = cloudpickle.loads(sent)
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
