"""The graph of one Relax function, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import NamedTuple, NewType

import networkx as nx

NodeId = NewType("NodeId", str)
"""A node's name within its function: stable across passes that keep the variable's name."""

OUTPUT = NodeId("return")
"""What edges lead to that carry what the function returns; no node has this id."""

CALLEE: tuple[int, ...] = ()
"""The position of the edge that carries what is called: a closure is a value like others."""


class NodeKind(Enum):
    """What a node is; the value is also its class in pictures."""

    PARAM = "param"
    CONSTANT = "constant"
    CALL_TIR = "call_tir"
    CALL_DPS_PACKED = "call_dps_packed"
    CALL_PACKED = "call_packed"
    CALL_FUNCTION = "call_function"
    OPERATOR = "operator"
    TUPLE = "tuple"
    TUPLE_GET_ITEM = "tuple_get_item"
    MATCH_CAST = "match_cast"
    IF = "if"
    FUNCTION = "inner_function"
    VALUE = "plain_value"
    OTHER = "other"
    BLOCK = "block"
    ALLOC = "alloc"
    GROUP = "group"


LEAVES = (NodeKind.PARAM, NodeKind.CONSTANT)
"""Kinds of nodes that no edge enters and no binding makes."""


class Resolution(Enum):
    """What a callee's name leads to when the module runs."""

    PRIM_FUNC = "prim_func"
    FUNCTION = "function"
    PYTHON = "python"
    LIBRARY = "library"
    UNKNOWN = "unknown"


class Literal(NamedTuple):
    """An argument written at its use: a number, a shape, a string."""

    position: tuple[int, ...]
    text: str


class Node(NamedTuple):
    """One binding, parameter or constant of a function, or a group of them.

    `callee` is the name that is called and `operator` the Op that calls it: "relax.call_tir", or
    the callee itself where that is an Op, or "" where a function is called directly. `structure`
    is equal for nodes that do the same with their operands: names have no part in it. `region`
    is the index of the innermost region of the graph it stands in. `size` counts the nodes that a
    group stands for. `type_text` is what has the type's label as its text: a large graph makes
    only those that are read.
    """

    id: NodeId
    kind: NodeKind
    name: str
    type_text: object
    callee: str = ""
    resolution: Resolution | None = None
    literals: tuple[Literal, ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()
    region: int | None = None
    operator: str = ""
    is_pure: bool = True
    structure: int = 0
    size: int = 1

    @property
    def type_label(self) -> str:
        """The type of the node's value, as short text."""
        return str(self.type_text)


class Edge(NamedTuple):
    """One use of a node's value: `position` is where among the target's arguments.

    A position has one number, or one more for each level of a nested tuple; none for CALLEE. An
    IF has its condition at 0, what its branches give at 1 and 2; a FUNCTION what it returns at 0.
    `uses` is above one where a group's edge stands for several; `is_carried` where a value goes
    from one copy of a repeat to the next; `is_other` where it is used by, or comes from, another
    copy than the one that is drawn. `is_write` where the target is a buffer, and the source a
    call that writes into it.
    """

    source: NodeId
    target: NodeId
    position: tuple[int, ...]
    uses: int = 1
    is_carried: bool = False
    is_other: bool = False
    is_write: bool = False


class RegionKind(Enum):
    """What a part of a function is; the value is also its class in pictures."""

    BINDING_BLOCK = "binding_block"
    DATAFLOW_BLOCK = "dataflow"
    BRANCH = "branch"
    FUNCTION = "function"
    REPEAT = "repeat"
    PART = "part"


class Region(NamedTuple):
    """A part of a function that nodes and regions stand in: a block, a branch, a function.

    `parent` is the index of the region around it in the graph's `regions`, None for the function
    itself. `owner` is the node whose value it makes: the IF of a branch, the FUNCTION of a body.
    `id` is what it is opened and closed by, where it can be.
    """

    kind: RegionKind
    name: str = ""
    parent: int | None = None
    owner: NodeId | None = None
    id: str = ""


@dataclass(frozen=True)
class Graph:
    """A Relax function as nodes and edges, in the order of its text.

    What a region holds comes before its owner, so that edges lead forwards; only a function that
    calls itself has edges that lead back.
    """

    function: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    regions: tuple[Region, ...]
    outputs: tuple[NodeId, ...]
    attributes: tuple[tuple[str, str], ...] = field(default=(), kw_only=True)

    def __getitem__(self, node_id: str) -> Node:
        """Return the node with this id; raise KeyError with the ids there are."""
        index = self.index.get(NodeId(node_id))
        if index is not None:
            return self.nodes[index]
        known = ", ".join(repr(str(node.id)) for node in self.nodes[:20])
        more = f" and {len(self.nodes) - 20} more" if len(self.nodes) > 20 else ""
        raise KeyError(f"{node_id!r} is no node of {self.function!r}; its nodes are {known}{more}")

    @cached_property
    def index(self) -> Mapping[NodeId, int]:
        """Where in `nodes` the node of each id is."""
        return {node.id: index for index, node in enumerate(self.nodes)}

    @cached_property
    def entering(self) -> Mapping[NodeId, Sequence[Edge]]:
        """The edges that enter each node, in their order; a node without any has no entry."""
        entering: dict[NodeId, list[Edge]] = {}
        for edge in self.edges:
            entering.setdefault(edge.target, []).append(edge)
        return entering

    @cached_property
    def leaving(self) -> Mapping[NodeId, Sequence[Edge]]:
        """The edges that leave each node, in their order; a node without any has no entry."""
        leaving: dict[NodeId, list[Edge]] = {}
        for edge in self.edges:
            leaving.setdefault(edge.source, []).append(edge)
        return leaving

    def to_networkx(self) -> nx.MultiDiGraph[NodeId]:
        """Return the graph as a `networkx.MultiDiGraph`, one edge a use.

        Nodes carry `kind`, `name`, `type_label`, `callee`, `operator`, `resolution`, `is_pure`
        and `region`; an edge's key and `position` are the argument position it enters at. The
        graph's own attributes are `function` and `outputs`.
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
                operator=node.operator,
                resolution=node.resolution.value if node.resolution else "",
                is_pure=node.is_pure,
                region=node.region,
            )
        for edge in self.edges:
            graph.add_edge(edge.source, edge.target, key=edge.position, position=edge.position)
        return graph
