"""Which memory the nodes of a function use, read, write and free, in the order of the text.

Memory is known by the node that it comes from: a parameter, a constant, an allocation or a call. A
value may be in the memory of others: a tuple, a view, the result of a call in place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from functools import cached_property
from math import inf
from typing import NamedTuple, TypeAlias

from irviz.model.graph.graph import (
    PURE_UNKNOWN,
    UNKNOWN,
    Access,
    Edge,
    Graph,
    Node,
    NodeId,
    NodeKind,
    Positions,
    RegionKind,
    Resolution,
)

_Path: TypeAlias = "tuple[int, ...]"
_SOMEWHERE: _Path = (-1,)  # in a field that is not known


class Mode(IntEnum):
    """A kind of access to memory."""

    USE = 0
    READ = 1
    WRITE = 2
    FREE = 3


CONFLICTS: Mapping[Mode, Sequence[Mode]] = {
    Mode.USE: (Mode.FREE,),
    Mode.READ: (Mode.WRITE, Mode.FREE),
    Mode.WRITE: (Mode.READ, Mode.WRITE, Mode.FREE),
    Mode.FREE: tuple(Mode),
}
"""The kinds of accesses to the same memory whose order with each kind matters."""


class Place(NamedTuple):
    """Memory, or a part of it: a field of a tuple, or the bytes in range(begin, end).

    Attributes:
        root: The node that it comes from, "" for everything that is not a value of the function.
        is_object: Whether it is the object that a name stands for, and not its memory, which views
            of it keep when the object is freed.
    """

    root: NodeId
    fields: tuple[int, ...] = ()
    begin: float = 0
    end: float = inf
    is_object: bool = False

    def overlaps(self, other: Place) -> bool:
        """Return whether another place of the same root has common bytes."""
        common = min(len(self.fields), len(other.fields))
        return (
            self.is_object is other.is_object
            and self.begin < other.end
            and other.begin < self.end
            and self.fields[:common] == other.fields[:common]
        )


class MemoryAccess(NamedTuple):
    """The accesses of one node to one place."""

    node: NodeId
    mode: Mode
    place: Place

    def conflicts(self, other: MemoryAccess) -> bool:
        """Return whether the order of two accesses to memory of the same root matters."""
        return other.mode in CONFLICTS[self.mode] and self.place.overlaps(other.place)


Root: TypeAlias = "tuple[int | None, NodeId]"
"""The inner function in which memory is accessed, by its region, and where it comes from."""

_OUTSIDE = Place(NodeId(""))
_Values: TypeAlias = "tuple[tuple[_Path, Place], ...]"


class MemoryEffects:
    """The memory accesses of the functions of a module, each analysed on first use."""

    def __init__(self, graphs: Mapping[str, Graph]) -> None:
        self._graphs = graphs
        self._ordered: dict[str, bool] = {}
        self._analysed: dict[str, _Analysis | None] = {}

    def accesses(self, function: str) -> Mapping[Root, Sequence[MemoryAccess]]:
        """Return the accesses to all memory that is written or freed, in the order of the text."""
        if not self._is_ordered(function):
            return {}
        found = self._analysis(function)
        return {} if found is None else found.ordered()

    def of_call(self, node: Node) -> Access:
        """Return what a call of a Relax function does with its arguments."""
        found = self._analysis(node.callee) if node.callee in self._graphs else None
        if found is None:  # it is not in the module, or calls itself
            return PURE_UNKNOWN if node.is_pure else UNKNOWN
        return found.whole

    def _is_ordered(self, function: str) -> bool:
        """Return whether the order of any two accesses of a function matters."""
        if function not in self._graphs:
            return False
        if function not in self._ordered:
            self._ordered[function] = False  # it may call itself
            self._ordered[function] = any(
                node.access.is_ordered
                if node.access is not None
                else node.kind is NodeKind.CALL_FUNCTION and self._is_ordered(node.callee)
                for node in self._graphs[function].nodes
            )
        return self._ordered[function]

    def _analysis(self, function: str) -> _Analysis | None:
        if function not in self._analysed:
            self._analysed[function] = None
            self._analysed[function] = _Analysis(self._graphs[function], self)
        return self._analysed[function]


class _Analysis:
    """The memory of one function's values, and who accesses it.

    Attributes:
        values: The places that each value is in, with the field that is there.
        log: All accesses by their root.
        closures: What calls of inner functions do: with their parameters, and with other places.
    """

    def __init__(self, graph: Graph, effects: MemoryEffects) -> None:
        self.graph = graph
        self.effects = effects
        self.values: dict[NodeId, _Values] = {}
        self.log: dict[Root, list[MemoryAccess]] = {}
        self.closures: dict[NodeId, tuple[Access, Sequence[tuple[Mode, Place]]]] = {}
        self._objects: dict[NodeId, NodeId] = {}
        for node in graph.nodes:
            is_name = node.kind in (NodeKind.VALUE, NodeKind.MATCH_CAST)
            sources = graph.operands(node.id) if is_name else ()
            is_one = len(sources) == 1 and sources[0].position == (0,)
            source = sources[0].source if is_one else node.id
            self._objects[node.id] = self._objects.get(source, source)
        self._freed = {
            self._objects[edge.source]
            for node in graph.nodes
            if node.access is not None and node.access.frees != ()
            for edge in graph.operands(node.id)
        }
        for node in graph.nodes:
            self.values[node.id] = self._value(node, graph.operands(node.id))

    @cached_property
    def whole(self) -> Access:
        """What a call of the function does."""
        return self.summary(None, self.graph.outputs)

    def ordered(self) -> Mapping[Root, Sequence[MemoryAccess]]:
        """Return the accesses to the memory that any node writes or frees."""
        return {
            root: found
            for root, found in self.log.items()
            if len(found) > 1 and any(one.mode >= Mode.WRITE for one in found)
        }

    def summary(self, function: int | None, outputs: Iterable[NodeId]) -> Access:
        """Return what a call of the function, or of the inner one of a region, does."""
        params = {node.id: index for index, node in enumerate(self.graph.params(function))}
        modes: dict[Mode, set[int]] = {mode: set() for mode in Mode}
        has_effect = False
        for (inside, root), found in self.log.items():
            if inside == function and root in params:
                for one in found:
                    if not one.place.is_object:  # the caller has an object of its own
                        modes[one.mode].add(params[root])
            has_effect |= inside == function and root == _OUTSIDE.root
        shared = {
            params[place.root]
            for output in outputs
            for _, place in self.values.get(output, ())
            if place.root in params
        }
        return Access(
            tuple(sorted(modes[Mode.READ])),
            tuple(sorted(modes[Mode.WRITE])),
            tuple(sorted(modes[Mode.FREE])),
            tuple(sorted(shared)),
            has_effect=has_effect,
        )

    def _value(self, node: Node, operands: Sequence[Edge]) -> _Values:
        """Record what a node does with memory, and return the memory that its value is in."""
        match node.kind:
            case NodeKind.PARAM | NodeKind.CONSTANT:
                return (((), Place(node.id)),)
            case NodeKind.TUPLE:
                return self._uses(node, operands, 0)
            case NodeKind.MATCH_CAST:
                return self._uses(node, operands, 1)
            case NodeKind.VALUE if operands:
                return self._uses(node, operands, 1)
            case NodeKind.TUPLE_GET_ITEM:
                index = int(dict(node.attributes)["index"])
                return tuple(_fields(self._uses(node, operands, 1), index))
            case NodeKind.IF:
                chosen = [edge for edge in operands if edge.position[0] > 0]
                self._record(node, Mode.READ, self._of(operands, (0,)))
                return self._uses(node, chosen, 1)
            case NodeKind.FUNCTION:
                return self._closure(node, operands)
        return self._call(node, operands)

    def _uses(self, node: Node, operands: Sequence[Edge], depth: int) -> _Values:
        """Return where the operands are that a node puts together, whose contents it leaves."""
        found = []
        for edge in operands:
            self._access(node, Mode.USE, edge.source)
            for path, place in self.values.get(edge.source, ()):
                is_known = path != _SOMEWHERE
                found.append(((*edge.position[depth:], *path) if is_known else path, place))
        return tuple(found)

    def _closure(self, node: Node, operands: Sequence[Edge]) -> _Values:
        """Return the places of other values that an inner function accesses or returns."""
        region = next(
            index
            for index, one in enumerate(self.graph.regions)
            if one.owner == node.id and one.kind is RegionKind.FUNCTION
        )
        results = [edge.source for edge in operands]
        inside = {
            one.id for one in self.graph.nodes if region in self.graph.regions_around(one.region)
        }
        captured = [
            (one.mode, one.place)
            for (function, root), found in self.log.items()
            if function == region and root not in inside and root != _OUTSIDE.root
            for one in found
            if not one.place.is_object
        ]
        self.closures[node.id] = self.summary(region, results), list(dict.fromkeys(captured))
        returned = [place for one in results for _, place in self.values.get(one, ())]
        places = dict.fromkeys([*(place for _, place in captured), *returned])
        return tuple((_SOMEWHERE, one) for one in places if one.root not in inside)

    def _call(self, node: Node, operands: Sequence[Edge]) -> _Values:
        access = node.access or Access()
        called = next((edge.source for edge in operands if not edge.position), None)
        if called in self.closures:
            access, captured = self.closures[called]
            for mode, place in captured:
                self._record(node, mode, (place,))
        elif node.kind is NodeKind.CALL_FUNCTION and node.resolution is Resolution.FUNCTION:
            access = self.effects.of_call(node) if node.access is None else access
        if access.has_effect:
            self._record(node, Mode.WRITE, (_OUTSIDE,))
        for edge in operands:
            self._access(node, _mode(edge, access), edge.source)
        return self._result(node, operands, access)

    def _access(self, node: Node, mode: Mode, value: NodeId) -> None:
        """Record what a node does with an object, and with its memory.

        A storage is freed with its memory, and any other object by itself.
        """
        one = self._objects[value]
        if one in self._freed:
            is_freed = mode is Mode.FREE
            self._record(node, mode if is_freed else Mode.USE, (Place(one, is_object=True),))
        if mode is not Mode.FREE or self.graph[one].callee in STORAGES:
            self._record(node, mode, [place for _, place in self.values.get(value, ())])

    def _result(self, node: Node, operands: Sequence[Edge], access: Access) -> _Values:
        shared = self._of(operands, access.shares)
        if access.span is not None:
            begin, end = access.span
            shared = [one._replace(begin=begin, end=end) for one in shared]
        own: tuple[_Path, Place] = (), Place(node.id)
        if access.fields and access.shares:
            found = [
                ((field,), place)
                for field, position in zip(access.fields, access.shares, strict=True)
                for place in self._of(operands, (position,))
            ]
            return (*found, own)
        is_one = access.shares is not None and len(access.shares) == 1 and node.access is access
        return (*(((() if is_one else _SOMEWHERE), one) for one in shared), own)

    def _of(self, operands: Sequence[Edge], positions: Positions) -> list[Place]:
        """Return the places of the operands at some positions."""
        found = (
            place
            for edge in operands
            if positions is None or (edge.position and edge.position[0] in positions)
            for _, place in self.values.get(edge.source, ())
        )
        return list(dict.fromkeys(found))

    def _record(self, node: Node, mode: Mode, places: Iterable[Place]) -> None:
        regions = self.graph.regions
        around = self.graph.regions_around(node.region)
        function = next((one for one in around if regions[one].kind is RegionKind.FUNCTION), None)
        for place in places:
            found = self.log.setdefault((function, place.root), [])
            found.append(MemoryAccess(node.id, mode, place))


def _mode(edge: Edge, access: Access) -> Mode:
    """Return the most that a call does with one argument, which also counts as all that is less."""
    if not edge.position:  # the closure that is called
        return Mode.USE
    given = {Mode.FREE: access.frees, Mode.WRITE: access.writes, Mode.READ: access.reads}
    for mode, positions in given.items():
        if positions is None or edge.position[0] in positions:
            return mode
    return Mode.USE


def _fields(values: _Values, index: int) -> Iterable[tuple[_Path, Place]]:
    """Yield where a field of a tuple is."""
    for path, place in values:
        if path == _SOMEWHERE:
            yield path, place
        elif not path:
            yield path, place._replace(fields=(*place.fields, index))
        elif path[0] == index:
            yield path[1:], place


# --- Operators that compute nothing: those of memory plans, and checks of arguments --------------


STORAGES = ("relax.memory.alloc_storage", "relax.vm.alloc_storage", "vm.builtin.alloc_storage")
PLANNED_TENSORS = ("relax.memory.alloc_tensor", "relax.vm.alloc_tensor")
BUFFERS = ("relax.builtin.alloc_tensor", *PLANNED_TENSORS)
KILLS = ("relax.memory.kill_tensor", "relax.memory.kill_storage", "relax.vm.kill_object")
ALLOCATIONS = (*STORAGES, *BUFFERS, "vm.builtin.make_shape")
"""Operators that allocate memory, and those that compute the sizes for it."""
CHECKS = (
    "relax.null_value",  # in the place of a heap for shapes
    "vm.builtin.alloc_shape_heap",
    "vm.builtin.check_tensor_info",
    "vm.builtin.check_shape_info",
    "vm.builtin.check_tuple_info",
    "vm.builtin.check_prim_value_info",
    "vm.builtin.match_shape",
    "vm.builtin.match_prim_value",
)
_ALL = frozenset((*ALLOCATIONS, *KILLS, *CHECKS[:2]))


def plans_memory(source: Node, target: Node) -> bool:
    """Return whether a use of a value only tells where memory comes from, or when it is free."""
    return source.callee in STORAGES or target.callee in KILLS


def computing(nodes: Sequence[Node]) -> Sequence[Node]:
    """Return the nodes that do more than plan memory or rename values, or all if none do."""
    found = [one for one in nodes if one.callee not in _ALL and one.kind is not NodeKind.VALUE]
    return found or nodes
