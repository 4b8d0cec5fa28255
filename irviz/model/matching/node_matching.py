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
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from types import MappingProxyType

from irviz.model.graph.graph import OUTPUT, Edge, Graph, Node, NodeId, NodeKind, RegionKind, grouped
from irviz.model.matching.alignment import MatchedBy
from irviz.model.matching.lowered_matching import (
    Joined,
    LoweredMatching,
    LoweredSide,
    uncontradicted,
)
from irviz.model.matching.operation_names import is_alias, is_cast

_NUMBERED = re.compile(r"[lg]v\d*(#\d+)?")
"""Names from TVM's builder, which numbers the variables of each function from the start."""

_CLOSURE = "relax.make_closure"

_MAX_CANDIDATES = 8  # nodes with the same value that are considered as a partner


class Correspondence(dict[NodeId, NodeId]):
    """The reference's node for each node that has one, and by `steps`, how it was matched.

    `joined` are further pairs, of a node that belongs to a pair and the pair's other node.
    """

    def __init__(
        self,
        pairs: Mapping[NodeId, NodeId],
        steps: Mapping[NodeId, MatchedBy],
        joined: Mapping[tuple[NodeId, NodeId], Joined],
    ) -> None:
        super().__init__(pairs)
        self.steps = steps
        self.joined = joined


def correspondence(
    graph: Graph, reference: Graph, identical: Mapping[NodeId, NodeId] = MappingProxyType({})
) -> Correspondence:
    """Match the nodes of two graphs one to one, in time proportional to the number of edges.

    `identical` are known pairs, such as nodes of the same variable.

    Inputs are matched by name, then by position if both graphs have as many. Another node is
    matched with a node that has

    1. the same operation on corresponding operands, or
    2. the same position among the operands of corresponding nodes, or
    3. the same name, if it has the same type and operands (it calls another function), or the same
       callee and no operand that is known to correspond to another one.

    A name is ignored if an unmatched node elsewhere has the operation of one of the two. Passes
    reuse the names `lv`, `lv1`, …: they only count if no name was added or removed, or if the
    values have the same uses.
    """
    side, other = _Side(graph), _Side(reference)
    matching = _Matching(side, other)
    there = {
        one: partner
        for one, partner in identical.items()
        if one in graph.index and partner in reference.index
    }
    for node_id, partner in uncontradicted(graph, reference, there).items():
        matching.pair(node_id, partner, MatchedBy.KNOWN)
    lowered = LoweredMatching(
        LoweredSide(graph, side.partners),
        LoweredSide(reference, other.partners),
        partial(matching.pair, by=MatchedBy.OPERATION),
    )
    steps = (
        matching.inputs,
        matching.by_structure,
        lowered.match,
        matching.outputs,
        matching.backwards,
        matching.by_name,
        lowered.match,
        partial(matching.outputs, even_elsewhere=True),
        matching.backwards,
        matching.in_other_scopes,
    )
    most = min(len(graph.nodes), len(reference.nodes))
    for step in steps:
        if len(side.partners) < most:
            step()
    matching.exchange()
    lowered.join()
    lowered.joined.update(matching.lifted())
    found = {node.id: side.partners[node.id] for node in graph.nodes if node.id in side.partners}
    return Correspondence(found, matching.steps, lowered.joined)


class _Side:
    """One of the two graphs.

    Attributes:
        partners: The node of the other graph for each matched node.
        values: The value numbers of nodes: those of the reference, and those that equal one.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.partners: dict[NodeId, NodeId] = {}
        self.values: dict[NodeId, int] = {}

    def inner_functions(self) -> Iterator[tuple[object, Sequence[Node]]]:
        """Yield what each inner function is, and its parameters."""
        for index, region in enumerate(self.graph.regions):
            if region.kind is RegionKind.FUNCTION and region.owner is not None:
                node = self.graph[region.owner]
                yield (node.operation, self.graph.scope(node)), self.graph.params(index)

    def entering(self, node_id: NodeId) -> Sequence[Edge]:
        return self.graph.entering.get(node_id, ())

    def value_key(self, node: Node) -> object:
        """Return a key that is equal for nodes with the same operation on the same values."""
        values = self.values
        edges = self.graph.operands(node.id)
        operands = [(edge.position, values.get(edge.source, edge.source)) for edge in edges]
        is_item = node.kind is NodeKind.TUPLE_GET_ITEM
        sort = node.type_label[:5] if is_item else ""  # an item may be a tuple itself
        return (node.kind, node.structure, self.graph.scope(node), sort, *operands)

    def is_one_value(self, node: Node) -> bool:
        """Return whether the same operation on the same values gives the same value.

        A node with an effect or without operands is always distinct: two allocations of storage
        look the same but are not.
        """
        return node.is_pure and bool(self.graph.operands(node.id))

    def uses(self, node: Node) -> Counter[object]:
        """Return the operations that use a node's value, with its position among their operands."""
        leaving = self.graph.leaving.get(node.id, ())
        users: Counter[object] = Counter(
            (self.graph[edge.target].operation, edge.position) for edge in leaving
        )
        users[OUTPUT] = self.graph.outputs.count(node.id)
        return users

    def free(self) -> Iterator[Node]:
        """Yield the nodes that are not matched."""
        return (node for node in self.graph.nodes if node.id not in self.partners)


class _Matching:
    """The steps of the matching; `alike` has the reference's nodes by `value_key`."""

    def __init__(self, side: _Side, other: _Side) -> None:
        self.side, self.other = side, other
        self.alike: dict[object, dict[NodeId, None]] = {}
        self.steps: dict[NodeId, MatchedBy] = {}

    def pair(self, node_id: NodeId, other: NodeId, by: MatchedBy) -> None:
        """Match two nodes, unless one of them is matched already."""
        if node_id not in self.side.partners and other not in self.other.partners:
            self.side.partners[node_id], self.other.partners[other] = other, node_id
            self.steps[node_id] = by

    def inputs(self) -> None:
        """Match parameters and constants by name, then parameters by position.

        The parameters of inner functions that are the same are matched by position first.
        """
        left = grouped(self.other.inner_functions())
        for key, params in self.side.inner_functions():
            if left.get(key):
                self._by_position(params, left[key].pop(0))
        named = grouped(
            ((self.other.graph.scope(node), node.name), node.id)
            for node in self.other.free()
            if node.is_input and node.name
        )
        for node in self.side.free():
            if node.is_input:
                same = named.get((self.side.graph.scope(node), node.name))
                if same:
                    self.pair(node.id, same.pop(0), MatchedBy.NAME)
        self._by_position(self.side.graph.params(), self.other.graph.params())

    def _by_position(self, mine: Sequence[Node], theirs: Sequence[Node]) -> None:
        if len(mine) == len(theirs):
            for one, two in zip(mine, theirs, strict=True):
                if one.type_label == two.type_label:
                    self.pair(one.id, two.id, MatchedBy.POSITION)

    def by_structure(self) -> None:
        """Match nodes with the same operation on the same values.

        The values of the reference are numbered; equal operations on equal values are one.
        """
        values = self.other.values
        for index, node in enumerate(self.other.graph.nodes):
            values[node.id] = index
            if not node.is_input:
                same = self.alike.setdefault(self.other.value_key(node), {})
                if same and self.other.is_one_value(node):
                    values[node.id] = values[next(iter(same))]
                same[node.id] = None
        for node in self.side.graph.nodes:
            self._by_structure(node)

    def _by_structure(self, node: Node) -> None:
        """Match a node with one of the same operation on the same values, and number its value."""
        side, taken = self.side, self.other.partners
        if node.id not in side.partners and not node.is_input:
            same = self.alike.get(side.value_key(node), {})
            free = (one for one in same if one not in taken)
            left = list(islice(free, _MAX_CANDIDATES)) if same else []
            if left:
                # prefer the same name, then a name that this graph does not have
                strangers = (one for one in left if one not in side.graph.index)
                is_there = node.id in same and node.id not in taken
                partner = node.id if is_there else next(strangers, left[0])
                self.pair(node.id, partner, MatchedBy.STRUCTURE)
                while same and next(iter(same)) in taken and len(same) > 1:
                    del same[next(iter(same))]
            elif same and side.is_one_value(node):
                side.values[node.id] = self.other.values[next(iter(same))]
            elif is_alias(node, side.entering(node.id)):
                self._by_alias(node)
        if node.id in side.partners:
            side.values[node.id] = self.other.values[side.partners[node.id]]

    def _by_alias(self, node: Node) -> None:
        """Match another name of a value with the operation of that name that gives the value."""
        value = self.side.values.get(self.side.entering(node.id)[0].source)
        other = self.other
        is_there = node.id in other.graph.index and node.id not in other.partners
        if value is not None and is_there and other.values[node.id] == value:
            self.pair(node.id, node.id, MatchedBy.NAME)

    def outputs(self, *, even_elsewhere: bool = False) -> None:
        """Match outputs by position, first only those whose operation occurs nowhere else."""
        mine, theirs = self.side.graph.outputs, self.other.graph.outputs
        own = {node.operation for node in self.side.free()}
        others = {node.operation for node in self.other.free()}
        for output, other in zip(mine, theirs, strict=False) if len(mine) == len(theirs) else ():
            one, two = self.side.graph[output], self.other.graph[other]
            is_elsewhere = one.operation in others or two.operation in own
            is_certain = even_elsewhere or one.operation == two.operation or not is_elsewhere
            if is_certain and self._may_correspond(one, two):
                self.pair(output, other, MatchedBy.USE)

    def backwards(self) -> None:
        """Match operands at equal positions of corresponding nodes, from the outputs backwards."""
        for node in reversed(self.side.graph.nodes):
            partner = self.side.partners.get(node.id)
            if partner is None or node.is_input:
                continue
            mine, theirs = self.side.entering(node.id), self.other.entering(partner)
            is_same = node.operation == self.other.graph[partner].operation
            if not is_same or len(mine) != len(theirs):
                continue
            if all(edge.source in self.side.partners for edge in mine):
                continue
            pairs = zip(mine, theirs, strict=True)
            free = dict.fromkeys(
                (a.source, b.source)
                for a, b in pairs
                if a.position == b.position and self._are_free(a, b)
            )
            are_constants = any(
                all(graph[pair[at]].kind is NodeKind.CONSTANT for pair in free)
                for at, graph in enumerate((self.side.graph, self.other.graph))
            )
            for one, other in free:
                a, b = self.side.graph[one], self.other.graph[other]
                # with several operands only the operation or the name tells which is which,
                # except where all of them became constants
                is_certain = are_constants or len(free) == 1
                is_certain = is_certain or one == other or a.operation == b.operation
                if is_certain and self._may_correspond(a, b) and self._is_used_alike(a, b):
                    self.pair(one, other, MatchedBy.USE)

    def in_other_scopes(self) -> None:
        """Match nodes with the same operation on the same values in another branch or function."""
        side, other = self.side, self.other
        left: dict[object, list[NodeId]] = {}
        for node in other.free():
            if other.is_one_value(node):
                edges = other.graph.operands(node.id)
                key = node.operation, *((edge.position, edge.source) for edge in edges)
                left.setdefault(key, []).append(node.id)
        for node in side.free() if left else ():
            edges = side.graph.operands(node.id)
            operands = [(edge.position, side.partners.get(edge.source)) for edge in edges]
            key = node.operation, *operands
            if left.get(key):
                self.pair(node.id, left[key].pop(0), MatchedBy.STRUCTURE)

    def lifted(self) -> Iterator[tuple[tuple[NodeId, NodeId], Joined]]:
        """Match inner functions with the closures that they became; yield pairs of their contents.

        LambdaLift makes a function of the module of an inner one.
        """
        side, other = self.side.graph, self.other.graph
        for node in list(self.other.free()):
            is_lifted = node.kind is NodeKind.FUNCTION and node.id in side.index
            if not is_lifted or side[node.id].callee != _CLOSURE:
                continue
            self.pair(node.id, node.id, MatchedBy.NAME)
            for each in self.other.free():
                around = other.regions_around(each.region)
                if any(other.regions[one].owner == node.id for one in around):
                    yield (node.id, each.id), Joined.PART

    def exchange(self) -> None:
        """Exchange the partners of nodes with the same value if their users tell them apart."""
        values = self.other.values
        if len(set(values.values())) == len(values):  # no two nodes have the same
            return
        settled: set[NodeId] = set()
        for node in reversed(self.side.graph.nodes):
            partner = self.side.partners.get(node.id)
            if partner is None or node.is_input:
                continue
            others = {edge.position: edge.source for edge in self.other.entering(partner)}
            for edge in self.side.entering(node.id):
                wanted = others.get(edge.position)
                if wanted is not None and edge.source not in settled:
                    self._exchange(edge.source, wanted, settled)
                    settled.add(edge.source)

    def _exchange(self, node_id: NodeId, wanted: NodeId, settled: set[NodeId]) -> None:
        """Give a node the partner that its user calls for, if both have the same value."""
        mine, theirs = self.side.partners, self.other.partners
        found, holder = mine.get(node_id), theirs.get(wanted)
        if found is None or holder is None or wanted in (found, holder) or found == node_id:
            return
        by = {self.steps.get(node_id), self.steps.get(holder)}
        is_one = self.other.values.get(found) == self.other.values.get(wanted)
        if is_one and holder not in settled and by == {MatchedBy.STRUCTURE}:
            mine[node_id], mine[holder] = wanted, found
            theirs[wanted], theirs[found] = node_id, holder

    def by_name(self) -> None:
        """Match nodes of the same name if possible, and then nodes with the same operation."""
        side, other = self.side, self.other
        mine = Counter(node.operation for node in side.free())
        theirs = Counter(node.operation for node in other.free())
        is_renamed = {node.id for node in side.free()} != {node.id for node in other.free()}
        side.values = {}
        for node in side.graph.nodes:
            is_new = node.id not in side.partners
            self._by_structure(node)
            if node.id not in side.partners and node.id in other.graph.index:
                named = other.graph[node.id]
                is_elsewhere = mine[named.operation] or theirs[node.operation]
                if node.operation == named.operation or not is_elsewhere:
                    self._by_name(node, named, is_renamed)
            partner = side.partners.get(node.id)
            if is_new and partner is not None:
                side.values[node.id] = other.values[partner]
                mine[node.operation] -= 1
                theirs[other.graph[partner].operation] -= 1

    def _by_name(self, node: Node, named: Node, is_renamed: bool) -> None:
        side, other = self.side, self.other
        mine, theirs = side.entering(node.id), other.entering(named.id)
        if len(mine) != len(theirs) or not self._have_same_scope(node, named):
            return
        values = Counter(side.values.get(edge.source) for edge in mine)
        if values == Counter(other.values[edge.source] for edge in theirs):
            # another function may be called
            is_likely = not (is_renamed and _NUMBERED.fullmatch(node.id))
            is_likely = is_likely or side.uses(node) == other.uses(named)
            is_alike = node.type_label == named.type_label
            if is_likely and is_alike and self._is_used_alike(node, named):
                self.pair(node.id, named.id, MatchedBy.NAME)
        calls = [(one.kind, one.callee, one.operator) for one in (node, named)]
        if calls[0] == calls[1]:
            pairs = list(zip(mine, theirs, strict=True))
            is_known = [side.values.get(a.source) == other.values[b.source] for a, b in pairs]
            if any(is_known) and all(
                known or self._are_free(*pair) for known, pair in zip(is_known, pairs, strict=True)
            ):
                self.pair(node.id, named.id, MatchedBy.NAME)

    def _are_free(self, mine: Edge, theirs: Edge) -> bool:
        return mine.source not in self.side.partners and theirs.source not in self.other.partners

    def _have_same_scope(self, node: Node, other: Node) -> bool:
        """Return whether two nodes may correspond and are in the same branches.

        A parameter only becomes a constant, and a cast no other operation.
        """
        kinds = {node.kind, other.kind}
        if kinds == {NodeKind.PARAM, NodeKind.CONSTANT}:  # bound
            return node.region is None or other.region is None
        if NodeKind.PARAM in kinds or is_cast(node) is not is_cast(other):
            return False
        return self.side.graph.scope(node) == self.other.graph.scope(other)

    def _may_correspond(self, node: Node, other: Node) -> bool:
        """Return whether two nodes may be matched by their uses."""
        return self._have_same_scope(node, other) and node.type_label == other.type_label

    def _is_used_alike(self, node: Node, other: Node) -> bool:
        """Return whether no use by a matched node contradicts that two nodes correspond."""
        mine, theirs = self.side.graph, self.other.graph
        uses = {(edge.target, edge.position) for edge in theirs.leaving.get(other.id, ())}
        for edge in mine.leaving.get(node.id, ()):
            user = self.side.partners.get(edge.target)
            if user is None or (user, edge.position) in uses:
                continue
            if mine[edge.target].operation == theirs[user].operation:
                return False
        return True


# --- Whether two functions are equal up to names and order ---------------------------------------
#
# Names of buffers tell nothing where buffers are allocated first and written later: what is written
# tells which is which. So classes of nodes are refined by the classes of their operands and users,
# as in the algorithm of Weisfeiler and Leman.


_MOST_CHOICES = 100  # of pairs among nodes that nothing tells apart


def isomorphism(one: Graph, two: Graph) -> Mapping[NodeId, NodeId] | None:
    """Return the node of the second function for each node of the first, None if they differ.

    Parameters correspond by position. `Node.structure` and all edges have to be equal.
    """
    if len(one.nodes) != len(two.nodes) or len(one.edges) != len(two.edges):
        return None
    sides = _ClassedNodes(one), _ClassedNodes(two)
    for choice in range(_MOST_CHOICES):
        if not _refine(*sides):
            return None
        counts = Counter(sides[0].classes.values())
        if len(counts) == len(one.nodes):
            break
        first = next(each for each in sides[0].classes.values() if counts[each] > 1)
        for side in sides:
            chosen = next(node_id for node_id, each in side.classes.items() if each == first)
            side.classes[chosen] = hash(("chosen", choice))
    else:
        return None
    places = {each: node_id for node_id, each in sides[1].classes.items()}
    found = {node_id: places[each] for node_id, each in sides[0].classes.items()}
    return found if _is_isomorphism(one, two, found) else None


class _ClassedNodes:
    """A function, and the class of each of its nodes."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        results = grouped((output, place) for place, output in enumerate(graph.outputs))
        positions = {param.id: place for place, param in enumerate(graph.params())}
        self.classes = {
            node.id: hash(
                (
                    node.kind.value,
                    node.structure,
                    graph.scope(node),
                    tuple(results.get(node.id, ())),
                    positions.get(node.id),
                )
            )
            for node in graph.nodes
        }

    def refined(self, node_id: NodeId) -> int:
        """Return the class of a node with those of its operands and users."""
        classes, graph = self.classes, self.graph
        entering, leaving = graph.entering.get(node_id, ()), graph.leaving.get(node_id, ())
        operands = tuple([(edge.position, classes[edge.source]) for edge in entering])
        users = tuple(sorted([(edge.position, classes[edge.target]) for edge in leaving]))
        return hash((classes[node_id], operands, users))


def _refine(one: _ClassedNodes, two: _ClassedNodes) -> bool:
    """Refine the classes until none is divided further; return whether they are still the same."""
    known = 0
    while True:
        counts = Counter(one.classes.values())
        if counts != Counter(two.classes.values()):
            return False
        if len(counts) in (known, len(one.classes)):
            return True
        known = len(counts)
        for side in (one, two):
            shared = [node_id for node_id, each in side.classes.items() if counts[each] > 1]
            side.classes |= {node_id: side.refined(node_id) for node_id in shared}


def _is_isomorphism(one: Graph, two: Graph, found: Mapping[NodeId, NodeId]) -> bool:
    if tuple(map(found.__getitem__, one.outputs)) != two.outputs:
        return False
    edges = {(edge.source, edge.target, edge.position) for edge in two.edges}
    return all(
        (found[edge.source], found[edge.target], edge.position) in edges for edge in one.edges
    )
