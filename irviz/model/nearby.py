"""A part of a graph: what is near a node, or between two."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from irviz.model.graph import Edge, Graph, Node, NodeId, NodeKind

BEFORE, AFTER = NodeId("more:before"), NodeId("more:after")
"""The nodes that stand for what a part leaves out: on its way in, and on its way out."""


def neighbourhood(graph: Graph, node_id: NodeId, steps: int) -> frozenset[NodeId]:
    """Return the nodes that at most so many uses lie between, against or along the data."""
    found = {node_id}
    edge = {node_id}
    for _ in range(steps):
        edge = {*_sources(graph, edge), *_targets(graph, edge)} - found
        found |= edge
    return frozenset(found)


def between(graph: Graph, start: NodeId, end: NodeId) -> frozenset[NodeId]:
    """Return the nodes on all paths from one node to another, in either order.

    Empty when neither has any part in the making of the other.
    """
    for first, last in ((start, end), (end, start)):
        after = _reached(first, lambda some: _targets(graph, some))
        if last in after:
            return frozenset(after & _reached(last, lambda some: _sources(graph, some)))
    return frozenset()


def part(graph: Graph, kept: Collection[NodeId]) -> Graph:
    """Return the graph of these nodes; two groups say what they use and what uses them."""
    edges: list[Edge] = []
    before: set[NodeId] = set()
    after: set[NodeId] = set()
    incoming: dict[NodeId, int] = {}
    outgoing: dict[NodeId, int] = {}
    for edge in graph.edges:
        if edge.target in kept:
            if edge.source in kept:
                edges.append(edge)
            else:
                before.add(edge.source)
                incoming[edge.target] = incoming.get(edge.target, 0) + 1
        elif edge.source in kept:
            after.add(edge.target)
            outgoing[edge.source] = outgoing.get(edge.source, 0) + 1
    edges = [
        *(Edge(BEFORE, node, (-1,), uses) for node, uses in incoming.items()),
        *edges,
        *(Edge(node, AFTER, (), uses) for node, uses in outgoing.items()),
    ]
    nodes = [node for node in graph.nodes if node.id in kept]
    if before:
        nodes.insert(0, _more(BEFORE, len(before), "are used by these"))
    if after:
        nodes.append(_more(AFTER, len(after), "use these"))
    return replace(
        graph,
        nodes=tuple(nodes),
        edges=tuple(edges),
        outputs=tuple(output for output in graph.outputs if output in kept),
    )


def _more(node_id: NodeId, count: int, what: str) -> Node:
    return Node(
        node_id, NodeKind.GROUP, f"{count} more", "", attributes=(("they", what),), size=count
    )


def _reached(start: NodeId, step: Callable[[Iterable[NodeId]], set[NodeId]]) -> set[NodeId]:
    found = {start}
    edge = {start}
    while edge:
        edge = step(edge) - found
        found |= edge
    return found


def _sources(graph: Graph, nodes: Iterable[NodeId]) -> set[NodeId]:
    return {edge.source for node in nodes for edge in graph.entering.get(node, ())}


def _targets(graph: Graph, nodes: Iterable[NodeId]) -> set[NodeId]:
    return {edge.target for node in nodes for edge in graph.leaving.get(node, ())}
