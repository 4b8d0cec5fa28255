"""Count how much each stage changed: the "Δ n" of its row."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from irviz.explorer.state import State
from irviz.ir.module_functions import drawable_functions
from irviz.session.node_history import diff_beside
from irviz.session.operation_limits import limited
from irviz.session.stage_cache import graph_of
from irviz.session.stage_diff import diff_modules
from irviz.transforms.stage import Stage

Counts = Mapping[tuple[Stage, str], int]
"""By stage and function, how many nodes differ from the parent stage.

For the function "" it is the number of functions; -1 if it cannot be known.
"""

_MOST_NODES_AT_ONCE = 200
_MOST_STAGES_AT_ONCE = 40
"""For larger functions or more stages, changes are counted in the background."""
_MOST_NODES = 10_000
"""For even larger functions, changes are not counted."""
_TELL_SECONDS = 0.5


def change_count(state: State, stage: Stage) -> int:
    """Return how many nodes differ from the parent stage, -1 if unknown.

    The nodes are those of the shown function; for a stage that lacks it, differing functions are
    counted.
    """
    if stage.parent is None or stage.error:
        return -1
    if stage.is_unchanged:
        return 0
    function = _function(state, stage)
    known = state.changes.get((stage, function))
    if known is None and len(state.session.stages) <= _MOST_STAGES_AT_ONCE:
        return _count(state.session.stage(stage.parent), stage, function, _MOST_NODES_AT_ONCE)
    return -1 if known is None else known


def iter_change_counts(state: State, wait: Callable[[], object] = lambda: None) -> Iterator[Counts]:
    """Count the changes that `change_count` does not, and yield the counts now and then.

    Args:
        wait: Called before each stage; returns when there is time for it.
    """
    found: dict[tuple[Stage, str], int] = {}
    told = time.monotonic()
    for stage in state.session.stages:
        if stage.parent is None or stage.error or change_count(state, stage) != -1:
            continue
        wait()
        function = _function(state, stage)
        parent = state.session.stage(stage.parent)
        found[stage, function] = _count(parent, stage, function, _MOST_NODES)
        if time.monotonic() - told > _TELL_SECONDS:
            yield found
            found, told = {}, time.monotonic()
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
            # which histories are made of as well
            found = diff_beside(parent, stage, function, is_before=True)
    except Exception:  # one of the two lacks the function, or cannot be read
        return -1
    return -1 if found is None else len(found.diff.changed_nodes) or len(found.diff.differences)
