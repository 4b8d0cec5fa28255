"""Which pass last changed each line of a stage, as `git blame` does for commits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import tvm_ffi

from irviz.ir.module_functions import function_named
from irviz.model.diff.diff_result import NodeChange
from irviz.model.graph.graph import NodeId
from irviz.session.node_history import diff_beside, is_same_function, nodes_of
from irviz.session.stage_cache import graph_of, script_of
from irviz.transforms.stage import Stage
from irviz.transforms.stage_tree import StageTree


@dataclass(frozen=True)
class BlamedLine:
    """A line of TVMScript, and the pass that last changed it.

    Attributes:
        text: The line.
        stage: The stage that the pass made, None if unknown.
        function: The function in that stage that the line belongs to.
        node: The node bound on the line, by its name in that stage; "" for none.
    """

    text: str
    stage: Stage | None = None
    function: str = ""
    node: str = ""


@dataclass(frozen=True, repr=False)
class Blame:
    """The TVMScript of a stage, with the pass that last changed each line.

    Attributes:
        stage: The stage.
        lines: Its lines. A line that binds a node has the pass that last changed that node; a line
            of another function has the pass that last changed that function.
        nodes: By node of the function, the stage whose pass last changed it.
    """

    stage: Stage
    lines: tuple[BlamedLine, ...]
    nodes: Mapping[NodeId, Stage]

    def __repr__(self) -> str:
        """Return the script with a column of passes, each named on its first line."""
        names = [f"{one.stage.id:>3} {one.stage.label}" if one.stage else "" for one in self.lines]
        width = max(map(len, names), default=0)
        shown = ["" if name == before else name for before, name in pairwise(["", *names])]
        rows = zip(shown, self.lines, strict=True)
        return "\n".join(f"{name:<{width}} │ {line.text}".rstrip() for name, line in rows)


def blame(tree: StageTree, function: str, stage_id: str | None = None) -> Blame:
    """Return which pass last changed each line; see `Session.blame`."""
    stages = tree.lineage(stage_id)
    stage, printed = stages[-1], script_of(stages[-1])
    texts = printed.text.splitlines()
    lines = [BlamedLine(text) for text in texts]
    starts = sorted((line, name) for name, line in printed.functions.items())
    ends = [*(line for line, _ in starts[1:]), len(texts) + 1]
    for (start, name), end in zip(starts, ends, strict=True):
        if name != function:
            changed = _changed_last(stages, name)
            code = [at for at in range(start, end) if not _is_between(texts[at - 1])]
            for at in range(start, code[-1] + 1):
                lines[at - 1] = BlamedLine(texts[at - 1], changed, name)
    origins = _origins(stages, function)
    for node, (changed, name, known) in origins.items():
        at = printed.lines.get((function, node), 0)
        if at and at != printed.functions.get(function):
            lines[at - 1] = BlamedLine(texts[at - 1], changed, name, known)
    return Blame(stage, tuple(lines), {node: one.stage for node, one in origins.items()})


def _is_between(line: str) -> bool:
    """Tell whether a line is blank, or a decorator of the next function."""
    return not line.strip() or line.lstrip().startswith("@")


class _Origin(NamedTuple):
    """The stage whose pass last changed a node, and the node there."""

    stage: Stage
    function: str
    node: NodeId


def _origins(stages: Sequence[Stage], function: str) -> dict[NodeId, _Origin]:
    """Return the origin of each node of the last stage's function."""
    found: dict[NodeId, _Origin] = {}
    places: dict[NodeId, tuple[NodeId, ...]]
    places = {node.id: (node.id,) for node in graph_of(stages[-1], function).nodes}
    for before, after in reversed(list(pairwise(stages))):
        if is_same_function(before, after, function):
            continue
        diff = diff_beside(before, after, function, is_before=True)
        moved: dict[NodeId, tuple[NodeId, ...]] = {}
        for node, nodes in places.items():
            diffs = [one for each in nodes for one in diff.by_node.get(each, ())] if diff else []
            if diffs and all(one.change is NodeChange.SAME for one in diffs):
                moved[node] = nodes_of(one.before for one in diffs)
            else:
                found[node] = _Origin(after, function, nodes[0])
        places = moved
        if diff is None:
            break
        function = diff.function
    return found | {node: _Origin(stages[0], function, one[0]) for node, one in places.items()}


def _changed_last(stages: Sequence[Stage], name: str) -> Stage:
    """Return the stage whose pass last changed a function."""
    for before, after in reversed(list(pairwise(stages))):
        mine, theirs = (function_named(one.module, name) for one in (before, after))
        if mine is None or not (mine.same_as(theirs) or tvm_ffi.structural_equal(mine, theirs)):
            return after
    return stages[0]
