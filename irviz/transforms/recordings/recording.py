"""Record the passes that a block of code runs, as a tree and as stages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import TypeVar

import tvm
from tvm import ir

from irviz.model.runs.measurement import TimedPass
from irviz.transforms.recordings.pass_log import PassLog, PassRun, logging_passes, short_line
from irviz.transforms.recordings.recorded_stages import stages_of
from irviz.transforms.stage import Stage
from irviz.units import format_duration
from irviz.view.pass_times import PassTimes

_NO_NAMES: Mapping[tvm.runtime.Tensor, str] = MappingProxyType({})


class Recording:
    """The passes that a block of code ran, with the module before and after each.

    Inside the block it holds the passes that have run so far. Modules are compared on demand, not
    while passes run.
    """

    def __init__(self, log: PassLog) -> None:
        self._log = log
        self._read: tuple[object, tuple[PassRun, ...]] = (None, ())

    @property
    def steps(self) -> tuple[PassRun, ...]:
        """The outermost passes, with nested ones as their `children`."""
        state = len(self._log.events), self._log.end
        if self._read[0] != state:
            self._read = state, self._log.read()
        return self._read[1]

    def walk(self) -> Iterator[PassRun]:
        """Yield all passes in the order in which they started."""
        for step in self.steps:
            yield from step.walk()

    @property
    def flat(self) -> tuple[PassRun, ...]:
        """The passes that contain no other, in order."""
        return tuple(step for step in self.walk() if not step.children)

    @property
    def given(self) -> ir.IRModule | None:
        """The module before the first pass, None if no pass ran."""
        return self.steps[0].before if self.steps else None

    @property
    def failed(self) -> tuple[PassRun, ...]:
        """The passes that raised, in chronological order, even if the exception was caught."""
        raised = (step for step in self.walk() if step.error)
        return tuple(sorted(raised, key=lambda step: (step.end, -step.depth)))

    @property
    def error(self) -> str:
        """The exception that ended the block, as text; "" if none did."""
        return self._log.error

    @property
    def seconds(self) -> float:
        """The duration of the block in seconds, without the cost of recording."""
        return self._log.seconds

    @property
    def cost(self) -> float:
        """The cost of recording, in seconds."""
        return self._log.cost

    def pass_times(self) -> PassTimes:
        """Return where the time went: own and total time per pass, and the time outside of passes.

        None of these include the cost of recording.
        """
        passes = tuple(map(_timed, self.steps))
        return PassTimes(TimedPass("recording", 0.0, self.seconds, passes))

    def stages(
        self, constant_names: Mapping[tvm.runtime.Tensor, str] = _NO_NAMES
    ) -> tuple[Stage, ...]:
        """Return the recorded modules as stages, with ids from "0", parents first.

        A module that does not derive from an earlier one is labelled like the first.
        `constant_names` maps constants to their names at the start of the recording.
        """
        return stages_of(self.steps, constant_names)

    def __repr__(self) -> str:
        return f"<Recording: {self._summary()}>"

    def __str__(self) -> str:
        """Return an outline: a line per pass with its time, and a dot if it changed nothing."""
        return "\n".join([self._summary(), *map(_line, self.walk())])

    def _summary(self) -> str:
        steps = tuple(self.walk())
        changed = sum(step.changed for step in steps)
        parts = [
            f"{len(steps)} pass{'es' * (len(steps) != 1)}",
            format_duration(self.seconds),
            f"{changed} changed something",
        ]
        failed = self.failed
        if failed:
            more = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
            parts.append(f"{short_line(failed[0].name)} failed{more}")
        elif self.error:
            parts.append(f"ended by {short_line(self.error)}")
        return ", ".join(parts)


RecordingType = TypeVar("RecordingType", bound=Recording)


@contextmanager
def record_passes(kind: type[RecordingType] = Recording) -> Iterator[RecordingType]:  # type: ignore[assignment]
    """Record every pass that this thread runs inside the block.

    Passes are recorded in every PassContext that the block enters, next to its own instruments, and
    every context is restored afterwards. Exceptions propagate; the recording keeps the passes up to
    then, including the one that raised. Passes of other threads are not recorded.
    """
    log = PassLog()
    with logging_passes(log):
        yield kind(log)


def _timed(step: PassRun) -> TimedPass:
    inner = tuple(map(_timed, step.children))
    return TimedPass(step.name, step.start, step.seconds, inner, step.changed, step.error)


def _line(step: PassRun) -> str:
    if step.error:
        mark, words = "✗", f"{short_line(step.name)}: {short_line(step.error)}"
    else:
        mark, words = " " if step.changed else "·", short_line(step.name)
    if step.after is None and not step.error:
        mark, words = "…", f"{words}: not finished"
    return f"{format_duration(step.seconds):>8}  {'  ' * step.depth}{mark} {words}"
