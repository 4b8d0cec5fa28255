"""What became of each function of a stage, in a few words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from irviz.explorer.state import FunctionsKey, State
from irviz.model.diff.diff_result import FunctionChange, FunctionDiff
from irviz.session.operation_limits import limited
from irviz.session.stage_diff import diff_stages


class FunctionWords(NamedTuple):
    """What became of a function, "" for nothing, and how much differs."""

    words: str
    changes: int


def functions_key(state: State) -> FunctionsKey | None:
    """Return the stages whose functions are compared: the shown one and that before it."""
    stage = state.stage
    before = state.reference or stage.parent or ""
    if not before or stage.error or len(stage.module.functions) < 2:
        return None
    return FunctionsKey(state.session.stage(before), stage)


def function_changes(state: State, key: FunctionsKey) -> Mapping[str, FunctionWords]:
    """Return what became of each function of the later stage; empty if that cannot be known."""
    if key.before.module.same_as(key.after.module):
        return dict.fromkeys((v.name_hint for v in key.after.module.functions), _NOTHING)
    try:
        with limited("the comparison of functions", *key):
            found = diff_stages(state.session.tree, key.before.id, key.after.id).functions
    except Exception:  # the functions are listed all the same
        return {}
    return {one.after: _described(one) for one in found if one.after}


_NOTHING = FunctionWords("", 0)


def _described(diff: FunctionDiff) -> FunctionWords:
    if diff.change is FunctionChange.SAME:
        return _NOTHING
    changes = sum(1 for _ in diff.loops.changes) if diff.loops else len(diff.changed_nodes)
    return FunctionWords(diff.summary, changes or 1)
