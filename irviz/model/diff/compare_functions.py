"""Which functions correspond, and what became of each and of its nodes."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from operator import eq
from typing import NamedTuple, TypeAlias

from irviz.model.diff.canonical_names import Renaming
from irviz.model.diff.corresponding_nodes import NodeGroup, NodeLinks, outermost
from irviz.model.diff.diff_result import (
    Aspect,
    ChangeKind,
    Difference,
    FunctionDiff,
    NodeDiff,
    Part,
)
from irviz.model.graph.graph import (
    CALLEE,
    FUNCTION_NAME,
    Graph,
    Node,
    NodeId,
    NodeKind,
    Resolution,
    TypeParts,
    grouped,
)
from irviz.model.graph.memory_accesses import CONFLICTS, MemoryAccess, Mode, Place, Root
from irviz.model.matching.alignment import Alignment, MatchedBy, longest_increasing

_SINGLE = (ChangeKind.SAME, ChangeKind.CHANGED, ChangeKind.MOVED)
_IN_MODULE = (Resolution.PRIM_FUNC, Resolution.FUNCTION)
_OTHER_CALLEE = (Aspect.CALLEE, Aspect.LOWERED)


class FunctionFingerprint(NamedTuple):
    """What a function does, regardless of its name: equal for functions that do the same.

    Attributes:
        kind: The class of the function, such as "PrimFunc".
        body: A number that is equal for equal bodies; names of variables do not matter.
        is_entry: Whether the function can be called from outside of the module.
    """

    kind: str
    body: int
    attributes: tuple[tuple[str, str], ...] = ()
    is_entry: bool = False


def match_functions(
    before: Mapping[str, FunctionFingerprint], after: Mapping[str, FunctionFingerprint]
) -> Alignment[str, MatchedBy]:
    """Match the functions of two modules, by name, one to one.

    Functions with the same name and the same body come first, then those with the same body and
    another name, and last those with the same name. A function that can be called from outside
    always corresponds to the one with the same public name.
    """
    pairs: dict[str, tuple[str, MatchedBy]] = {}
    left = dict.fromkeys(after)

    def pair(one: str, other: str, by: MatchedBy) -> None:
        pairs[one] = other, by
        del left[other]

    for name, one in before.items():
        other = after.get(name)
        if other is not None and (one[:2] == other[:2] or (one.is_entry and other.is_entry)):
            pair(name, name, MatchedBy.NAME)
    alike = grouped((after[name][:2], name) for name in left)
    for name, one in before.items():
        if name not in pairs and alike.get(one[:2]):
            pair(name, alike[one[:2]].pop(0), MatchedBy.STRUCTURE)
    for name in before:
        if name not in pairs and name in left:
            pair(name, name, MatchedBy.NAME)
    found = {(name, pairs[name][0]): pairs[name][1] for name in before if name in pairs}
    return Alignment(found)


def diff_nodes(
    links: NodeLinks,
    groups: Sequence[NodeGroup],
    blocks: Mapping[int | None, int | None],
    comparison: NodeComparison,
    moved: Mapping[NodeId, Difference],
) -> tuple[NodeDiff, ...]:
    """Return what became of every node, in the order of the function after.

    A removed node comes after the one that it followed before. `blocks` is what `block_partners`
    returns for the groups, and `moved` has the nodes after whose order with others differs.
    """
    before, after = comparison.before, comparison.after
    parts = grouped((outermost(part.after), part) for part in links.parts)
    found: dict[NodeId, NodeDiff] = {}
    for group in groups:
        made = _group_diff(group, links, comparison, parts)
        if made.change in (ChangeKind.SAME, ChangeKind.CHANGED):
            made = _with_move(made, moved, blocks, before, after)
        found[group.after[-1]] = made
    gone = {one: found[group.after[-1]] for group in groups for one in group.before}
    in_groups = {two for group in groups for two in group.after}
    behind: dict[NodeId | None, list[NodeDiff]] = {}
    anchor: NodeId | None = None
    for node in before.nodes:
        if node.id in gone:
            anchor = gone[node.id].after[-1]
        else:
            behind.setdefault(anchor, []).append(NodeDiff(ChangeKind.REMOVED, (node.id,), ()))
    result = behind.pop(None, [])
    for node in after.nodes:
        if node.id in found:
            result += [found[node.id], *behind.pop(node.id, ())]
        elif node.id not in in_groups:
            result.append(NodeDiff(ChangeKind.ADDED, (), (node.id,)))
    return tuple(result)


def result_differences(
    comparison: NodeComparison, types: tuple[TypeParts, TypeParts]
) -> list[Difference]:
    """Return whether the functions return other values, or declare to return another type."""
    one, two = comparison.before.outputs, comparison.after.outputs
    is_same = len(one) == len(two) and all(map(comparison.is_same_source, one, two))
    found = [] if is_same else [Difference(Aspect.RESULT, ", ".join(one), ", ".join(two))]
    differing = comparison.type_differences(*types)
    return found + [one._replace(what="of the result") for one in differing]


def block_differences(
    blocks: Mapping[int | None, int | None], before: Graph, after: Graph
) -> list[Difference]:
    """Return the blocks that became blocks of another kind, as dataflow blocks do."""
    kinds = Counter(
        (before.regions[one].kind.value, after.regions[two].kind.value)
        for one, two in blocks.items()
        if one is not None and two is not None
    )
    return [
        Difference(Aspect.BLOCK, f"{count} {was}", f"{count} {now}")
        for (was, now), count in kinds.items()
        if was != now
    ]


def attribute_differences(
    before: Sequence[tuple[str, str]],
    after: Sequence[tuple[str, str]],
    *,
    is_equal: Callable[[str, str], bool] = eq,
) -> list[Difference]:
    """Return the attributes of two nodes, functions or modules that differ."""
    mine, theirs = dict(before), dict(after)
    both = ((name, mine.get(name, ""), theirs.get(name, "")) for name in {**mine, **theirs})
    return [
        Difference(Aspect.ATTRIBUTE, was, now, name)
        for name, was, now in both
        if was != now and not is_equal(was, now)
    ]


def function_differences(
    names: tuple[str, str], before: FunctionFingerprint, after: FunctionFingerprint
) -> list[Difference]:
    """Return the differences between two functions other than those of their bodies."""
    found = []
    if names[0] != names[1] and (before.is_entry or after.is_entry):
        found.append(Difference(Aspect.NAME, *names))
    if before.kind != after.kind:
        found.append(Difference(Aspect.KIND, before.kind, after.kind))
    if before.is_entry != after.is_entry:
        words = ["public" if one.is_entry else "private" for one in (before, after)]
        found.append(Difference(Aspect.VISIBILITY, *words))
    return [*found, *attribute_differences(before.attributes, after.attributes)]


def with_own_differences(diff: FunctionDiff, own: Sequence[Difference]) -> FunctionDiff:
    """Return the diff of a function with the differences outside its body added."""
    differences = (*own, *diff.differences)
    is_same = not differences and not diff.changed_nodes
    change = ChangeKind.SAME if is_same else ChangeKind.CHANGED
    return replace(diff, change=change, differences=differences)


def with_changed_callees(diffs: Sequence[FunctionDiff]) -> list[FunctionDiff]:
    """Mark the calls of functions whose own body differs.

    If only a function that the callee calls differs, the call in the callee is marked instead. So a
    mark always means that the callee itself differs.
    """
    changed = {
        one.before: one.after
        for one in diffs
        if one.changed_nodes
        or any(each.aspect in (Aspect.LOOPS, Aspect.RESULT) for each in one.differences)
    }
    if not changed:
        return list(diffs)
    return [_with_changed_callees(one, changed) for one in diffs]


def _with_changed_callees(diff: FunctionDiff, changed: Mapping[str, str]) -> FunctionDiff:
    before = diff.graphs[0]
    if before is None or not diff.nodes:
        return diff
    nodes = []
    for one in diff.nodes:
        if one.change in _SINGLE:
            callee = before[one.before[0]].callee
            is_function = callee in changed and before[one.before[0]].resolution in _IN_MODULE
            if is_function and not any(each.aspect in _OTHER_CALLEE for each in one.differences):
                body = Difference(Aspect.BODY, callee, changed[callee])
                change = ChangeKind.CHANGED if one.change is ChangeKind.SAME else one.change
                one = replace(one, change=change, differences=(body, *one.differences))
        nodes.append(one)
    return with_own_differences(replace(diff, nodes=tuple(nodes)), ())


def _group_diff(
    group: NodeGroup,
    links: NodeLinks,
    comparison: NodeComparison,
    parts: Mapping[NodeId, Sequence[Part]],
) -> NodeDiff:
    one, two = group.before, group.after
    is_fused = bool(links.calls_after.intersection(two))
    opened = links.calls_before.intersection(one)
    is_inlined = any(comparison.before[each].kind is NodeKind.CALL_FUNCTION for each in opened)
    inside = tuple(part for each in two for part in parts.get(each, ()))
    if len(one) == len(two) == 1 and is_fused is is_inlined:
        differences = comparison.differences(one[0], two[0])
        change = ChangeKind.CHANGED if differences else ChangeKind.SAME
        return NodeDiff(change, one, two, group.by, differences, parts=inside)
    callee = ""
    if len(two) == 1 and not (len(one) == 1 and is_inlined):
        node = comparison.after[two[0]]
        if node.kind is NodeKind.CONSTANT:
            return NodeDiff(ChangeKind.FOLDED, one, two, group.by)
        change, callee = ChangeKind.FUSED, node.callee if is_fused else ""
    elif len(one) == 1 and is_inlined:
        change, callee = ChangeKind.INLINED, comparison.before[one[0]].callee
    else:
        change = ChangeKind.FUSED if len(one) > len(two) else ChangeKind.SPLIT
    return NodeDiff(change, one, two, group.by, (), callee, inside)


def _with_move(
    diff: NodeDiff,
    moved: Mapping[NodeId, Difference],
    blocks: Mapping[int | None, int | None],
    before: Graph,
    after: Graph,
) -> NodeDiff:
    """Return the diff of a node with its move to another block or another place, if it moved."""
    one, two = before[diff.before[0]], after[diff.after[0]]
    differences = diff.differences
    if two.id in moved:
        differences += (moved[two.id],)
    if one.region in blocks and blocks[one.region] != two.region:
        was, now = _block_name(one, before), _block_name(two, after)
        differences += (Difference(Aspect.BLOCK, was, now),)
    if differences == diff.differences:
        return diff
    change = ChangeKind.MOVED if diff.change is ChangeKind.SAME else diff.change
    return replace(diff, change=change, differences=differences)


def moved_params(
    partners: Mapping[NodeId, NodeId], before: Graph, after: Graph
) -> Mapping[NodeId, Difference]:
    """Return the parameters in another order; `partners` are the nodes before by those after."""
    places = [
        (before.index[partners[one.id]], after.index[one.id])
        for one in after.params()
        if one.id in partners and before[partners[one.id]].kind is NodeKind.PARAM
    ]
    kept = longest_increasing([was for was, _ in places])
    return {
        after.nodes[now].id: Difference(Aspect.ORDER, str(was), str(now))
        for index, (was, now) in enumerate(places)
        if index not in kept
    }


def block_partners(
    groups: Sequence[NodeGroup], before: Graph, after: Graph
) -> dict[int | None, int | None]:
    """Return, for each region before, the region after that holds most of its nodes."""
    several_first = sorted(groups, key=lambda each: len(each.before + each.after) == 2)
    pairs = (pair for each in several_first for pair in product(each.before, each.after))
    nodes = ((before[one], after[two]) for one, two in pairs)
    became = grouped(
        (one.region, two.region) for one, two in nodes if not one.is_input and not two.is_input
    )
    return {one: Counter(regions).most_common(1)[0][0] for one, regions in became.items()}


def _block_name(node: Node, graph: Graph) -> str:
    if node.region is None:
        return "function"
    region = graph.regions[node.region]
    around = region.owner or (
        graph.regions[region.parent].owner if region.parent is not None else ""
    )
    return f"{region.kind.value} {node.region}" + (f" of {around}" if around else "")


# --- The order in which nodes read, write and free memory ----------------------------------------
#
# Two nodes conflict if both access common memory and one of them writes or frees it. Two
# sequences of the same nodes do the same exactly if no pair of conflicting nodes is exchanged:
# they are one trace in the sense of Mazurkiewicz.


Accesses: TypeAlias = Mapping[Root, Sequence[MemoryAccess]]

_VERBS = {Mode.USE: "uses", Mode.READ: "reads", Mode.WRITE: "writes", Mode.FREE: "frees"}


def ranks(accesses: Accesses) -> Mapping[NodeId, tuple[tuple[Mode, int], ...]]:
    """Return, for each access of a node, how many conflicting ones come before it.

    Exchanging nodes that do not conflict leaves the numbers as they are.
    """
    found: dict[NodeId, list[tuple[Mode, int]]] = {}
    for sequence in accesses.values():
        counts: dict[Place, dict[Mode, int]] = {}
        for node, mode, place in sequence:
            number = 0
            for other, count in counts.items():
                if other == place or place.overlaps(other):
                    number += sum([count[one] for one in CONFLICTS[mode]])
            found.setdefault(node, []).append((mode, number))
            counts.setdefault(place, dict.fromkeys(Mode, 0))[mode] += 1
    return {node: tuple(sorted(numbers)) for node, numbers in found.items()}


def moved_nodes(
    partners: Mapping[NodeId, NodeId],
    before: Graph,
    after: Graph,
    accesses: tuple[Accesses, Accesses],
) -> Mapping[NodeId, Difference]:
    """Return the nodes that moved past nodes that they conflict with, and past which.

    `partners` are the nodes before by those after.
    """
    back = {one: two for two, one in partners.items()}
    there = {one: after.index[two] for one, two in back.items()}
    here = {two: before.index[one] for two, one in partners.items()}
    left: dict[NodeId, dict[NodeId, MemoryAccess]] = {}
    exchanged = list(_exchanged(accesses[1], here))
    for one, two in _exchanged(accesses[0], there):
        place = one.place._replace(root=back.get(one.place.root, one.place.root))
        first, second = (MemoryAccess(back[each.node], each.mode, place) for each in (two, one))
        exchanged.append((first, second))
    for one, two in exchanged:
        left.setdefault(one.node, {}).setdefault(two.node, two)
        left.setdefault(two.node, {}).setdefault(one.node, one)
    return {
        node: _difference(node, past, partners, after)
        for node, past in _fewest(left, after).items()
    }


def _exchanged(
    accesses: Accesses, there: Mapping[NodeId, int]
) -> Iterator[tuple[MemoryAccess, MemoryAccess]]:
    """Yield the conflicting accesses whose order differs `there`, where the nodes' partners are."""
    for sequence in accesses.values():
        seen: list[int] = []
        earlier: list[MemoryAccess] = []
        for one in sequence:
            place = there.get(one.node)
            if place is None:
                continue
            at = bisect_right(seen, place)
            yield from ((other, one) for other in earlier[at:] if one.conflicts(other))
            seen.insert(at, place)
            earlier.insert(at, one)


def _fewest(
    left: dict[NodeId, dict[NodeId, MemoryAccess]], after: Graph
) -> Mapping[NodeId, Sequence[MemoryAccess]]:
    """Return few nodes that have moved, with the accesses of others that this explains.

    These are the nodes with the most exchanges; of two nodes, the one that changes memory.
    """
    accesses = (one for past in left.values() for one in past.values())
    changing = {one.node for one in accesses if one.mode >= Mode.WRITE}
    found: dict[NodeId, Sequence[MemoryAccess]] = {}
    while left:
        node = max(left, key=lambda one: (len(left[one]), one in changing, -after.index[one]))
        past = left.pop(node)
        for other in past:
            del left[other][node]
            if not left[other]:
                del left[other]
        found[node] = sorted(past.values(), key=lambda one: after.index[one.node])
    return found


def _difference(
    node: NodeId, past: Sequence[MemoryAccess], partners: Mapping[NodeId, NodeId], after: Graph
) -> Difference:
    """Return the move in words: past which node, and what that does with the same memory."""
    other, mode, (root, *_) = past[0]
    is_before = after.index[node] < after.index[other]
    words = ("after", "before") if is_before else ("before", "after")
    name = after[root].name if root in after.index else ""
    does = f"{_VERBS[mode]} {name or 'the same memory'}" if root else "has an effect as well"
    more = f", and {len(past) - 1} more" if len(past) > 1 else ""
    return Difference(
        Aspect.ORDER,
        f"{words[0]} {partners[other]}",
        f"{words[1]} {_named(after[other])}, which {does}{more}",
    )


def _named(node: Node) -> str:
    """Return the id of a node, with what it calls where the name is one that TVM made up."""
    return f"{node.id} ({node.callee})" if node.name == "_" and node.callee else node.id


# --- Compare two corresponding nodes -------------------------------------------------------------


_KIND_ASPECTS = {"shape": Aspect.SHAPE, "dtype": Aspect.DTYPE, "device": Aspect.DEVICE}


@dataclass(frozen=True)
class NodeComparison:
    """The facts about two functions that comparing their nodes requires.

    Attributes:
        functions: The new name of each function that has a counterpart.
        partners: For nodes after the change, the corresponding node before.
        values: For nodes after the change, further nodes before with the same value.
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
        found = [*self._operation(one, two)]
        is_lowered = any(each.aspect is Aspect.LOWERED for each in found)
        found += self._operands(one, two, is_lowered)
        if one.attributes != two.attributes and not is_lowered:
            is_equal = self.renaming.is_equal
            found += attribute_differences(one.attributes, two.attributes, is_equal=is_equal)
        if self.renaming.knows_names or not self.is_same_type(one, two):
            found += self.type_differences(self.type_parts(one), self.type_parts(two))
        if one.is_pure != two.is_pure:
            words = ["pure" if each.is_pure else "impure" for each in (one, two)]
            found.append(Difference(Aspect.PURITY, *words))
        return tuple(found)

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
        elif not (one.is_call_or_operator and two.is_call_or_operator):
            if one.kind is not two.kind:
                names = [each.callee or each.kind.value for each in (one, two)]
                yield Difference(Aspect.OPERATION, *names)
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

    def type_differences(self, was: TypeParts, now: TypeParts) -> tuple[Difference, ...]:
        """Return the differences between two types, apart from names of sizes."""
        is_equal = self.renaming.is_equal
        if is_equal(was.text, now.text):
            return ()
        found = [
            Difference(aspect, getattr(was, part), getattr(now, part))
            for part, aspect in _KIND_ASPECTS.items()
            if not is_equal(getattr(was, part), getattr(now, part))
        ]
        return tuple(found) or (Difference(Aspect.TYPE, was.text, now.text),)

    def _is_closure(self, node: Node, graph: Graph) -> bool:
        """Return whether a call calls the value of a variable."""
        if node.resolution is not None or node.kind is NodeKind.OPERATOR:
            return False
        return any(edge.position == CALLEE for edge in graph.entering.get(node.id, ()))


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


def _call(node: Node) -> str:
    how = node.operator or node.kind.value
    kind = f", {node.resolution.value}" if node.resolution else ""
    return f"{node.callee} ({how}{kind})" if how != node.callee else f"{node.callee}{kind}"
