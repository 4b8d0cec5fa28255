"""Where the values of a graph are computed, seen through names, buffers, casts and layouts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from irviz.model.graph.graph import CALLEE, INPUT_KINDS, Graph, Node, NodeId, NodeKind
from irviz.model.matching.operation_names import (
    is_alias,
    is_allocation,
    is_call,
    is_representation,
    operation_name,
)

Position = tuple[int, ...]


class Number(NamedTuple):
    """A number that is written in a call, as text."""

    text: str


Origin = NodeId | Number
"""What computes the elements of a value."""


class ValueOrigins:
    """The node that computes each value of a graph.

    A call that writes to buffers computes their values. An alias has the value of its operand. A
    cast, a transposition or a copy to a device has the elements of its operand.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._sources: dict[NodeId, NodeId] = {}
        self._origins: dict[NodeId, Origin] = {}
        self._computing: dict[NodeId, NodeId] = {}
        self._names: dict[NodeId, list[NodeId]] = {}
        self._buffers: dict[NodeId, list[NodeId]] = {}
        for node in graph.nodes:
            edges = graph.operands(node.id)
            if is_alias(node, edges):
                self._name(node.id, edges[0].source)
                self._names.setdefault(self.computing(node.id), []).append(node.id)
                continue
            if is_representation(node) and edges:
                self._sources[node.id] = edges[0].source
                self._origins[node.id] = self.origin(edges[0].source)
            elif (is_representation(node) or node.kind is NodeKind.VALUE) and node.literals:
                self._origins[node.id] = Number(node.literals[0].text)
            if is_call(node) and not node.is_pure and not graph.leaving.get(node.id):
                self._write(node)

    def _name(self, node_id: NodeId, source: NodeId) -> None:
        self._sources[node_id] = source
        self._computing[node_id] = self.computing(source)
        self._origins[node_id] = self.origin(source)

    def _write(self, call: Node) -> None:
        """Take the last arguments of a call as its results if they are buffers without a value."""
        for edge in reversed(self.graph.operands(call.id)):
            if not is_allocation(self.graph[edge.source]) or edge.source in self._computing:
                break
            self._name(edge.source, call.id)
            self._buffers.setdefault(call.id, []).append(edge.source)

    def computing(self, node_id: NodeId) -> NodeId:
        """Return the node that computes a value, which may have several names."""
        return self._computing.get(node_id, node_id)

    def origin(self, node_id: NodeId) -> Origin:
        """Return the node that computes the elements of a value, or a number."""
        return self._origins.get(node_id, node_id)

    def path(self, node_id: NodeId) -> Iterator[NodeId]:
        """Yield the nodes from a value to the one that computes its elements."""
        found: NodeId | None = node_id
        while found is not None:
            yield found
            found = self._sources.get(found)

    def names(self, node_id: NodeId) -> Sequence[NodeId]:
        """Return all nodes that have the value that a node computes, the node itself last.

        A call that writes to buffers has no value of its own, but comes last, too.
        """
        if node_id not in self._names and node_id not in self._buffers:
            return (node_id,)
        return (*self._names.get(node_id, ()), *self._buffers.get(node_id, ()), node_id)

    def arguments(self, node: Node) -> Iterator[tuple[Position, NodeId]]:
        """Yield the operands of a node with their positions, except buffers that it writes."""
        written = self._buffers.get(node.id, ())
        for edge in self.graph.operands(node.id):
            if edge.source not in written and edge.position != CALLEE:
                yield edge.position, edge.source

    def is_computation(self, node: Node) -> bool:
        """Return whether a node computes elements, rather than naming or moving them."""
        is_moved = node.id in self._origins or is_allocation(node)
        return node.kind not in INPUT_KINDS and not is_moved

    @cached_property
    def operations(self) -> frozenset[str]:
        """The names of all operations in the graph."""
        return frozenset(operation_name(node.callee) for node in self.graph.nodes if node.callee)

    @cached_property
    def representations(self) -> dict[Origin, list[NodeId]]:
        """The casts, transpositions and copies of each value."""
        found: dict[Origin, list[NodeId]] = {}
        for node_id in filter(self.is_representation, self._origins):
            found.setdefault(self.origin(node_id), []).append(node_id)
        return found

    def is_representation(self, node_id: NodeId) -> bool:
        """Return whether a node is a cast, a transposition or a copy of another value."""
        return node_id in self._origins and node_id not in self._computing

    def type_label(self, node_id: NodeId) -> str:
        """Return the type of the value that a node computes."""
        return self.graph[self.names(node_id)[0]].type_label

    @cached_property
    def users(self) -> dict[Origin, list[NodeId]]:
        """The computations that use the elements of each node."""
        found: dict[Origin, list[NodeId]] = {}
        for node in filter(self.is_computation, self.graph.nodes):
            for _, source in self.arguments(node):
                found.setdefault(self.origin(source), []).append(node.id)
        return found
