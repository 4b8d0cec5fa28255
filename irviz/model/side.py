"""One of two graphs that are compared, and what is asked of each of its nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from irviz.model.graph import OUTPUT, Edge, Graph, Node, NodeId, NodeKind, RegionKind


class Side:
    """A graph with what is asked of it again and again."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.frames = list(_frames(graph))
        self.params = [n for n in graph.nodes if n.kind is NodeKind.PARAM and n.region is None]

    def frame(self, node: Node) -> object:
        """Return which branches and functions a node stands in: their kinds, not whose."""
        return () if node.region is None else self.frames[node.region]

    def operands(self, node_id: NodeId) -> tuple[Edge, ...]:
        """Return the uses of other values by a node."""
        return tuple(self.graph.entering.get(node_id, ()))

    def made_of(self, node: Node) -> list[Edge]:
        """Return the uses of what stands before a node: no edge that leads back."""
        index = self.graph.index
        at, entering = index[node.id], self.graph.entering.get(node.id, ())
        return [edge for edge in entering if index[edge.source] < at]

    def uses(self, node: Node) -> Counter[object]:
        """Return what is done with a node's value, and where among the operands it is."""
        leaving = self.graph.leaving.get(node.id, ())
        users: Counter[object] = Counter(
            (does(self.node(edge.target)), edge.position) for edge in leaving
        )
        users[OUTPUT] = self.graph.outputs.count(node.id)
        return users

    def node(self, node_id: NodeId) -> Node:
        """Return the node with this id."""
        return self.graph.nodes[self.graph.index[node_id]]

    def free(self, taken: Mapping[NodeId, NodeId]) -> Iterator[Node]:
        """Return the nodes that are not taken."""
        return (node for node in self.graph.nodes if node.id not in taken)


def does(node: Node) -> tuple[NodeKind, int]:
    """Return what is equal for nodes that do the same with their operands."""
    return node.kind, node.structure


def do_the_same(node: Node, other: Node) -> bool:
    """Tell whether two nodes do the same, whatever their operands."""
    return does(node) == does(other)


def _frames(graph: Graph) -> Iterator[tuple[object, ...]]:
    made: list[tuple[object, ...]] = []
    for region in graph.regions:
        around = () if region.parent is None else made[region.parent]
        if region.kind is RegionKind.BRANCH:
            around = (*around, (region.kind, region.name))
        elif region.kind is RegionKind.FUNCTION:
            around = (*around, (region.kind, ""))
        made.append(around)
        yield around
