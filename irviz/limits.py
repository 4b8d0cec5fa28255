"""How long a call of the worker and an operation may take, and what happens after that time.

At the limit of a call, the worker's process is ended; the next call starts another one.
"""

import contextlib
import time
from collections.abc import Iterator
from contextvars import ContextVar

CALL_SECONDS = 60.0
"""A call without a limit of its own, and the start of a process: TimedOutError."""

RUN_SECONDS = CALL_SECONDS
"""A run, unless `seconds` is given: RunError."""
TIMED_CALLS_SECONDS = RUN_SECONDS / 3
"""All calls that time functions in turn: fewer rounds are timed, so that a run does not end."""

PASSES_SECONDS = 2 * RUN_SECONDS
"""A transform, or the passes of a build: the stage has an error, or the picture says it."""
FILE_SECONDS = PASSES_SECONDS
"""Opening a file of any size: FileError."""
SCRIPT_SECONDS = 7.0
"""Writing one stage of a script: RunError."""

CANDIDATES_SECONDS = 10.0
"""Trying all candidates of a call: each is then tried by itself, for half as long."""

REDUCTION_SECONDS = RUN_SECONDS
"""A reduction, unless `seconds` is given: it returns the smallest module so far."""
TRY_SECONDS = REDUCTION_SECONDS / 3
"""Making one smaller module, or checking it: it is not taken, unless the failure is to hang."""

OPERATION_SECONDS = 6.0
"""The processor time of an operation on stages of an opened file: LimitError."""
OPERATION_BYTES = 400 << 20
"""How much more memory the process may have after such an operation than before: LimitError."""


class PassesTime:
    """The time that another process has for the passes of an operation, in all calls of it."""

    def __init__(self, seconds: float) -> None:
        self._seconds = self._left = seconds

    @property
    def used(self) -> float:
        """The share that is used up, from 0 to 1 or slightly more."""
        return 1 - self._left / self._seconds

    @contextlib.contextmanager
    def spend(self) -> Iterator[float]:
        """Give the seconds that are left, and subtract those that pass."""
        began = time.monotonic()
        try:
            yield max(self._left, 0.0)
        finally:
            self._left -= time.monotonic() - began


operation_passes: ContextVar[PassesTime | None] = ContextVar("operation_passes", default=None)
"""What an operation on an opened file has for passes; other operations have PASSES_SECONDS each."""


def passes_time() -> contextlib.AbstractContextManager[float]:
    """Give the seconds that passes may take in another process, for a `with` statement."""
    return (operation_passes.get() or PassesTime(PASSES_SECONDS)).spend()
