"""The corresponding nodes of two graphs: the same value, or the same role with another operation.

The steps are those of algorithms that compare trees and programs. Nodes that are known to be the
same come first, as unique lines do in patience diff; then nodes that are equal including all of
their operands, as isomorphic subtrees in GumTree (Falleri et al., 2014) and as in value numbering;
then nodes with the same uses, from the outputs backwards; and last nodes with the same name, unless
something contradicts the name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from types import MappingProxyType

from irviz.model.graph.graph import (
    INPUT_KINDS,
    OUTPUT,
    Edge,
    Graph,
    Node,
    NodeId,
    NodeKind,
    RegionKind,
)

_NUMBERED = re.compile(r"[lg]v\d*(#\d+)?")
"""Names from TVM's builder, which numbers the variables of each function from the start."""

_MAX_CANDIDATES = 8  # nodes with the same value that are considered as a partner

_NONE: Mapping[NodeId, NodeId] = MappingProxyType({})


def correspondence(
    graph: Graph, reference: Graph, identical: Mapping[NodeId, NodeId] = _NONE
) -> Mapping[NodeId, NodeId]:
    """Match the nodes of two graphs one to one, in time proportional to the number of edges.

    Inputs are matched by name, then by position if both graphs have as many. Another node is
    matched with a node that has

    1. the same operation on corresponding operands, or
    2. the same position among the operands of corresponding nodes, or
    3. the same name, if it has the same type and operands (it calls another function), or the same
       callee and no operand that is known to correspond to another one.

    A name is ignored if an unmatched node elsewhere has the operation of one of the two. Passes
    reuse the names `lv`, `lv1`, …: they only count if no name was added or removed, or if the
    values have the same uses.

    Args:
        reference: The graph that its nodes are matched with.
        identical: Pairs that are known, such as nodes of the same variable.

    Returns:
        The node of the reference for each node that has one.
    """
    matching = _Matching(_Side(graph), _Side(reference))
    for node_id, other in identical.items():
        if node_id in graph.index and other in reference.index:
            matching.pair(node_id, other)
    matching.inputs()
    matching.number()
    matching.forwards()
    matching.outputs()
    matching.backwards()
    matching.by_name()
    matching.outputs(even_elsewhere=True)
    matching.backwards()
    return {node.id: matching.found[node.id] for node in graph.nodes if node.id in matching.found}


def compose(*steps: Mapping[NodeId, NodeId]) -> Mapping[NodeId, NodeId]:
    """Compose correspondences, from the nodes of the first to the partners in the last.

    Stages that are several steps apart are matched step by step: each step keeps most variables,
    so more nodes are matched than between the two directly.
    """
    first, *others = steps
    found = dict(first)
    for step in others:
        found = {one: step[other] for one, other in found.items() if other in step}
    return found


class _Matching:
    """The pairs that are matched so far.

    Attributes:
        found: The partner of each matched node.
        back: The matched node of each partner.
        mine: The value numbers of the graph's nodes.
        theirs: The value numbers of the reference's nodes.
        alike: The reference's nodes by operation and operands.
    """

    def __init__(self, side: _Side, other: _Side) -> None:
        self.side, self.other = side, other
        self.found: dict[NodeId, NodeId] = {}
        self.back: dict[NodeId, NodeId] = {}
        self.mine: dict[NodeId, int] = {}
        self.theirs: dict[NodeId, int] = {}
        self.alike: dict[object, dict[NodeId, None]] = {}

    def pair(self, node_id: NodeId, other: NodeId) -> None:
        """Match two nodes, unless one of them is matched already."""
        if node_id not in self.found and other not in self.back:
            self.found[node_id], self.back[other] = other, node_id

    def inputs(self) -> None:
        """Match parameters and constants by name, then parameters by position."""
        named: dict[tuple[object, str], list[NodeId]] = {}
        for node in self.other.free(self.back):
            if node.kind in INPUT_KINDS and node.name:
                named.setdefault((self.other.scope(node), node.name), []).append(node.id)
        for node in self.side.free(self.found):
            left = (
                named.get((self.side.scope(node), node.name)) if node.kind in INPUT_KINDS else None
            )
            if left:
                self.pair(node.id, left.pop(0))
        if len(self.side.params) == len(self.other.params):
            for mine, theirs in zip(self.side.params, self.other.params, strict=True):
                if mine.type_label == theirs.type_label:
                    self.pair(mine.id, theirs.id)

    def number(self) -> None:
        """Give numbers to the values of the reference; equal operations on equal values are one.

        A node with an effect or without operands is a value of its own: two allocations of storage
        look the same and are not.
        """
        for index, node in enumerate(self.other.graph.nodes):
            self.theirs[node.id] = index
            if node.kind not in INPUT_KINDS:
                same = self.alike.setdefault(self._key(self.other, node, self.theirs), {})
                if same and self._is_one_value(self.other, node):
                    self.theirs[node.id] = self.theirs[next(iter(same))]
                same[node.id] = None

    def forwards(self) -> None:
        """Match nodes with the same operation on the same values, from the inputs on."""
        self.mine = {}
        for node in self.side.graph.nodes:
            self._by_structure(node)

    def _by_structure(self, node: Node) -> None:
        """Give a node its value number, if the reference has one, and a partner, if one is free."""
        if node.id not in self.found and node.kind not in INPUT_KINDS:
            same = self.alike.get(self._key(self.side, node, self.mine), {})
            left = list(islice((one for one in same if one not in self.back), _MAX_CANDIDATES))
            if left:
                # prefer the same name, then a name that this graph does not have
                known = self.side.graph.index
                strangers = (one for one in left if one not in known)
                is_there = node.id in same and node.id not in self.back
                self.pair(node.id, node.id if is_there else next(strangers, left[0]))
                while same and next(iter(same)) in self.back and len(same) > 1:
                    del same[next(iter(same))]
            elif same and self._is_one_value(self.side, node):
                self.mine[node.id] = self.theirs[next(iter(same))]
        if node.id in self.found:
            self.mine[node.id] = self.theirs[self.found[node.id]]

    @staticmethod
    def _key(side: _Side, node: Node, numbers: Mapping[NodeId, int]) -> object:
        edges = side.made_of(node)
        operands = [(edge.position, numbers.get(edge.source, edge.source)) for edge in edges]
        return (node.kind, node.structure, side.scope(node), *operands)

    @staticmethod
    def _is_one_value(side: _Side, node: Node) -> bool:
        return node.is_pure and bool(side.made_of(node))

    def outputs(self, *, even_elsewhere: bool = False) -> None:
        """Match outputs by position; at first only those whose operation is nowhere else."""
        mine, theirs = self.side.graph.outputs, self.other.graph.outputs
        own = {_operation(node) for node in self.side.free(self.found)}
        others = {_operation(node) for node in self.other.free(self.back)}
        for output, other in zip(mine, theirs, strict=False) if len(mine) == len(theirs) else ():
            one, two = self.side.node(output), self.other.node(other)
            is_elsewhere = _operation(one) in others or _operation(two) in own
            is_certain = even_elsewhere or _have_same_operation(one, two) or not is_elsewhere
            if is_certain and self._may_correspond(output, other):
                self.pair(output, other)

    def backwards(self) -> None:
        """Match operands at equal positions of corresponding nodes, from the outputs backwards."""
        for node in reversed(self.side.graph.nodes):
            other = self.found.get(node.id)
            if other is None or node.kind in INPUT_KINDS:
                continue
            mine, theirs = self.side.operands(node.id), self.other.operands(other)
            if not _have_same_operation(node, self.other.node(other)) or len(mine) != len(theirs):
                continue
            free = [
                (a.source, b.source)
                for a, b in zip(mine, theirs, strict=True)
                if a.position == b.position
                and a.source not in self.found
                and b.source not in self.back
            ]
            for a, b in dict.fromkeys(free):
                # with several operands only the operation or the name tells which is which
                is_certain = len(set(free)) == 1 or self._looks_like(a, b)
                if is_certain and self._may_correspond(a, b) and self._is_used_alike(a, b):
                    self.pair(a, b)

    def _looks_like(self, node_id: NodeId, other: NodeId) -> bool:
        mine, theirs = self.side.node(node_id), self.other.node(other)
        return node_id == other or _have_same_operation(mine, theirs)

    def _may_correspond(self, node_id: NodeId, other: NodeId) -> bool:
        """Return whether two nodes may be matched by their uses: parameters may not."""
        mine, theirs = self.side.node(node_id), self.other.node(other)
        if NodeKind.PARAM in (mine.kind, theirs.kind):
            return False
        if self.side.scope(mine) != self.other.scope(theirs):
            return False
        return mine.type_label == theirs.type_label

    def _is_used_alike(self, node_id: NodeId, other: NodeId) -> bool:
        """Return whether no use by a matched node contradicts that two nodes correspond."""
        uses = {(edge.target, edge.position) for edge in self.other.graph.leaving.get(other, ())}
        for edge in self.side.graph.leaving.get(node_id, ()):
            user = self.found.get(edge.target)
            if user is None or (user, edge.position) in uses:
                continue
            if _have_same_operation(self.side.node(edge.target), self.other.node(user)):
                return False
        return True

    def by_name(self) -> None:
        """Match nodes of the same name if possible, and then nodes with the same operation."""
        mine = Counter(_operation(node) for node in self.side.free(self.found))
        theirs = Counter(_operation(node) for node in self.other.free(self.back))
        names = {node.id for node in self.side.free(self.found)}
        is_renamed = names != {node.id for node in self.other.free(self.back)}
        self.mine = {}
        for node in self.side.graph.nodes:
            is_new = node.id not in self.found
            self._by_structure(node)
            at = self.other.graph.index.get(node.id)
            if node.id not in self.found and at is not None:
                named = self.other.graph.nodes[at]
                is_elsewhere = mine[_operation(named)] or theirs[_operation(node)]
                if _have_same_operation(node, named) or not is_elsewhere:
                    self._by_name(node, named, is_renamed)
            partner = self.found.get(node.id)
            if is_new and partner is not None:
                self.mine[node.id] = self.theirs[partner]
                mine[_operation(node)] -= 1
                theirs[_operation(self.other.node(partner))] -= 1

    def _by_name(self, node: Node, named: Node, is_renamed: bool) -> None:
        if NodeKind.PARAM in (node.kind, named.kind):
            return
        if self.side.scope(node) != self.other.scope(named):
            return
        mine, theirs = self.side.operands(node.id), self.other.operands(named.id)
        sources = Counter(self.mine.get(edge.source) for edge in mine)
        if sources == Counter(
            self.theirs[edge.source] for edge in theirs
        ):  # another function may be called
            is_likely = not (is_renamed and _NUMBERED.fullmatch(node.id))
            is_likely = is_likely or self.side.uses(node) == self.other.uses(named)
            is_alike = node.type_label == named.type_label
            if is_likely and is_alike and self._is_used_alike(node.id, named.id):
                self.pair(node.id, named.id)
        is_same_call = node.callee == named.callee and node.operator == named.operator
        if is_same_call and node.kind is named.kind and len(mine) == len(theirs):
            pairs = list(zip(mine, theirs, strict=True))
            is_known = [self.mine.get(a.source) == self.theirs[b.source] for a, b in pairs]
            is_open = [a.source not in self.found and b.source not in self.back for a, b in pairs]
            if any(is_known) and all(map(max, is_known, is_open)):
                self.pair(node.id, named.id)


class _Side:
    """One of the two graphs, with the indices that matching needs."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.scopes = list(_scopes(graph))
        self.params = [n for n in graph.nodes if n.kind is NodeKind.PARAM and n.region is None]

    def scope(self, node: Node) -> object:
        """Return the kinds of branches and functions around a node."""
        return () if node.region is None else self.scopes[node.region]

    def operands(self, node_id: NodeId) -> tuple[Edge, ...]:
        """Return the edges that enter a node."""
        return tuple(self.graph.entering.get(node_id, ()))

    def made_of(self, node: Node) -> list[Edge]:
        """Return the edges that enter a node from nodes before it; recursion leads back."""
        index = self.graph.index
        at, entering = index[node.id], self.graph.entering.get(node.id, ())
        return [edge for edge in entering if index[edge.source] < at]

    def uses(self, node: Node) -> Counter[object]:
        """Return the operations that use a node's value, with its position among their operands."""
        leaving = self.graph.leaving.get(node.id, ())
        users: Counter[object] = Counter(
            (_operation(self.node(edge.target)), edge.position) for edge in leaving
        )
        users[OUTPUT] = self.graph.outputs.count(node.id)
        return users

    def node(self, node_id: NodeId) -> Node:
        """Return the node with this id."""
        return self.graph.nodes[self.graph.index[node_id]]

    def free(self, taken: Mapping[NodeId, NodeId]) -> Iterator[Node]:
        """Yield the nodes that are not matched."""
        return (node for node in self.graph.nodes if node.id not in taken)


def _operation(node: Node) -> tuple[NodeKind, int]:
    """Return a key that is equal for nodes with the same operation."""
    return node.kind, node.structure


def _have_same_operation(node: Node, other: Node) -> bool:
    """Return whether two nodes have the same operation."""
    return _operation(node) == _operation(other)


def _scopes(graph: Graph) -> Iterator[tuple[object, ...]]:
    scopes: list[tuple[object, ...]] = []
    for region in graph.regions:
        around = () if region.parent is None else scopes[region.parent]
        if region.kind is RegionKind.BRANCH:
            around = (*around, (region.kind, region.name))
        elif region.kind is RegionKind.FUNCTION:
            around = (*around, (region.kind, ""))
        scopes.append(around)
        yield around
