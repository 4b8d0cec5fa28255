"""The differences between two corresponding nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from operator import eq

from irviz.model.diff.canonical_names import Renaming
from irviz.model.diff.diff_result import Aspect, Difference
from irviz.model.graph.graph import (
    CALL_AND_OPERATOR_KINDS,
    CALLEE,
    FUNCTION_NAME,
    Graph,
    Node,
    NodeId,
    NodeKind,
    Resolution,
    TypeParts,
)

_CALLS = frozenset(CALL_AND_OPERATOR_KINDS)
_KIND_ASPECTS = {"shape": Aspect.SHAPE, "dtype": Aspect.DTYPE, "device": Aspect.DEVICE}


@dataclass(frozen=True)
class NodeComparison:
    """The facts about two functions that comparing their nodes requires.

    Attributes:
        functions: The new name of each function that has a counterpart.
        partners: For nodes after the change, the corresponding node before.
        values: For nodes after the change, further nodes before with the same value.
        type_parts: Takes the type of a node apart.
        is_same_type: Quickly tells whether two nodes have the same type.
        is_same_value: Whether the tensors of two constants, before and after, are equal.
    """

    before: Graph
    after: Graph
    functions: Mapping[str, str]
    partners: Mapping[NodeId, NodeId]
    values: Mapping[NodeId, frozenset[NodeId]]
    type_parts: Callable[[Node], TypeParts]
    is_same_type: Callable[[Node, Node], bool]
    is_same_value: Callable[[NodeId, NodeId], bool]
    renaming: Renaming

    def differences(self, before: NodeId, after: NodeId) -> tuple[Difference, ...]:
        """Return the differences between two nodes, apart from their names."""
        one, two = self.before[before], self.after[after]
        has_other_operands = self._has_other_operands(one, two)
        if not has_other_operands and self._is_same_operation(one, two):
            return () if self.is_same_type(one, two) else self._type(one, two)
        found = [*self._operation(one, two)]
        is_lowered = any(each.aspect is Aspect.LOWERED for each in found)
        if has_other_operands or self.renaming.knows_names:
            found += self._operands(one, two, is_lowered)
        if not is_lowered:
            found += self._attributes(one, two)
        found += self._type(one, two)
        if one.is_pure != two.is_pure:
            found.append(Difference(Aspect.PURITY, _purity(one), _purity(two)))
        return tuple(found)

    def _is_same_operation(self, one: Node, two: Node) -> bool:
        """Return whether two operations are identical, names included, which is the common case."""
        return (
            not self.renaming.knows_names
            and one.kind is not NodeKind.CONSTANT
            and one.structure == two.structure
            and one.kind is two.kind
            and one.callee == two.callee == self.functions.get(one.callee, one.callee)
            and one.resolution is two.resolution
            and one.is_pure == two.is_pure
        )

    def _has_other_operands(self, one: Node, two: Node) -> bool:
        """Return whether any operand differs, or a literal."""
        mine = self.before.entering.get(one.id, ())
        theirs = self.after.entering.get(two.id, ())
        if (len(mine), one.literals, one.literal_types) != (
            len(theirs),
            two.literals,
            two.literal_types,
        ):
            return True
        for a, b in zip(mine, theirs, strict=True):
            if a.position != b.position or not self.is_same_source(a.source, b.source):
                return True
        return False

    def is_other_operation(self, before: NodeId, after: NodeId) -> bool:
        """Return whether two nodes have different operations; lowering counts as no difference."""
        one, two = self.before[before], self.after[after]
        if one.kind is NodeKind.OPERATOR and two.kind is NodeKind.OPERATOR:
            return one.callee != two.callee
        if one.kind is NodeKind.OPERATOR and two.resolution is Resolution.PRIM_FUNC:
            return False
        found = list(self._operation(one, two))
        return any(each.aspect in (Aspect.CALLEE, Aspect.OPERATION) for each in found)

    def is_same_source(self, before: NodeId, after: NodeId) -> bool:
        """Return whether two operands are the same value."""
        if after in self.partners and self.partners[after] == before:
            return True
        return before in self.values.get(after, ())

    def _operation(self, one: Node, two: Node) -> Iterator[Difference]:
        kinds = one.kind, two.kind
        if kinds == (NodeKind.PARAM, NodeKind.CONSTANT):
            yield Difference(Aspect.BOUND, "parameter", "constant")
        elif kinds == (NodeKind.CONSTANT, NodeKind.CONSTANT):
            if not self.is_same_value(one.id, two.id):
                yield Difference(Aspect.VALUE, "", "")  # too large for words
        elif not _CALLS.issuperset(kinds):
            if one.kind is not two.kind:
                yield Difference(Aspect.OPERATION, _operation_name(one), _operation_name(two))
        else:
            yield from self._callee(one, two)

    def _callee(self, one: Node, two: Node) -> Iterator[Difference]:
        if one.kind is NodeKind.OPERATOR and two.resolution is Resolution.PRIM_FUNC:
            yield Difference(Aspect.LOWERED, one.callee, two.callee)
        elif self._is_closure(one, self.before) or self._is_closure(two, self.after):
            if (one.kind, one.operator) != (two.kind, two.operator):  # the callee is a variable
                yield Difference(Aspect.CALLEE, _call(one), _call(two))
        elif self.functions.get(one.callee, one.callee) != two.callee:
            yield Difference(Aspect.CALLEE, one.callee, two.callee)
        elif (one.kind, one.operator, one.resolution) != (two.kind, two.operator, two.resolution):
            yield Difference(Aspect.CALLEE, _call(one), _call(two))

    def _operands(self, one: Node, two: Node, is_lowered: bool) -> Iterator[Difference]:
        mine, theirs = _sources(one, self.before), _sources(two, self.after)
        texts, others = _literals(one), _literals(two)
        if is_lowered:  # literals and attributes are part of the PrimFunc
            mine, theirs = _numbered(mine), _numbered(theirs)
            texts, others = {}, {}
        for at in sorted({*mine, *theirs, *texts, *others}):
            a, b = mine.get(at), theirs.get(at)
            (text, type_), (other, other_type) = texts.get(at, ("", "")), others.get(at, ("", ""))
            if a is not None and b is not None:
                is_same = self.is_same_source(a, b)
            else:
                is_same = a is b and type_ == other_type and self._is_same_text(text, other, type_)
            if is_same:
                continue
            if text == other and type_ != other_type:
                text, other = f"{type_}({text})", f"{other_type}({other})"
            yield Difference(Aspect.OPERAND, a or text, b or other, ".".join(map(str, at)))

    def _is_same_text(self, before: str, after: str, type_: str) -> bool:
        if type_ == FUNCTION_NAME:
            return self.functions.get(before, before) == after
        return self.renaming.is_equal(before, after)

    def _attributes(self, one: Node, two: Node) -> Iterator[Difference]:
        mine, theirs = dict(one.attributes), dict(two.attributes)
        for name in {**mine, **theirs}:
            was, now = mine.get(name, ""), theirs.get(name, "")
            if was != now and not self.renaming.is_equal(was, now):
                yield Difference(Aspect.ATTRIBUTE, was, now, name)

    def _type(self, one: Node, two: Node) -> tuple[Difference, ...]:
        return self.type_differences(self.type_parts(one), self.type_parts(two))

    def type_differences(self, was: TypeParts, now: TypeParts) -> tuple[Difference, ...]:
        """Return the differences between two types, apart from names of sizes."""
        if self.renaming.knows_names:
            return _type_differences(was, now, self.renaming.is_equal)
        return _plain_type_differences(was, now)

    def _is_closure(self, node: Node, graph: Graph) -> bool:
        """Return whether a call calls the value of a variable."""
        if node.resolution is not None or node.kind is NodeKind.OPERATOR:
            return False
        return any(edge.position == CALLEE for edge in graph.entering.get(node.id, ()))


def _type_differences(
    was: TypeParts, now: TypeParts, is_equal: Callable[[str, str], bool]
) -> tuple[Difference, ...]:
    if is_equal(was.text, now.text):
        return ()
    found = [
        Difference(aspect, getattr(was, part), getattr(now, part))
        for part, aspect in _KIND_ASPECTS.items()
        if not is_equal(getattr(was, part), getattr(now, part))
    ]
    return tuple(found) or (Difference(Aspect.TYPE, was.text, now.text),)


@lru_cache(maxsize=1024)
def _plain_type_differences(was: TypeParts, now: TypeParts) -> tuple[Difference, ...]:
    """Return the differences between types, ignoring names; a large module has few types."""
    return _type_differences(was, now, eq)


def _sources(node: Node, graph: Graph) -> dict[tuple[int, ...], NodeId]:
    return {edge.position: edge.source for edge in graph.entering.get(node.id, ())}


def _literals(node: Node) -> Mapping[tuple[int, ...], tuple[str, str]]:
    """Return the text and the type of each literal, by its position."""
    types = node.literal_types or ("",) * len(node.literals)
    return {
        one.position: (one.text, type_) for one, type_ in zip(node.literals, types, strict=True)
    }


def _numbered(sources: Mapping[tuple[int, ...], NodeId]) -> dict[tuple[int, ...], NodeId]:
    return {(index,): sources[at] for index, at in enumerate(sorted(sources))}


def _purity(node: Node) -> str:
    return "pure" if node.is_pure else "impure"


def _operation_name(node: Node) -> str:
    return node.callee or node.kind.value


def _call(node: Node) -> str:
    how = node.operator or node.kind.value
    kind = f", {node.resolution.value}" if node.resolution else ""
    return f"{node.callee} ({how}{kind})" if how != node.callee else f"{node.callee}{kind}"
