"""What became of each drawn node, where groups of nodes are drawn as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from irviz.model.diff.diff_result import NodeChange, NodeDiff
from irviz.model.graph.graph import Graph, NodeId

Where = Callable[[NodeId], NodeId | None]
"""Returns the drawn node that shows a node of a function, None where none does."""


def visible_step(
    step: Sequence[NodeDiff], drawn: tuple[Graph, Graph], where: tuple[Where, Where]
) -> list[NodeDiff]:
    """Return what became of each drawn node, in the order of the drawn graph after.

    Drawn nodes that show nodes of one difference belong together.

    Args:
        step: What became of the nodes of the function.
        drawn: What is drawn of the function before and after.
        where: Where each node of the function is in that.
    """
    shown = [
        (
            diff,
            [
                (side, place)
                for side, nodes in enumerate((diff.before, diff.after))
                for place in map(where[side], nodes)
                if place is not None and place in drawn[side].index
            ],
        )
        for diff in step
    ]
    every = [(side, node.id) for side, graph in enumerate(drawn) for node in graph.nodes]
    sets = _Sets(every)
    for _, places in shown:
        sets.join(places)
    diffs: dict[tuple[int, NodeId], list[NodeDiff]] = {}
    for diff, places in shown:
        if places:
            diffs.setdefault(sets.of(places[0]), []).append(diff)
    members: dict[tuple[int, NodeId], tuple[list[NodeId], list[NodeId]]] = {}
    for one in reversed(every):  # by the last node after, as the text is written
        members.setdefault(sets.of(one), ([], []))[one[0]].insert(0, one[1])
    return [_merged(diffs.get(key, ()), *both) for key, both in reversed(members.items())]


class _Sets:
    """Sets of drawn nodes that belong together."""

    def __init__(self, nodes: Sequence[tuple[int, NodeId]]) -> None:
        self._parents = {one: one for one in nodes}

    def of(self, node: tuple[int, NodeId]) -> tuple[int, NodeId]:
        """Return the node that stands for the set of a node."""
        parents = self._parents
        while parents[node] != node:
            parents[node] = parents[parents[node]]
            node = parents[node]
        return node

    def join(self, nodes: Sequence[tuple[int, NodeId]]) -> None:
        """Put nodes into one set."""
        for node in nodes[1:]:
            self._parents[self.of(node)] = self.of(nodes[0])


def _merged(
    diffs: Sequence[NodeDiff], before: Sequence[NodeId], after: Sequence[NodeId]
) -> NodeDiff:
    """Return what became of drawn nodes that show the nodes of these differences."""
    if not before or not after:
        change = NodeChange.ADDED if after else NodeChange.REMOVED
    elif len(before) == len(after) == 1:
        is_same = all(diff.change is NodeChange.SAME for diff in diffs)
        change = NodeChange.SAME if is_same else NodeChange.CHANGED
    else:
        change = NodeChange.FUSED
    differences = diffs[0].differences if len(diffs) == 1 else ()
    return NodeDiff(change, tuple(before), tuple(after), differences=differences)
