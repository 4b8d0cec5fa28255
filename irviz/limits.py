"""How long calls of the worker and operations may take, and how much of a graph is shown.

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


# --- How much of a graph is shown -----------------------------------------------------------------


AUTOMATIC_NODES = 150
"""The most nodes shown before the user has expanded anything."""
FIRST_NODES = 60
"""The same for a model with layers."""
FIRST_RANKS = 11
"""The most nodes above each other in that case: as many as fit on a screen."""
FRAME_RANKS = 0.5
"""The height of a frame's border, in nodes."""
MOST_NODES = 300
"""The most nodes that are ever laid out."""
EXPANDED_NODES = 200
"""The most nodes shown when all groups are opened at once: a layout of more takes seconds."""
MIN_NODES = 8
"""The fewest nodes in a first picture, if the function has as many."""
MAX_INPUTS = 8
"""The most parameters or constants with the same users that are not merged into one node."""
MOST_SHARED = 3
"""The most calls that use a weight which is one node; with more it is a line in each of them."""
MAX_CHILDREN = 120
"""The most children of a container; longer sequences are divided into parts."""
PART_CHILDREN = 40
"""The approximate number of children of such a part; more if the sequence is still too long."""
MIN_LOOSE = 3
"""The fewest consecutive steps between layers that form a container; two on a long path."""
MIN_STAGED = 8
"""The fewest sublayers from which runs with one class and result type form containers."""
SMALL_GRAPH = 60
"""The most nodes of a graph in which repeats are shown as they are."""
SMALL_INPUTS = 6
"""The most parameters and constants of such a graph."""
MIN_REPEAT = 16
"""The fewest steps of a repeat over all copies; shorter ones are easier to read unfolded."""
