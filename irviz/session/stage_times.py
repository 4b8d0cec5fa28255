"""The times of the passes that made the stages of a session, as a saved recording keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from irviz.errors import StageError
from irviz.model.runs.measurement import TimedPass
from irviz.transforms.recordings.pass_log import short_line
from irviz.transforms.stage import Stage
from irviz.view.pass_times import PassTimes

_DEEPEST = 50
"""How many enclosing passes are distinguished; a file may name any number."""


@dataclass
class _Passes:
    """A pass with its nested passes, while stages are read."""

    name: str
    seconds: float = 0.0
    children: list[_Passes] = field(default_factory=list)
    is_changed: bool = False
    error: str = ""
    stage: str = ""

    def timed(self, start: float) -> TimedPass:
        at, inner = start, []
        for child in self.children:
            inner.append(child.timed(at))
            at += inner[-1].seconds
        end = at + self.seconds
        what = self.is_changed, self.error, self.stage
        return TimedPass(self.name, start, end - start, tuple(inner), *what)


def stage_times(stages: Sequence[Stage]) -> PassTimes:
    """Return the times of recorded passes, one after the other.

    A stage records its pass's own time. The time of enclosing passes after their last stage, and
    the time outside of passes, are unknown.

    Raises:
        StageError: No stage was recorded.
    """
    root = _Passes("stages")
    enclosing: dict[tuple[str, ...], _Passes] = {(): root}
    for stage in stages:
        if stage.seconds is None:
            continue
        around, names = root, stage.enclosing_passes[:_DEEPEST]
        is_changed = not stage.is_unchanged and not stage.error
        for depth in range(1, len(names) + 1):
            path = names[:depth]
            if path not in enclosing:  # each has a number where names are repeated
                enclosing[path] = _Passes(path[-1].partition("#")[0])
                around.children.append(enclosing[path])
            around = enclosing[path]
            around.is_changed |= is_changed
            around.stage = stage.id  # the last one inside it is what it made
        last = around.children[-1] if around.children else None
        if last is not None and last.children and last.name == stage.label:
            made = last  # what it did itself after the passes inside it
        else:
            made = _Passes(stage.label)
            around.children.append(made)
        made.seconds += stage.seconds
        made.is_changed |= is_changed
        made.stage = stage.id
        made.error = short_line(stage.error) if stage.error else ""
    if not root.children:
        raise StageError(
            "no stage has a time: record the passes, as in `with irviz.record() as recording`"
        )
    return PassTimes(root.timed(0.0))
