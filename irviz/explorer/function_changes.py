"""What became of each function of a stage, in a few words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from irviz.explorer.state import FunctionsKey, State
from irviz.model.diff.diff_result import (
    FunctionChange,
    FunctionDiff,
    LoopChange,
    LoopNestDiff,
    NodeChange,
    NodeDiff,
)
from irviz.session.operation_limits import limited
from irviz.session.stage_diff import diff_stages

SAME_LOOPS = "the loops do not differ"


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
    if diff.loops is not None and diff.loops.differs:
        return FunctionWords(loop_summary(diff.loops), sum(1 for _ in _counted(diff.loops)))
    nodes = node_summary(diff.changed_nodes)
    others = ", ".join(dict.fromkeys(one.aspect.value for one in diff.differences))
    words = nodes or others or diff.change.value
    return FunctionWords(words, len(diff.changed_nodes) or 1)


def node_summary(changed: Sequence[NodeDiff]) -> str:
    """Count the changes of nodes, as in `3 changed · 5 → 1 fused`; "" for none."""
    counts: Counter[str] = Counter()
    joined: dict[str, list[int]] = {}
    for diff in changed:
        if len(diff.before) == len(diff.after) == 1 or not diff.before or not diff.after:
            counts[diff.change.value] += max(len(diff.before), len(diff.after))
        else:
            sums = joined.setdefault(diff.change.value, [0, 0])
            sums[0] += len(diff.before)
            sums[1] += len(diff.after)
    words = [f"{counts[one.value]:,} {one.value}" for one in NodeChange if counts[one.value]]
    words += [f"{before:,} → {after:,} {word}" for word, (before, after) in joined.items()]
    return " · ".join(words)


def loop_summary(diff: LoopNestDiff) -> str:
    """Count what became of loops, blocks and buffers, as in `1 loop split · 1 block moved`."""
    counts: Counter[tuple[str, str]] = Counter(_counted(diff))
    words = [f"{n:,} {what}{'s' * (n > 1)} {change}" for (what, change), n in counts.items()]
    return " · ".join(words) or SAME_LOOPS


def _counted(diff: LoopNestDiff) -> Iterator[tuple[str, str]]:
    plain = (LoopChange.SAME, LoopChange.CHANGED)
    for block in diff.blocks:
        for group in block.changed_loops:
            changes = [one for one in group.changes if one is not LoopChange.SAME]
            yield from (("loop", one.value) for one in changes or [LoopChange.CHANGED])
        if block.change not in plain or (
            block.change is not LoopChange.SAME and not block.changed_loops
        ):
            yield "block", block.change.value
    for buffer in diff.buffers:
        if buffer.change is not LoopChange.SAME:
            yield "buffer", buffer.change.value
    for _ in diff.statements:
        yield "statement", LoopChange.CHANGED.value
