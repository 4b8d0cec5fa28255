"""A part of a diff: the nodes near a node, or between two."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from irviz.errors import NotFoundError
from irviz.model.diff.diff_result import FunctionDiff, NodeChange, NodeDiff
from irviz.model.graph.graph import Graph, NodeId
from irviz.model.graph.neighbourhood import AFTER, BEFORE, neighbourhood, nodes_between, subgraph


def diff_part(
    diff: FunctionDiff, around: NodeId, steps: int = 1, to: NodeId | None = None
) -> FunctionDiff:
    """Return the diff of the neighbourhood of a node on both sides, or of the paths between two.

    The part includes what its nodes became, and what they were made from.

    Args:
        around: A node after the change or, if it was removed, before.
        steps: How many uses away a node may be.
        to: The node at the other end of the paths.

    Raises:
        NotFoundError: There is no such node, or no path between the two.
    """
    before, after = diff.graphs
    if before is None or after is None:
        raise NotFoundError(f"{diff.name!r} is not drawn as a graph: leave out {around!r}")
    starts = _on_both_sides(diff, around)
    ends = None if to is None else _on_both_sides(diff, to)
    kept: tuple[set[NodeId], set[NodeId]] = (set(), set())
    for at, graph in enumerate((before, after)):
        for start in starts[at]:
            if ends is None:
                kept[at].update(neighbourhood(graph, start, steps))
            for end in ends[at] if ends else ():
                kept[at].update(nodes_between(graph, start, end))
    if not kept[0] and not kept[1]:
        raise NotFoundError(f"there is no path between {around!r} and {to!r} in {diff.name!r}")
    nodes = [one for one in diff.nodes if _is_in(one.before, kept[0]) or _is_in(one.after, kept[1])]
    for one in nodes:
        kept[0].update(one.before)
        kept[1].update(one.after)
    graphs = subgraph(before, kept[0]), subgraph(after, kept[1])
    rest = [_rest(one, *graphs) for one in (BEFORE, AFTER)]
    return replace(diff, nodes=(*nodes, *filter(None, rest)), graphs=graphs)


def functions_with(diffs: Sequence[FunctionDiff], node: str) -> list[FunctionDiff]:
    """Return the functions with a node before or after; raise NotFoundError if there are none."""
    found = [one for one in diffs if any(graph and node in graph.index for graph in one.graphs)]
    if not found:
        names = ", ".join(repr(one.name) for one in diffs) or "no function"
        raise NotFoundError(f"there is no node {node!r} in what differs: {names}")
    return found


def _on_both_sides(diff: FunctionDiff, node: NodeId) -> tuple[Collection[NodeId], ...]:
    """Return a node after with what it was before, or a node before with what it became."""
    before, after = diff.graphs
    assert before is not None
    assert after is not None
    if node in after.index:
        was = (one.before for one in diff.nodes if node in one.after)
        return next(was, ()), (node,)
    if node in before.index:
        became = (one.after for one in diff.nodes if node in one.before)
        return (node,), next(became, ())
    raise NotFoundError(f"neither side of {diff.name!r} has a node {node!r}")


def _is_in(nodes: Collection[NodeId], kept: Collection[NodeId]) -> bool:
    return any(one in kept for one in nodes)


def _rest(node: NodeId, before: Graph, after: Graph) -> NodeDiff | None:
    """Return the diff of a group of nodes that are left out."""
    match node in before.index, node in after.index:
        case True, True:
            return NodeDiff(NodeChange.SAME, (node,), (node,))
        case True, False:
            return NodeDiff(NodeChange.REMOVED, (node,), ())
        case False, True:
            return NodeDiff(NodeChange.ADDED, (), (node,))
    return None
