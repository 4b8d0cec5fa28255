"""Record every pass that a block runs, in code of whoever wrote it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from irviz.transforms.recordings.recording import Recording
from irviz.transforms.recordings.tape import Tape
from irviz.transforms.recordings.watch import listening

R = TypeVar("R", bound=Recording)


@contextmanager
def record(kind: type[R] = Recording) -> Iterator[R]:  # type: ignore[assignment]
    """Record every pass that this thread runs until the block is over, in a recording of a kind.

    Passes are heard in whatever PassContext the block enters, beside the instruments that are
    there, and every context is as it was afterwards. An exception goes on its way; what was
    recorded until then is kept, with the pass that raised it. Passes of other threads are not
    heard.
    """
    tape = Tape()
    with listening(tape):
        try:
            yield kind(tape)
        except BaseException as failure:
            tape.failed(failure)
            raise
