"""Which pass changed each line of a stage last, as `git blame` tells which commit did."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import tvm_ffi

from irviz.ir.module_functions import function_named
from irviz.model.diff.diff_result import NodeChange, NodeDiff
from irviz.model.graph.graph import NodeId
from irviz.session.node_history import diff_beside, is_same_function
from irviz.session.session_state import SessionState
from irviz.session.stage_cache import graph_of, script_of
from irviz.transforms.stage import Stage


@dataclass(frozen=True)
class BlamedLine:
    """A line of TVMScript, and the stage whose pass changed it last, None where none is known."""

    text: str
    stage: Stage | None


@dataclass(frozen=True, repr=False)
class Blame:
    """The TVMScript of a stage, line by line.

    Attributes:
        stage: The stage.
        lines: Its lines. Those of nodes have the pass that changed the node last; those of other
            functions the pass that changed the function last.
        nodes: The stage whose pass changed each node of the function last.
    """

    stage: Stage
    lines: tuple[BlamedLine, ...]
    nodes: Mapping[NodeId, Stage]

    def __repr__(self) -> str:
        """Return the script with a column for the passes; each is named where it begins."""
        names = [f"{one.stage.id:>3} {one.stage.label}" if one.stage else "" for one in self.lines]
        width = max(map(len, names), default=0)
        shown = ["" if name == before else name for before, name in pairwise(["", *names])]
        rows = zip(shown, self.lines, strict=True)
        return "\n".join(f"{name:<{width}} │ {line.text}".rstrip() for name, line in rows)


def blame(state: SessionState, stage_id: str | None = None) -> Blame:
    """Return which pass changed each line last; see Session.blame."""
    stages = state.tree.lineage(stage_id)
    stage, printed = stages[-1], script_of(stages[-1])
    nodes = _blamed_nodes(stages, state.function)
    owners = dict[int, Stage]()
    starts = sorted((line, name) for name, line in printed.functions.items())
    texts = printed.text.splitlines()
    ends = [*(line for line, _ in starts[1:]), len(texts) + 1]
    for (start, name), end in zip(starts, ends, strict=True):
        if name != state.function:
            changed = _changed_last(stages, name)
            last = max((at for at in range(start, end) if texts[at - 1].strip()), default=start)
            owners.update(dict.fromkeys(range(start, last + 1), changed))
    for node, one in nodes.items():
        line = printed.lines.get((state.function, node))
        if line is not None and line != printed.functions.get(state.function):
            owners[line] = one
    lines = [BlamedLine(text, owners.get(at)) for at, text in enumerate(texts, start=1)]
    return Blame(stage, tuple(lines), nodes)


def _blamed_nodes(stages: Sequence[Stage], function: str) -> dict[NodeId, Stage]:
    """Return the stage whose pass changed each node of the last stage's function last."""
    found: dict[NodeId, Stage] = {}
    places = {node.id: {node.id} for node in graph_of(stages[-1], function).nodes}
    for before, after in reversed(list(pairwise(stages))):
        if is_same_function(before, after, function):
            continue
        diff = diff_beside(before, after, function, is_before=True)
        if diff is None:
            found.update(dict.fromkeys(places, after))
            return found
        by_node: dict[NodeId, list[NodeDiff]] = defaultdict(list)
        for one in diff.nodes:
            for node in one.after:
                by_node[node].append(one)
        moved = {}
        for node, nodes in places.items():
            diffs = [one for each in nodes for one in by_node[each]]
            if all(one.change is NodeChange.SAME for one in diffs):
                moved[node] = {each for one in diffs for each in one.before}
            else:
                found[node] = after
        places, function = moved, diff.before
    found.update(dict.fromkeys(places, stages[0]))
    return found


def _changed_last(stages: Sequence[Stage], name: str) -> Stage:
    """Return the stage whose pass changed a function last."""
    for before, after in reversed(list(pairwise(stages))):
        mine, theirs = (function_named(one.module, name) for one in (before, after))
        if mine is None or not (mine.same_as(theirs) or tvm_ffi.structural_equal(mine, theirs)):
            return after
    return stages[0]
