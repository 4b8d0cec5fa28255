"""Where the values of a graph are computed, seen through names, buffers, casts and layouts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from irviz.model.graph.graph import CALLEE, INPUT_KINDS, Graph, Node, NodeId, NodeKind
from irviz.model.matching.operation_names import (
    is_alias,
    is_allocation,
    is_call,
    operation_name,
    representations,
)

Position = tuple[int, ...]

_NAMING = (NodeKind.VALUE, NodeKind.TUPLE_GET_ITEM)


class Number(NamedTuple):
    """A number that is written in a call, as text."""

    text: str


class Constant(NamedTuple):
    """A constant of a module; those of one type are not told apart."""

    type_label: str


Origin = NodeId | Number | Constant
"""What computes the elements of a value."""


class ValueOrigins:
    """The node that computes each value of a graph.

    A call that writes to buffers computes their values. An alias has the value of its operand, and
    an item of a tuple literal has that of the tuple's operand. A cast, a transposition or a copy to
    a device has the elements of its operand.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._sources: dict[NodeId, NodeId] = {}
        self._origins: dict[NodeId, Origin] = {}
        self._computing: dict[NodeId, NodeId] = {}
        self._names: dict[NodeId, list[NodeId]] = {}
        self._written: dict[NodeId, Mapping[Position, NodeId]] = {}
        self._items: dict[NodeId, tuple[Position, NodeId]] = {}
        moves = {node.id for node in representations(graph.nodes)}
        for node in graph.nodes:
            edges = graph.operands(node.id) if node.kind in _NAMING or node.id in moves else ()
            if node.kind is NodeKind.CONSTANT:
                self._origins[node.id] = Constant(node.type_label)
            elif is_alias(node, edges):
                self._name(node.id, edges[0].source)
            elif node.kind is NodeKind.TUPLE_GET_ITEM and edges:
                self._take_item(node, edges[0].source)
            elif node.kind is NodeKind.TUPLE:
                self._take_tuple(node)
            elif node.id in moves and edges:
                self._sources[node.id] = edges[0].source
                self._origins[node.id] = self.origin(edges[0].source)
            elif (node.id in moves or node.kind is NodeKind.VALUE) and node.literals:
                self._origins[node.id] = Number(node.literals[0].text)
            if not node.is_pure and is_call(node) and not graph.leaving.get(node.id):
                self._write(node)

    def _name(self, node_id: NodeId, source: NodeId) -> None:
        self._sources[node_id] = source
        self._computing[node_id] = self.computing(source)
        self._origins[node_id] = self.origin(source)
        self._names.setdefault(self.computing(source), []).append(node_id)

    def _take_item(self, node: Node, source: NodeId) -> None:
        computing = self.computing(source)
        at = (int(dict(node.attributes)["index"]),)
        items = self._tuple(computing) or self._written.get(computing, {})
        if at in items:
            self._name(node.id, items[at])
        else:
            self._items[node.id] = at, source

    def _tuple(self, node_id: NodeId) -> Mapping[Position, NodeId]:
        """Return the operands of a tuple literal; those of a nested tuple have longer positions."""
        is_tuple = self.graph[node_id].kind is NodeKind.TUPLE
        edges = self.graph.operands(node_id) if is_tuple else ()
        return {edge.position: edge.source for edge in edges}

    def _take_tuple(self, node: Node) -> None:
        """Take a tuple of all buffers that a call writes as the call's value."""
        items = self._tuple(node.id)
        first = self._items.get(items[0,]) if (0,) in items else None
        if first and items == self._written.get(first[1]):
            self._name(node.id, first[1])

    def _write(self, call: Node) -> None:
        """Take the last arguments of a call as its results if they are buffers without a value."""
        buffers: list[NodeId] = []
        for edge in reversed(self.graph.operands(call.id)):
            is_taken = edge.source in self._computing or edge.source in self._items
            if is_taken or not is_allocation(self.graph[edge.source]):
                break
            buffers.insert(0, edge.source)
        written: dict[Position, NodeId] = {(at,): one for at, one in enumerate(buffers)}
        if len(buffers) == 1:
            self._name(buffers[0], call.id)
        else:
            self._items.update((one, (at, call.id)) for at, one in written.items())
        if buffers:
            self._written[call.id] = written

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
        return (*self._names.get(node_id, ()), node_id)

    def is_name(self, node_id: NodeId) -> bool:
        """Return whether a node has a value that another one computes."""
        return node_id in self._computing

    def is_item(self, node_id: NodeId) -> bool:
        """Return whether a node is an item of the tuple that another one computes."""
        return node_id in self._items

    def arguments(self, node: Node) -> Iterator[tuple[Position, NodeId]]:
        """Yield the operands of a node with their positions, except buffers that it writes.

        The operand of an item is the tuple, and its position the index.
        """
        if node.id in self._items:
            yield self._items[node.id]
            return
        written = self._written.get(node.id, {}).values()
        for edge in self.graph.operands(node.id):
            if edge.source not in written and edge.position != CALLEE:
                yield edge.position, edge.source

    def is_computation(self, node: Node) -> bool:
        """Return whether a node computes elements, rather than naming or moving them."""
        is_memory = is_allocation(node) and node.id not in self._items
        is_moved = node.id in self._origins or is_memory
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
        is_other = node_id in self._origins and node_id not in self._computing
        return is_other and self.graph[node_id].kind is not NodeKind.CONSTANT

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
