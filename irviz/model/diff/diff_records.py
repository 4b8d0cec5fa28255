"""The records of a diff: what became of each node, function, loop and buffer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from irviz.model.diff.differences import Difference
from irviz.model.diff.loop_diff import LoopNestDiff
from irviz.model.graph.graph import INPUT_KINDS, Graph, NodeId, NodeKind
from irviz.model.loops import LoopNest
from irviz.model.matching.correspondence import MatchedBy


class NodeChange(Enum):
    """What became of a node, or of several."""

    SAME = "same"
    CHANGED = "changed"
    ADDED = "added"
    REMOVED = "removed"
    MOVED = "moved"
    FUSED = "fused"
    SPLIT = "split"
    INLINED = "inlined"
    FOLDED = "folded into a constant"


class Part(NamedTuple):
    """A node and the node that it became inside of a function that is called.

    The one that is inside of a called function has an id as of `inlined_id`; in a PrimFunc it is a
    block, or the call as a whole where it is not known which block.
    """

    before: NodeId
    after: NodeId
    by: MatchedBy
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True)
class NodeDiff:
    """What became of one node or, for FUSED, SPLIT, INLINED and FOLDED, of several.

    Attributes:
        before: The nodes before, in the order of the text; none for ADDED.
        after: The nodes after; none for REMOVED.
        by: What shows that they correspond; None for ADDED and REMOVED.
        differences: What differs, also for nodes that were moved.
        callee: The function that contains the nodes of the other side.
        parts: The nodes of the group one by one, where the function was looked into.
    """

    change: NodeChange
    before: tuple[NodeId, ...]
    after: tuple[NodeId, ...]
    by: MatchedBy | None = None
    differences: tuple[Difference, ...] = ()
    callee: str = ""
    parts: tuple[Part, ...] = ()


class FunctionChange(Enum):
    """What became of a function."""

    SAME = "same"
    CHANGED = "changed"
    ADDED = "added"
    REMOVED = "removed"


@dataclass(frozen=True)
class FunctionDiff:
    """What became of one function.

    Attributes:
        before: Its name before, "" where it was added.
        after: Its name after, "" where it was removed.
        by: What shows that it is one function; None where it was added or removed.
        differences: What differs of the function itself: its name, attributes, result, purity.
        nodes: What became of each node, those that are the same included, in the order of the
            text; empty for functions that were added or removed.
        loops: What became of the body of a PrimFunc; None where it is the same, and for others.
        graphs: The graphs before and after; None where there is none, and for a PrimFunc that is
            the same.
        nests: The loop nests before and after of a PrimFunc that is not the same; None where there
            is none.
    """

    before: str
    after: str
    change: FunctionChange
    by: MatchedBy | None = None
    differences: tuple[Difference, ...] = ()
    nodes: tuple[NodeDiff, ...] = ()
    loops: LoopNestDiff | None = None
    graphs: tuple[Graph | None, Graph | None] = field(
        default=(None, None), compare=False, repr=False
    )
    nests: tuple[LoopNest | None, LoopNest | None] = field(
        default=(None, None), compare=False, repr=False
    )

    @property
    def name(self) -> str:
        """The name after or, where it was removed, before."""
        return self.after or self.before

    @property
    def changed_nodes(self) -> Sequence[NodeDiff]:
        """The nodes that are not the same."""
        return [one for one in self.nodes if one.change is not NodeChange.SAME]

    @property
    def frame_contents(self) -> dict[NodeId, str]:
        """What a node of the other side consists of, as `matmul + add`, by the id of the node."""
        found: dict[NodeId, str] = {}
        before, after = self.graphs
        for one in self.nodes:
            if before and len(one.after) == 1 < len(one.before):
                found[one.after[0]] = _names(before, one.before)
            elif after and len(one.before) == 1 < len(one.after):
                found[one.before[0]] = _names(after, one.after)
        return found


def _names(graph: Graph, ids: Sequence[NodeId]) -> str:
    nodes = (graph[one] for one in ids)
    return " + ".join(
        (node.callee or node.name).removeprefix("relax.")
        for node in nodes
        if node.kind not in (*INPUT_KINDS, NodeKind.VALUE)
    )
