"""The rows of the tree of stages: the parent of each, and how its results compare."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from markupsafe import Markup

from irviz.explorer.change_counts import change_count
from irviz.explorer.selectors import comparison, derived
from irviz.explorer.state import FIRST, State
from irviz.explorer.viewer.schema import Heading, StageRow
from irviz.transforms.stage import Stage
from irviz.units import format_duration
from irviz.view.svg_primitives import visible
from irviz.view.text.run_results import badge_html, running_badge_html


@dataclass(frozen=True)
class _Place:
    """Where a stage is drawn: inside of what, after a stage that was recorded in `around`."""

    stage: Stage
    depth: int = 0
    enclosing: int = 0
    """How many of the passes it was recorded in `depth` has in it."""
    around: tuple[str, ...] = ()
    is_branch: bool = False
    label: str = ""
    """Of the stage that was recorded before it."""

    @property
    def is_inside(self) -> bool:
        """Whether the enclosing pass is the stage before, which needs no heading."""
        within, at = self.stage.enclosing_passes, len(self.around)
        inside = within[at:] if within[:at] == self.around else ()
        return bool(inside) and inside[0].split("#")[0] == self.label


@derived(
    lambda state: (
        *(state.session, state.function_runs, state.function, state.jobs.key, state.jobs.keys),
        *(state.changes, state.wanted_function),
    )
)
def stage_rows(state: State) -> list[StageRow]:
    """Return the stages depth first: what a stage was made from can be read from the rows.

    An only child is drawn below its parent and as deep. Of several, each is a branch: one step
    deeper, with all that was made from it.
    """
    children = defaultdict(list)
    for stage in state.session.stages:
        children[stage.parent].append(stage)
    places = [_Place(stage) for stage in reversed(children[None])]
    rows: list[StageRow] = []
    while places:
        place = places.pop()
        stage, within = place.stage, place.stage.enclosing_passes
        shared = _shared(within, place.around)
        enclosing = min(place.enclosing, shared)
        offset = place.depth - enclosing
        depth = offset + len(within)
        rows.append(
            {
                "id": stage.id,
                "label": visible(stage.label),
                "parent": stage.parent or "",
                "depth": depth,
                "isBranch": place.is_branch,
                "headings": [
                    Heading(name=within[at], depth=offset + at)
                    for at in range(shared + place.is_inside, len(within))
                ],
                "badge": (badge := str(_badge(state, stage))),
                "title": visible(f"{stage.error or stage.stderr or stage.label}\n{_words(badge)}"),
                "changes": change_count(state, stage),
                "isShown": stage.id == state.stage_id,
                "isSame": stage.is_unchanged,
            }
        )
        match children[stage.id]:
            case [child]:
                places.append(_Place(child, place.depth, enclosing, within, label=stage.label))
            case several:
                places += [
                    _Place(
                        child,
                        depth + 1,
                        _shared(child.enclosing_passes, within),
                        within,
                        is_branch=True,
                    )
                    for child in reversed(several)
                ]
    return rows


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many passes two stages were both recorded in."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _badge(state: State, stage: Stage) -> str:
    """Return how a stage compares with the first; a recorded pass also has its time."""
    badge = _run_badge(state, stage)
    if stage.seconds is None:
        return badge
    return f"<small>{format_duration(stage.seconds)}</small> {badge}"


def _words(badge: str) -> str:
    """Return what a badge says, which may have no place in the row."""
    return Markup(badge).striptags()  # noqa: S704 - it is shown as text


def _run_badge(state: State, stage: Stage) -> str:
    if state.is_run_by(stage.id, state.jobs.keys):
        return running_badge_html(is_waiting=not state.is_run_by(stage.id, [state.jobs.key]))
    runs = state.function_runs
    error, result = stage.error or runs.errors.get(stage.id, ""), runs.results.get(stage.id)
    if stage.seconds is not None and result is None and not error:
        return ""  # a recording has many stages, and its passes have their times
    return badge_html(result, comparison(state, stage.id, FIRST), error)
