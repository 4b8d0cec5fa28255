"""The graph of one Relax function, as plain frozen data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NewType

import networkx as nx

NodeId = NewType("NodeId", str)
"""A node's name within its function: stable across passes that keep the variable's name."""

OUTPUT = NodeId("return")
"""What edges lead to that carry what the function returns; no node has this id."""


class NodeKind(Enum):
    """What a node is; the value is also its class in pictures."""

    PARAM = "param"
    CONSTANT = "constant"
    CALL_TIR = "call_tir"
    CALL_DPS_PACKED = "call_dps_packed"
    OPERATOR = "operator"
    CALL_FUNCTION = "call_function"
    TUPLE = "tuple"
    TUPLE_GET_ITEM = "tuple_get_item"
    MATCH_CAST = "match_cast"
    OTHER = "other"


class Resolution(Enum):
    """What a callee's name leads to when the module runs."""

    PRIM_FUNC = "prim_func"
    FUNCTION = "function"
    LIBRARY = "library"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Literal:
    """An argument written at its use: a number, a shape, a string."""

    position: tuple[int, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Node:
    """One binding, parameter or constant of a function."""

    id: NodeId
    kind: NodeKind
    name: str
    type_label: str
    callee: str = ""
    resolution: Resolution | None = None
    literals: tuple[Literal, ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()
    block: int | None = None


@dataclass(frozen=True, slots=True)
class Edge:
    """One use of a node's value: `position` is where among the target's arguments.

    A position has one number, or one more for each level of a nested tuple.
    """

    source: NodeId
    target: NodeId
    position: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """One binding block of the function's body."""

    index: int
    is_dataflow: bool


@dataclass(frozen=True, slots=True)
class Graph:
    """A Relax function as nodes and edges, in the order of its text."""

    function: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    blocks: tuple[Block, ...]
    outputs: tuple[NodeId, ...]

    def __getitem__(self, node_id: str) -> Node:
        """Return the node with this id; raise KeyError with the ids there are."""
        for node in self.nodes:
            if node.id == node_id:
                return node
        known = ", ".join(repr(str(node.id)) for node in self.nodes)
        raise KeyError(f"{node_id!r} is no node of {self.function!r}; its nodes are {known}")

    def to_networkx(self) -> nx.MultiDiGraph[NodeId]:
        """Return the graph as a `networkx.MultiDiGraph`, one edge a use.

        Nodes carry `kind`, `name`, `type_label`, `callee`, `resolution` and `block`; an edge's
        key and `position` are the argument position it enters at. The graph's own attributes
        are `function` and `outputs`.
        """
        graph: nx.MultiDiGraph[NodeId] = nx.MultiDiGraph(
            function=self.function, outputs=self.outputs
        )
        for node in self.nodes:
            graph.add_node(
                node.id,
                kind=node.kind.value,
                name=node.name,
                type_label=node.type_label,
                callee=node.callee,
                resolution=node.resolution.value if node.resolution else "",
                block=node.block,
            )
        for edge in self.edges:
            graph.add_edge(edge.source, edge.target, key=edge.position, position=edge.position)
        return graph
