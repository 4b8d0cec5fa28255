"""Match nodes whose operation was lowered, fused, cast or laid out otherwise.

Values are followed to where their elements are computed (`value_origins`). Two nodes with the same
operation on the same elements correspond, whatever the dtype or the layout, and whether it is an
operator or the PrimFunc that it became. A call of a fused function corresponds to the nodes that
compute its result from its arguments, if these are the operations that its name lists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import NamedTuple

from irviz.model.graph.graph import CALLEE, Graph, Node, NodeId, NodeKind, Position, grouped
from irviz.model.matching.operation_names import (
    REPRESENTATIONS,
    fused_operations,
    is_alias,
    is_allocation,
    is_call,
    is_representation,
    is_same_representation,
    may_have_types,
    operation_name,
    other_attributes,
)

_MOST_RESULTS = 64
"""How many nodes behind an argument may be the result of a fused function."""
_MOST_REPRESENTATIONS = 4
"""How many casts and transpositions may follow an operation that lost its name to them."""


class Joined(Enum):
    """How a node belongs to a pair of nodes without being one of the two."""

    VALUE = "has the same value"
    CALL = "writes the value"
    PART = "is a part of the operation"


_Key = tuple[object, ...]
_ITEM, _WITH_ATTRIBUTES, _BY_NAME = "item", "with attributes", "by name"


def uncontradicted(
    graph: Graph, reference: Graph, known: Mapping[NodeId, NodeId]
) -> Mapping[NodeId, NodeId]:
    """Return known pairs of nodes, with the right partner of those whose name a cast took.

    A pass that casts the result of an operation may give its variable to the cast.
    """
    found = dict(known)
    for cast in filter(is_representation, graph.nodes):
        other = known.get(cast.id)
        if other is not None and not is_representation(reference[other]):
            nearer = _cast_operation(graph, cast, reference[other], known)
            if nearer is not None:
                del found[cast.id]
                found[nearer] = other
    names = {other: one for one, other in known.items()}
    for cast in filter(is_representation, reference.nodes):
        one = names.get(cast.id)
        if one is not None and one in found and not is_representation(graph[one]):
            nearer = _cast_operation(reference, cast, graph[one], names)
            if nearer is not None:
                found[one] = nearer
    return found


def _cast_operation(
    graph: Graph, cast: Node, wanted: Node, known: Collection[NodeId]
) -> NodeId | None:
    """Return the node whose value is cast, if it has a certain operation and is not known."""
    node = cast
    for _ in range(_MOST_REPRESENTATIONS):
        edges = graph.operands(node.id)
        if not is_representation(node) or len(edges) != 1:
            break
        node = graph[edges[0].source]
    is_it = node.kind is wanted.kind or is_call(node) or is_call(wanted)
    is_it = is_it and operation_name(node.callee) == operation_name(wanted.callee)
    return node.id if is_it and bool(wanted.callee) and node.id not in known else None


@dataclass
class LoweredSide:
    """One of two graphs.

    Attributes:
        partners: The node of the other graph for each matched node.
        members: The nodes that belong to a pair without being one of the two.
    """

    graph: Graph
    partners: dict[NodeId, NodeId]
    members: set[NodeId] = field(default_factory=set)

    @cached_property
    def origins(self) -> ValueOrigins:
        """Where the values of the graph are computed."""
        return ValueOrigins(self.graph)

    @cached_property
    def alike(self) -> dict[_Key, list[NodeId]]:
        """The computations by their operation on the origins of their arguments."""
        found: dict[_Key, list[NodeId]] = {}
        left = (node for node in self.graph.nodes if node.id not in self.partners)
        for node in filter(self.origins.is_computation, left):
            arguments = [(at, self.origins.origin(one)) for at, one in self.origins.arguments(node)]
            for key in self.keys(node, arguments):
                found.setdefault(key, []).append(node.id)
        return found

    def keys(self, node: Node, arguments: Sequence[tuple[Position, Origin]]) -> Iterator[_Key]:
        """Yield what is equal for the same operation: with its attributes, and by its name."""
        scope = self.graph.scope(node)
        if self.origins.is_item(node.id):
            yield _ITEM, scope, *arguments
            return
        if node.kind is NodeKind.OPERATOR:
            texts = [(literal.position, Number(literal.text)) for literal in node.literals]
            operands = frozenset((*arguments, *texts))
            others = other_attributes(node.attributes)
            yield _WITH_ATTRIBUTES, scope, node.kind, node.callee, node.operator, others, operands
        if node.callee:
            sources = tuple(source for _, source in arguments if not isinstance(source, Number))
            sort = sources or (self.origins.type_label(node.id),)
            yield _BY_NAME, scope, operation_name(node.callee), sort

    def free_representations(self, origin: Origin, operation: str) -> Iterator[NodeId]:
        """Yield the free casts, transpositions or copies of a value, by the operation's name."""
        for one in self.origins.representations.get(origin, ()):
            if operation_name(self.graph[one].callee) == operation and self.is_free(one):
                yield one

    def is_free(self, node_id: NodeId) -> bool:
        """Return whether neither a node nor the value that it writes is matched."""
        names = self.origins.names(node_id)
        return not any(one in self.partners or one in self.members for one in names)

    def same_representation(self, theirs: LoweredSide, node: Node) -> NodeId | None:
        """Return a free cast, transposition or copy of the same elements to the same type."""
        there = theirs.origins.representations
        known = self.partner(theirs, node.id) if there else None
        if known is None or known not in there:
            return None
        operation, type_label = operation_name(node.callee), self.origins.type_label(node.id)
        found = [
            one
            for one in theirs.free_representations(known, operation)
            if is_same_representation(operation, theirs.origins.type_label(one), type_label)
        ]
        names = self.origins.names(node.id)
        same = (one for one in found if set(names) & set(theirs.origins.names(one)))
        return next(same, found[0] if found else None)

    def partner(self, theirs: LoweredSide, node_id: NodeId) -> Origin | None:
        """Return where the other graph computes the elements of a value, None if unknown."""
        origin = self.origins.origin(node_id)
        names = () if isinstance(origin, Number | Constant) else self.origins.names(origin)
        for one in (*self.origins.path(node_id), *names):
            if one in self.partners:
                return theirs.origins.origin(self.partners[one])
        return None if names else origin

    def same_operation(
        self, theirs: LoweredSide, node: Node, arguments: Sequence[tuple[Position, Origin]]
    ) -> NodeId | None:
        """Return a free node with the same operation on the same elements, None if none."""
        names = self.origins.names(node.id)
        for key in self.keys(node, arguments):
            is_certain = key[0] != _BY_NAME or is_call(node)
            found = [
                one
                for one in theirs.alike.get(key, ())
                if (is_certain or is_call(theirs.graph[one]))  # which has no attributes
                and theirs.is_free(one)
                and may_have_types(self.origins.type_label(node.id), theirs.origins.type_label(one))
            ]
            if found:
                same = (one for one in found if set(names) & set(theirs.origins.names(one)))
                return next(same, found[0])
        return None

    def same_name(self, theirs: LoweredSide, node: Node, arguments: set[Origin]) -> NodeId | None:
        """Return the free node of the same name and operation, unless arguments contradict that.

        What is lowered may lose arguments, as `full_like` does.
        """
        for name in filter(theirs.graph.index.__contains__, self.origins.names(node.id)):
            found = theirs.graph[theirs.origins.computing(name)]
            given = {theirs.origins.origin(one) for _, one in theirs.origins.arguments(found)}
            types = self.origins.type_label(node.id), theirs.origins.type_label(found.id)
            if (
                operation_name(found.callee) == operation_name(node.callee)
                and is_call(node) is not is_call(found)
                and (arguments <= given or given <= arguments)
                and may_have_types(*types)
                and self.graph.scope(node) == theirs.graph.scope(found)
                and theirs.is_free(found.id)
            ):
                return found.id
        return None


@dataclass
class LoweredMatching:
    """Matches the nodes of two graphs that are left.

    Attributes:
        pair: Is called with a node of the first graph and its partner.
        joined: Further pairs, of a node that belongs to a pair and the pair's other node.
    """

    side: LoweredSide
    other: LoweredSide
    pair: Callable[[NodeId, NodeId], None]
    joined: dict[tuple[NodeId, NodeId], Joined] = field(default_factory=dict)

    def match(self) -> None:
        """Match remaining nodes in the order of the first graph, and fused calls in the other."""
        self._forward(self.side, self.other, is_back=False)
        known = self.side.origins.operations
        if any(
            is_call(node)
            and self.other.is_free(node.id)
            and operation_name(node.callee) not in known
            and fused_operations(node.callee, known)
            for node in self.other.graph.nodes
        ):
            self._forward(self.other, self.side, is_back=True)

    def join(self) -> None:
        """Join the further names of a value, and the buffers that hold it, to its pair."""
        sides = (self.side, self.other, False), (self.other, self.side, True)
        for mine, theirs, is_back in sides:
            if len(mine.partners) == len(mine.graph.nodes):
                continue
            for node_id in [node.id for node in mine.graph.nodes if node.id in mine.partners]:
                partner = mine.partners[node_id]
                for one in _further_names(mine, theirs, node_id):
                    mine.members.add(one)
                    how = Joined.VALUE if one in mine.graph.leaving else Joined.CALL
                    self.joined[(partner, one) if is_back else (one, partner)] = how

    def _forward(self, mine: LoweredSide, theirs: LoweredSide, *, is_back: bool) -> None:
        origins = mine.origins
        for node in mine.graph.nodes:
            if not mine.is_free(node.id):
                continue
            region: Sequence[NodeId] = ()
            if origins.is_representation(node.id):
                found = mine.same_representation(theirs, node)
            elif origins.is_computation(node):
                arguments = [(at, mine.partner(theirs, one)) for at, one in origins.arguments(node)]
                known = [(at, one) for at, one in arguments if one is not None]
                is_known = len(known) == len(arguments)
                found = mine.same_operation(theirs, node, known) if is_known else None
                if found is None and is_call(node):
                    found, region = _fused_region(mine, theirs, node, {one for _, one in known})
                if found is None:
                    found = mine.same_name(theirs, node, {one for _, one in known})
            else:
                found = _folded(mine, theirs, node)
            if found is None:
                continue
            names = theirs.origins.names(found)
            name = next((one for one in origins.names(node.id) if one in names), None)
            one, two = name or origins.names(node.id)[0], name or names[0]
            self.pair(two, one) if is_back else self.pair(one, two)
            theirs.members.update(region)
            for each in region:
                self.joined[(each, one) if is_back else (one, each)] = Joined.PART


def _folded(mine: LoweredSide, theirs: LoweredSide, node: Node) -> NodeId | None:
    """Return the node of the same name that computes a constant from nothing."""
    is_constant = isinstance(mine.origins.origin(node.id), Constant)
    if not is_constant or node.id not in theirs.graph.index or not theirs.is_free(node.id):
        return None
    found = theirs.graph[node.id]
    is_made = theirs.origins.is_computation(found) and not any(theirs.origins.arguments(found))
    return found.id if is_made and found.type_label == node.type_label else None


def _fused_region(
    mine: LoweredSide, theirs: LoweredSide, call: Node, arguments: set[Origin]
) -> tuple[NodeId | None, Sequence[NodeId]]:
    """Return the node that computes the result of a fused function, and those fused with it."""
    operations = fused_operations(call.callee, theirs.origins.operations)
    wanted = Counter(one for one in operations if one not in REPRESENTATIONS)
    if not arguments or not wanted:
        return None, ()
    type_label = mine.origins.type_label(call.id)
    for computed in _behind(theirs, arguments, wanted.total()):
        result: NodeId | None = computed
        if operations[-1] in REPRESENTATIONS:
            last = operations[-1]
            moved = theirs.free_representations(computed, last)
            labels = ((one, theirs.origins.type_label(one)) for one in moved)
            same = (one for one, two in labels if is_same_representation(last, type_label, two))
            result = next(same, None)
        if result is not None and may_have_types(type_label, theirs.origins.type_label(result)):
            region = _region(theirs, computed, arguments, wanted)
            path = theirs.origins.path(result)
            region |= dict.fromkeys(one for one in path if region and theirs.is_free(one))
            if region:
                return result, [one for one in region if one != result]
    return None, ()


def _behind(side: LoweredSide, arguments: set[Origin], steps: int) -> Iterator[NodeId]:
    """Yield the free computations at most so many steps behind an argument."""
    users = side.origins.users
    start = min(arguments, key=lambda one: (len(users.get(one, ())), str(one)))
    found: dict[NodeId, None] = {}
    last: Iterable[NodeId] = users.get(start, ())
    for _ in range(2 * steps):  # each may be followed by an item
        last = [one for one in dict.fromkeys(last) if one not in found and side.is_free(one)]
        yield from last
        found.update(dict.fromkeys(last))
        if len(found) > _MOST_RESULTS:
            return
        last = [two for one in last for two in users.get(one, ())]


def _region(
    side: LoweredSide, result: NodeId, arguments: set[Origin], wanted: Counter[str]
) -> dict[NodeId, None]:
    """Return the free nodes that compute a result from certain values.

    Returns nothing if they are not the wanted operations, or need other values, or fewer.
    """
    graph, origins = side.graph, side.origins
    region: dict[NodeId, None] = {result: None}
    between: dict[NodeId, None] = {}
    waiting = [result]
    used: set[Origin] = set()
    while waiting:
        for _, source in origins.arguments(graph[waiting.pop()]):
            origin = origins.origin(source)
            *path, _ = origins.path(source)
            between.update(dict.fromkeys(filter(side.is_free, path)))
            if origin in arguments:
                used.add(origin)
            elif not isinstance(origin, Number | Constant) and origin not in region:
                node = graph[origin]
                is_part = origins.is_computation(node) and side.is_free(node.id)
                if not is_part or len(region) > 2 * wanted.total():
                    return {}
                region[node.id] = None
                waiting.append(node.id)
    operations = (operation_name(graph[one].callee) for one in region if not origins.is_item(one))
    found = Counter(operations)
    return {**region, **between} if found == wanted and used == arguments else {}


def _further_names(mine: LoweredSide, theirs: LoweredSide, node_id: NodeId) -> Sequence[NodeId]:
    """Return the free nodes that have the value of a matched node, if the partner has no others.

    Of a call with several results these are the buffers, too.
    """
    partner, found = mine.partners[node_id], list[NodeId]()
    computing = mine.origins.computing(node_id)
    if mine.origins.is_name(node_id) and not theirs.origins.is_name(partner):
        found += mine.origins.names(computing) if computing not in mine.partners else ()
    if not theirs.origins.buffers(theirs.origins.computing(partner)):
        found += mine.origins.buffers(computing)
    return [one for one in found if one not in mine.partners and one not in mine.members]


# --- Where the values of a graph are computed, seen through names, buffers, casts and layouts ----


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
        moves = {node.id for node in filter(is_representation, graph.nodes)}
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

    def buffers(self, node_id: NodeId) -> Sequence[NodeId]:
        """Return the buffers that a call writes, if it writes several."""
        written = self._written.get(node_id, {})
        return [*written.values()] if len(written) > 1 else ()

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
        return not node.is_input and not is_moved

    @cached_property
    def operations(self) -> frozenset[str]:
        """The names of all operations in the graph."""
        return frozenset(operation_name(node.callee) for node in self.graph.nodes if node.callee)

    @cached_property
    def representations(self) -> dict[Origin, list[NodeId]]:
        """The casts, transpositions and copies of each value."""
        return grouped(
            (self.origin(one), one) for one in filter(self.is_representation, self._origins)
        )

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
        return grouped(
            (self.origin(source), node.id)
            for node in filter(self.is_computation, self.graph.nodes)
            for _, source in self.arguments(node)
        )
