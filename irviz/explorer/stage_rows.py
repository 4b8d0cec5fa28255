"""The rows of the tree of stages and of the list of functions, and what each changed."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from textwrap import shorten
from typing import NamedTuple

from irviz.explorer.state import FIRST, FunctionsKey, State, derived
from irviz.explorer.viewer.schema import Heading, StageRow
from irviz.ir.module_functions import drawable_functions
from irviz.model.diff.diff_result import ChangeKind, FunctionDiff
from irviz.model.runs.run_result import Comparison, compare_runs
from irviz.session.node_history import diff_beside
from irviz.session.operation_limits import limited
from irviz.session.stage_cache import graph_of
from irviz.session.stage_diff import diff_modules, diff_stages
from irviz.transforms.stage import Stage
from irviz.units import format_duration
from irviz.view.run_result_html import RunBadge, run_answer, run_badge
from irviz.view.svg_primitives import visible


class _Place(NamedTuple):
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
        *(state.changes, state.wanted_function, state.step_times),
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
    speeds = state.step_times.speeds()
    fastest = max(speeds.values(), default=1.0)
    while places:
        place = places.pop()
        stage, within = place.stage, place.stage.enclosing_passes
        shared = _shared(within, place.around)
        enclosing = min(place.enclosing, shared)
        offset = place.depth - enclosing
        depth = offset + len(within)
        badge = _badge(state, stage)
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
                "verdict": visible(badge.words),
                "verdictKind": badge.kind,
                "time": _time(state, stage),
                "speed": f"{speeds[stage.id]:.1f}×" if stage.id in speeds else "",
                "share": speeds.get(stage.id, 0.0) / fastest,
                "title": visible(f"{stage.error or stage.stderr or stage.label}\n{badge}".strip()),
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


def _badge(state: State, stage: Stage) -> RunBadge:
    """Return how a stage compares with the first."""
    if state.is_run_by(stage.id, state.jobs.keys):
        is_next = state.is_run_by(stage.id, [state.jobs.key])
        return RunBadge("… running" if is_next else "… waiting", "running")
    runs = state.function_runs
    error, result = stage.error or runs.errors.get(stage.id, ""), runs.results.get(stage.id)
    if stage.seconds is not None and result is None and not error:
        return RunBadge("")  # a recording has many stages, and its passes have their times
    return run_badge(result, comparison(state, stage.id, FIRST), error)


def answer(state: State) -> RunBadge:
    """Return what the last run of the current stage gave, no words while one is under way."""
    runs, stage = state.function_runs, state.stage
    if state.is_run_by(stage.id, state.jobs.keys):
        return RunBadge("")
    reference = state.pair[1]
    compared = comparison(state, stage.id, reference)
    error, trace = runs.errors.get(stage.id, ""), runs.traces.get(stage.id)
    return run_answer(runs.results.get(stage.id), compared, reference, error, trace)


def _time(state: State, stage: Stage) -> str:
    """Return how long a recorded pass took, or else an input of the stage's run."""
    result = state.function_runs.results.get(stage.id)
    if stage.seconds is not None:
        return format_duration(stage.seconds)
    return "" if result is None else format_duration(result.seconds)


def comparison(state: State, stage_id: str, reference: str) -> Comparison | None:
    """Return how the results of two stages compare, None unless both were run."""
    results = state.function_runs.results
    if stage_id == reference or not {stage_id, reference} <= results.keys():
        return None
    return _compared(results[stage_id], results[reference])


_compared = lru_cache(maxsize=256)(compare_runs)


# --- How many nodes of the shown function each stage changed: the "Δ n" of its row ----------------


Counts = Mapping[tuple[Stage, str], int]
"""By stage and function, how many nodes differ from the parent stage.

For the function "" it is the number of functions; -1 if it cannot be known.
"""

FEW_NODES = 200
_MOST_NODES = 10_000
"""The changes of larger functions are not counted."""
_TELL_SECONDS = 0.5


def change_count(state: State, stage: Stage) -> int:
    """Return how many nodes differ from the parent stage, -1 as long as that is not known.

    The nodes are those of the shown function; for a stage that lacks it, differing functions are
    counted.
    """
    if stage.parent is None or stage.error:
        return -1
    return 0 if stage.is_unchanged else state.changes.get((stage, _function(state, stage)), -1)


def iter_change_counts(
    state: State, wait: Callable[[], object] = lambda: None, most: int = _MOST_NODES
) -> Iterator[Counts]:
    """Count the changes that are not known, and yield the counts now and then.

    Args:
        wait: Called before each stage; returns when there is time for it.
        most: The changes of functions with more nodes are not counted.
    """
    found: dict[tuple[Stage, str], int] = {}
    told = time.monotonic()
    for stage in state.session.stages:
        if stage.parent is None or stage.error or change_count(state, stage) != -1:
            continue
        wait()
        function = _function(state, stage)
        parent = state.session.stage(stage.parent)
        found[stage, function] = _count(parent, stage, function, most)
        if time.monotonic() - told > _TELL_SECONDS:
            yield found
            found, told = {}, time.monotonic()
    if found:
        yield found


def _function(state: State, stage: Stage) -> str:
    """Return the shown function, "" if a stage lacks it."""
    names = _functions(stage)
    return next((one for one in (state.wanted_function, state.function) if one in names), "")


@lru_cache(maxsize=1024)
def _functions(stage: Stage) -> tuple[str, ...]:
    return tuple(drawable_functions(stage.module))


@lru_cache(maxsize=1024)
def _count(parent: Stage, stage: Stage, function: str, most: int) -> int:
    try:
        if not function:
            with limited("the count of changes", parent, stage):
                return len(diff_modules(parent, stage).changed_functions)
        if any(len(graph_of(one, function).nodes) > most for one in (parent, stage)):
            return -1
        with limited("the count of changes", parent, stage):
            # the diff that histories cache, too
            found = diff_beside(parent, stage, function, is_before=True)
    except Exception:  # one of the two lacks the function, or cannot be read
        return -1
    return -1 if found is None else len(found[0].changed_nodes) or len(found[0].differences)


# --- What became of each function of a stage, in a few words --------------------------------------


def functions_key(state: State) -> FunctionsKey | None:
    """Return the stages whose functions are compared: the shown one and that before it."""
    stage = state.stage
    before = state.reference or stage.parent or ""
    if not before or stage.error or len(stage.module.functions) < 2:
        return None
    return FunctionsKey(state.session.stage(before), stage)


def function_changes(state: State, key: FunctionsKey) -> Mapping[str, tuple[str, int]]:
    """Return what became of each function of the later stage, "" for nothing, and how much differs.

    It is empty if that cannot be known.
    """
    if key.before.module.same_as(key.after.module):
        return dict.fromkeys((v.name_hint for v in key.after.module.functions), _NOTHING)
    try:
        with limited("the comparison of functions", *key):
            found = diff_stages(state.session.tree, key.before.id, key.after.id).functions
    except Exception:  # the functions are listed all the same
        return {}
    return {one.after: _described(one) for one in found if one.after}


_NOTHING = ("", 0)


def _described(diff: FunctionDiff) -> tuple[str, int]:
    if diff.change is ChangeKind.SAME:
        return _NOTHING
    changes = sum(1 for _ in diff.loops.changes) if diff.loops else len(diff.changed_nodes)
    others = shorten(
        ", ".join(map(str, diff.differences)), 90, placeholder=" …"
    )  # a target is long
    words = diff.summary if diff.loops or diff.changed_nodes else others or diff.summary
    return words, changes or 1
