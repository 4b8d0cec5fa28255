"""Parts of a graph: the nodes near a node, between two nodes, or found by words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from irviz.model.graph.graph import Edge, Graph, Node, NodeId, NodeKind

BEFORE, AFTER = NodeId("more:before"), NodeId("more:after")
"""The groups that stand for the operands and users left out of a subgraph."""


def neighbourhood(graph: Graph, node_id: NodeId, steps: int) -> frozenset[NodeId]:
    """Return the nodes that are at most this many edges away, in either direction."""
    return frozenset(
        _reached(node_id, lambda some: _sources(graph, some) | _targets(graph, some), steps)
    )


def nodes_between(graph: Graph, start: NodeId, end: NodeId) -> frozenset[NodeId]:
    """Return the nodes on all paths between two nodes, in either direction.

    Empty if there is no path.
    """
    for first, last in ((start, end), (end, start)):
        after = _reached(first, lambda some: _targets(graph, some))
        if last in after:
            return frozenset(after & _reached(last, lambda some: _sources(graph, some)))
    return frozenset()


def subgraph(graph: Graph, kept: Collection[NodeId]) -> Graph:
    """Return the graph of some nodes, with one group for their operands and one for their users."""
    edges: list[Edge] = []
    before: set[NodeId] = set()
    after: set[NodeId] = set()
    incoming: Counter[NodeId] = Counter()
    outgoing: Counter[NodeId] = Counter()
    for edge in graph.edges:
        if edge.target in kept:
            if edge.source in kept:
                edges.append(edge)
            else:
                before.add(edge.source)
                incoming[edge.target] += 1
        elif edge.source in kept:
            after.add(edge.target)
            outgoing[edge.source] += 1
    edges = [
        *(Edge(BEFORE, node, (-1,), uses) for node, uses in incoming.items()),
        *edges,
        *(Edge(node, AFTER, (), uses) for node, uses in outgoing.items()),
    ]
    nodes = [node for node in graph.nodes if node.id in kept]
    if before:
        nodes.insert(0, _group(BEFORE, len(before), "are used by these"))
    if after:
        nodes.append(_group(AFTER, len(after), "use these"))
    return replace(
        graph,
        nodes=tuple(nodes),
        edges=tuple(edges),
        outputs=tuple(output for output in graph.outputs if output in kept),
    )


def _group(node_id: NodeId, count: int, role: str) -> Node:
    return Node(
        node_id, NodeKind.GROUP, f"{count} more", "", attributes=(("they", role),), size=count
    )


def _reached(
    start: NodeId, step: Callable[[Iterable[NodeId]], set[NodeId]], most: float = math.inf
) -> set[NodeId]:
    reached = {start}
    frontier = {start}
    while frontier and most > 0:
        frontier = step(frontier) - reached
        reached |= frontier
        most -= 1
    return reached


def _sources(graph: Graph, nodes: Iterable[NodeId]) -> set[NodeId]:
    return {edge.source for node in nodes for edge in graph.entering.get(node, ())}


def _targets(graph: Graph, nodes: Iterable[NodeId]) -> set[NodeId]:
    return {edge.target for node in nodes for edge in graph.leaving.get(node, ())}


MOST_FOUND = 200
"""The most nodes that are listed."""


def search_nodes(graph: Graph, words: str) -> tuple[NodeId, ...]:
    """Return the nodes with every word in their name, operator, callee or type, ignoring case.

    Nodes whose name or callee is the first word come first, then those whose name or callee starts
    with it; otherwise the order is that of the text. A saved file is searched by the page: by
    `search_nodes.ts`, which is tested with the same cases as this.
    """
    terms = [word.removeprefix("relax.") for word in words.lower().split()]
    if not terms:
        return ()
    found = []
    for index, node in enumerate(graph.nodes):
        text = search_text(node)
        if all(word in text for word in terms):
            found.append((_rank(text, terms[0]), index, node.id))
    return tuple(node_id for _, _, node_id in sorted(found))


def search_text(node: Node) -> str:
    """Return what words are looked for in: name, callee and more in lines, all in lower case."""
    callee, operator = (one.removeprefix("relax.") for one in (node.callee, node.operator))
    return "\n".join((node.name, callee, node.id, operator, node.type_label)).lower()


def _rank(text: str, word: str) -> int:
    names = text.split("\n")[:2]
    if word in names:
        return 0
    return 1 if any(name.startswith(word) for name in names) else 2
