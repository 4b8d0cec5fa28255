"""Which nodes of two graphs correspond: the same value, or the same place with another operation.

The ways are those of the literature on comparing trees and programs. What is known to be the same
goes first, as unique lines do in patience diff; then what is equal with all that it is made of,
as in GumTree's search for isomorphic subtrees (Falleri and others, 2014) and in value numbering;
then what is used alike, from the results back; and names last, where nothing speaks against them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from itertools import islice
from types import MappingProxyType

from irviz.model.graph import LEAVES, Graph, Node, NodeId, NodeKind
from irviz.model.side import Side, do_the_same, does

_NUMBERED = re.compile(r"[lg]v\d*(#\d+)?")
"""Names that TVM's builder gives, beginning again for each function that it makes."""

_MOST_ALIKE = 8  # so many of one value are looked at for the one that fits best

_NONE: Mapping[NodeId, NodeId] = MappingProxyType({})


def correspondence(
    graph: Graph, reference: Graph, identical: Mapping[NodeId, NodeId] = _NONE
) -> Mapping[NodeId, NodeId]:
    """Return the node of the reference for each node that has one, one for one.

    `identical` says what is known, such as nodes of the same variable. Inputs are matched by
    name, and by position where there are as many. Then a node has the one that does the same with
    corresponding operands; or the one at the same place, where what uses it does the same; or the
    one of the same name, where it has the same type and operands (another function is called), or
    calls the same with operands of which none is known to be another. A name says nothing where
    what one of the two does is done elsewhere by a node that is not matched; and passes give the
    names `lv`, `lv1`, … again, which say something only where no name came or went, or where the
    value is used alike. It takes time in proportion to the edges.
    """
    matching = _Matching(Side(graph), Side(reference))
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


def composed(*steps: Mapping[NodeId, NodeId]) -> Mapping[NodeId, NodeId]:
    """Return where a chain of correspondences leads, from the first's nodes to the last's.

    Between two stages that are several steps apart more is found step by step, because each step
    leaves most of its variables as they are.
    """
    first, *others = steps
    found = dict(first)
    for step in others:
        found = {one: step[other] for one, other in found.items() if other in step}
    return found


class _Matching:
    """The pairs so far: `found` from the graph to the reference, `back` the other way.

    `mine` and `theirs` number the values, `alike` has the reference's nodes by what they do.
    """

    def __init__(self, side: Side, other: Side) -> None:
        self.side, self.other = side, other
        self.found: dict[NodeId, NodeId] = {}
        self.back: dict[NodeId, NodeId] = {}
        self.mine: dict[NodeId, int] = {}
        self.theirs: dict[NodeId, int] = {}
        self.alike: dict[object, dict[NodeId, None]] = {}

    def pair(self, node_id: NodeId, other: NodeId) -> None:
        """Match two nodes, unless one of them has another already."""
        if node_id not in self.found and other not in self.back:
            self.found[node_id], self.back[other] = other, node_id

    def inputs(self) -> None:
        """Match parameters and constants by their names, then parameters by position."""
        named: dict[tuple[object, str], list[NodeId]] = {}
        for node in self.other.free(self.back):
            if node.kind in LEAVES and node.name:
                named.setdefault((self.other.frame(node), node.name), []).append(node.id)
        for node in self.side.free(self.found):
            left = named.get((self.side.frame(node), node.name)) if node.kind in LEAVES else None
            if left:
                self.pair(node.id, left.pop(0))
        if len(self.side.params) == len(self.other.params):
            for mine, theirs in zip(self.side.params, self.other.params, strict=True):
                if mine.type_label == theirs.type_label:
                    self.pair(mine.id, theirs.id)

    def number(self) -> None:
        """Give the values of the reference numbers: what does the same with the same is one value.

        What has an effect or no operands is a value of its own: storage is allocated so.
        """
        for index, node in enumerate(self.other.graph.nodes):
            self.theirs[node.id] = index
            if node.kind not in LEAVES:
                same = self.alike.setdefault(self._key(self.other, node, self.theirs), {})
                if same and self._is_one_value(self.other, node):
                    self.theirs[node.id] = self.theirs[next(iter(same))]
                same[node.id] = None

    def forwards(self) -> None:
        """Match what does the same with the same values, from the inputs on."""
        self.mine = {}
        for node in self.side.graph.nodes:
            self._by_structure(node)

    def _by_structure(self, node: Node) -> None:
        """Give a node a number if the reference has its value, and a partner if one is free."""
        if node.id not in self.found and node.kind not in LEAVES:
            same = self.alike.get(self._key(self.side, node, self.mine), {})
            left = list(islice((one for one in same if one not in self.back), _MOST_ALIKE))
            if left:
                # the one of the same name, else one whose name is not here
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
    def _key(side: Side, node: Node, numbers: Mapping[NodeId, int]) -> object:
        edges = side.made_of(node)
        operands = [(edge.position, numbers.get(edge.source, edge.source)) for edge in edges]
        return (node.kind, node.structure, side.frame(node), *operands)

    @staticmethod
    def _is_one_value(side: Side, node: Node) -> bool:
        return node.is_pure and bool(side.made_of(node))

    def outputs(self, *, even_elsewhere: bool = False) -> None:
        """Match what is returned, by its place; not what could be another node's, at first."""
        mine, theirs = self.side.graph.outputs, self.other.graph.outputs
        own = {does(node) for node in self.side.free(self.found)}
        others = {does(node) for node in self.other.free(self.back)}
        for output, other in zip(mine, theirs, strict=False) if len(mine) == len(theirs) else ():
            one, two = self.side.node(output), self.other.node(other)
            is_elsewhere = does(one) in others or does(two) in own
            is_told = even_elsewhere or do_the_same(one, two) or not is_elsewhere
            if is_told and self._may_stand_for(output, other):
                self.pair(output, other)

    def backwards(self) -> None:
        """Match what is used at the same place by nodes that correspond, from the results back."""
        for node in reversed(self.side.graph.nodes):
            other = self.found.get(node.id)
            if other is None or node.kind in LEAVES:
                continue
            mine, theirs = self.side.operands(node.id), self.other.operands(other)
            if not do_the_same(node, self.other.node(other)) or len(mine) != len(theirs):
                continue
            free = [
                (a.source, b.source)
                for a, b in zip(mine, theirs, strict=True)
                if a.position == b.position
                and a.source not in self.found
                and b.source not in self.back
            ]
            for a, b in dict.fromkeys(free):
                # of several operands each could be the other: what it does must tell
                is_told = len(set(free)) == 1 or self._looks_like(a, b)
                if is_told and self._may_stand_for(a, b) and self._is_used_alike(a, b):
                    self.pair(a, b)

    def _looks_like(self, node_id: NodeId, other: NodeId) -> bool:
        mine, theirs = self.side.node(node_id), self.other.node(other)
        return node_id == other or do_the_same(mine, theirs)

    def _may_stand_for(self, node_id: NodeId, other: NodeId) -> bool:
        """Tell whether a node could have the value of another: an input is given, not made."""
        mine, theirs = self.side.node(node_id), self.other.node(other)
        if NodeKind.PARAM in (mine.kind, theirs.kind):
            return False
        if self.side.frame(mine) != self.other.frame(theirs):
            return False
        return mine.type_label == theirs.type_label

    def _is_used_alike(self, node_id: NodeId, other: NodeId) -> bool:
        """Tell whether no use of one contradicts the other's, as far as the users are matched."""
        uses = {(edge.target, edge.position) for edge in self.other.graph.leaving.get(other, ())}
        for edge in self.side.graph.leaving.get(node_id, ()):
            user = self.found.get(edge.target)
            if user is None or (user, edge.position) in uses:
                continue
            if do_the_same(self.side.node(edge.target), self.other.node(user)):
                return False
        return True

    def by_name(self) -> None:
        """Match nodes of the same name where they can be one, and what then does the same."""
        mine = Counter(does(node) for node in self.side.free(self.found))
        theirs = Counter(does(node) for node in self.other.free(self.back))
        names = {node.id for node in self.side.free(self.found)}
        is_renamed = names != {node.id for node in self.other.free(self.back)}
        self.mine = {}
        for node in self.side.graph.nodes:
            is_new = node.id not in self.found
            self._by_structure(node)
            at = self.other.graph.index.get(node.id)
            if node.id not in self.found and at is not None:
                named = self.other.graph.nodes[at]
                is_elsewhere = mine[does(named)] or theirs[does(node)]
                if do_the_same(node, named) or not is_elsewhere:
                    self._by_name(node, named, is_renamed)
            partner = self.found.get(node.id)
            if is_new and partner is not None:
                self.mine[node.id] = self.theirs[partner]
                mine[does(node)] -= 1
                theirs[does(self.other.node(partner))] -= 1

    def _by_name(self, node: Node, named: Node, is_renamed: bool) -> None:
        if NodeKind.PARAM in (node.kind, named.kind):
            return
        if self.side.frame(node) != self.other.frame(named):
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
