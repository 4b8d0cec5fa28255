"""Recordings that open as an explorer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from irviz.app.explorer import Explorer
from irviz.app.session import Session
from irviz.transforms.recordings.record import record as record_passes
from irviz.transforms.recordings.recording import Recording


class Recorded(Recording):
    """A recording whose passes are the stages of a session."""

    def session(self) -> Session:
        """Return a session with a stage for each pass; raise ValueError when none was run."""
        return Session.of(self.stages())

    def explore(self) -> Explorer:
        """Open the explorer on the stages; raise ValueError when no pass was run."""
        return Explorer(self.session())


@contextmanager
def record() -> Iterator[Recorded]:
    """Record every pass that the block runs, in code of whoever wrote it.

    `with irviz.record() as recording: tvm.compile(mod, "llvm")`, then `recording.explore()`.
    An exception goes on its way; what was recorded until then is kept, with the pass that
    raised it.
    """
    with record_passes(Recorded) as recording:
        yield recording
