"""Recordings that open as an explorer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from irviz.explorer.explorer import Explorer
from irviz.ir.module_functions import relax_functions
from irviz.session.blame import Blame
from irviz.session.pipeline_comparison import PipelineComparison, compare_pipelines
from irviz.session.session import Session
from irviz.transforms.recordings.recording import Recording
from irviz.transforms.recordings.recording import record_passes as record_passes


class ExplorableRecording(Recording):
    """A recording whose passes can be explored as the stages of a session."""

    def session(self) -> Session:
        """Return a session with a stage for each pass; raise ValueError if none ran."""
        return Session.from_stages(self.stages())

    def explore(self) -> Explorer:
        """Open the explorer on the stages; raise ValueError if no pass ran."""
        return Explorer(self.session())

    def blame(self) -> Blame:
        """Return the TVMScript of the last stage that has the function, with blame.

        Each line has the pass that last changed it.

        Raises:
            StageError: No pass ran.

        Example:
            ```python
            with irviz.record() as recording:
                pipeline(mod)
            print(recording.blame())
            ```
        """
        session = self.session()
        stages = [
            one for one in session.tree.stages if session.function in relax_functions(one.module)
        ]
        return session.blame(stages[-1].id)

    def compare(
        self, other: ExplorableRecording | Session, titles: tuple[str, str] = ("before", "after")
    ) -> PipelineComparison:
        """Compare the passes with those of another recording, and the module after each.

        Args:
            other: The other recording, or its session, such as `irviz.load("work.irviz")`.
            titles: The names of the two recordings.

        Raises:
            StageError: One of the two ran no pass.

        Example:
            ```python
            with_options.compare(without).diff.save("difference.svg")
            ```
        """
        after = other if isinstance(other, Session) else other.session()
        return compare_pipelines(self.session(), after, titles)


@contextmanager
def record() -> Iterator[ExplorableRecording]:
    """Record every pass that runs inside the `with` block, in any code.

    `with irviz.record() as recording: tvm.compile(mod, "llvm")`, then `recording.explore()`. An
    exception propagates; what was recorded until then is kept, with the pass that raised it.
    """
    with record_passes(ExplorableRecording) as recording:
        yield recording
