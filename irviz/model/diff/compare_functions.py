"""Which functions correspond, and what became of each and of its nodes."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple, TypeAlias

from irviz.model.diff.compare_nodes import NodeComparison
from irviz.model.diff.diff_result import (
    Aspect,
    Difference,
    FunctionChange,
    FunctionDiff,
    NodeChange,
    NodeDiff,
    Part,
)
from irviz.model.diff.node_links import NodeGroup, NodeLinks, outermost
from irviz.model.graph.graph import (
    INPUT_KINDS,
    Graph,
    Node,
    NodeId,
    NodeKind,
    Resolution,
    TypeParts,
    grouped,
)
from irviz.model.graph.memory_accesses import MemoryAccess, Mode, Place, Root
from irviz.model.matching.alignment import Alignment, longest_increasing
from irviz.model.matching.node_matching import MatchedBy

_SINGLE = (NodeChange.SAME, NodeChange.CHANGED, NodeChange.MOVED)
_IN_MODULE = (Resolution.PRIM_FUNC, Resolution.FUNCTION)
_OTHER_CALLEE = (Aspect.CALLEE, Aspect.LOWERED)


def diff_nodes(
    links: NodeLinks,
    groups: Sequence[NodeGroup],
    blocks: Mapping[int | None, int | None],
    comparison: NodeComparison,
    moved: Mapping[NodeId, Difference],
) -> tuple[NodeDiff, ...]:
    """Return what became of every node, in the order of the function after.

    A removed node comes after the one that it followed before.

    Args:
        blocks: What `block_partners` returns for the groups.
        moved: The nodes after whose order with others differs.
    """
    before, after = comparison.before, comparison.after
    parts = grouped((outermost(part.after), part) for part in links.parts)
    found: dict[NodeId, NodeDiff] = {}
    for group in groups:
        made = _group_diff(group, links, comparison, parts)
        if made.change in (NodeChange.SAME, NodeChange.CHANGED):
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
            behind.setdefault(anchor, []).append(NodeDiff(NodeChange.REMOVED, (node.id,), ()))
    result = behind.pop(None, [])
    for node in after.nodes:
        if node.id in found:
            result += [found[node.id], *behind.pop(node.id, ())]
        elif node.id not in in_groups:
            result.append(NodeDiff(NodeChange.ADDED, (), (node.id,)))
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
    kinds: dict[tuple[str, str], int] = {}
    for one, two in blocks.items():
        if one is not None and two is not None:
            was, now = before.regions[one].kind.value, after.regions[two].kind.value
            if was != now:
                kinds[was, now] = kinds.get((was, now), 0) + 1
    return [
        Difference(Aspect.BLOCK, f"{count} {was}", f"{count} {now}")
        for (was, now), count in kinds.items()
    ]


def attribute_differences(
    before: Sequence[tuple[str, str]], after: Sequence[tuple[str, str]]
) -> list[Difference]:
    """Return the attributes of two functions or modules that differ."""
    mine, theirs = dict(before), dict(after)
    return [
        Difference(Aspect.ATTRIBUTE, mine.get(name, ""), theirs.get(name, ""), name)
        for name in {**mine, **theirs}
        if mine.get(name, "") != theirs.get(name, "")
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
    change = FunctionChange.SAME if is_same else FunctionChange.CHANGED
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
                change = NodeChange.CHANGED if one.change is NodeChange.SAME else one.change
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
    is_fused, is_inlined = False, False
    if links.calls_after or links.calls_before:
        is_fused = bool(links.calls_after.intersection(two))
        opened = links.calls_before.intersection(one)
        is_inlined = any(comparison.before[each].kind is NodeKind.CALL_FUNCTION for each in opened)
    inside = tuple(part for each in two for part in parts.get(each, ())) if parts else ()
    if len(one) == len(two) == 1 and is_fused is is_inlined:
        differences = comparison.differences(one[0], two[0])
        change = NodeChange.CHANGED if differences else NodeChange.SAME
        return NodeDiff(change, one, two, group.by, differences, parts=inside)
    if len(two) == 1 and not (len(one) == 1 and is_inlined):
        node = comparison.after[two[0]]
        if node.kind is NodeKind.CONSTANT:
            return NodeDiff(NodeChange.FOLDED, one, two, group.by)
        callee = node.callee if is_fused else ""
        return NodeDiff(NodeChange.FUSED, one, two, group.by, (), callee, inside)
    if len(one) == 1:
        change = NodeChange.INLINED if is_inlined else NodeChange.SPLIT
        callee = comparison.before[one[0]].callee if is_inlined else ""
        return NodeDiff(change, one, two, group.by, (), callee, inside)
    change = NodeChange.FUSED if len(one) > len(two) else NodeChange.SPLIT
    return NodeDiff(change, one, two, group.by, (), "", inside)


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
    change = NodeChange.MOVED if diff.change is NodeChange.SAME else diff.change
    return replace(diff, change=change, differences=differences)


def moved_params(
    partners: Mapping[NodeId, NodeId], before: Graph, after: Graph
) -> Mapping[NodeId, Difference]:
    """Return the parameters of a function that are in another order.

    Args:
        partners: For nodes after, the corresponding node before.
    """
    params = [one for one in after.nodes if one.kind is NodeKind.PARAM and one.region is None]
    places = [
        (before.index[partners[one.id]], after.index[one.id])
        for one in params
        if one.id in partners and before[partners[one.id]].kind is NodeKind.PARAM
    ]
    kept = longest_increasing([was for was, _ in places])
    return {
        after.nodes[now].id: Difference(Aspect.ORDER, str(was), str(now))
        for index, (was, now) in enumerate(places)
        if index not in kept
    }


def block_partners(
    groups: Iterable[NodeGroup | NodeDiff], before: Graph, after: Graph
) -> dict[int | None, int | None]:
    """Return, for each region before, the region after that holds most of its nodes."""
    counts: dict[int | None, Counter[int | None]] = {}
    regions: dict[tuple[int | None, int | None], int] = {}
    for group in groups:
        if len(group.before) == len(group.after) == 1:
            one, two = before[group.before[0]], after[group.after[0]]
            if one.kind not in INPUT_KINDS and two.kind not in INPUT_KINDS:
                regions[one.region, two.region] = regions.get((one.region, two.region), 0) + 1
            continue
        pairs = product(map(before.__getitem__, group.before), map(after.__getitem__, group.after))
        for one, two in pairs:
            if one.kind not in INPUT_KINDS and two.kind not in INPUT_KINDS:
                counts.setdefault(one.region, Counter())[two.region] += 1
    for (here, there), number in regions.items():
        counts.setdefault(here, Counter())[there] += number
    return {one: count.most_common(1)[0][0] for one, count in counts.items()}


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

_EARLIER: Mapping[Mode, Sequence[Mode]] = {
    Mode.USE: (Mode.FREE,),
    Mode.READ: (Mode.WRITE, Mode.FREE),
    Mode.WRITE: (Mode.READ, Mode.WRITE, Mode.FREE),
    Mode.FREE: tuple(Mode),
}
"""What conflicts with each mode."""
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
                    number += sum([count[one] for one in _EARLIER[mode]])
            found.setdefault(node, []).append((mode, number))
            counts.setdefault(place, dict.fromkeys(Mode, 0))[mode] += 1
    return {node: tuple(sorted(numbers)) for node, numbers in found.items()}


class Exchange(NamedTuple):
    """Two conflicting nodes whose order differs, by their ids after; `other` comes later there."""

    node: NodeId
    other: NodeId
    mode: Mode
    other_mode: Mode
    root: NodeId


def moved_nodes(
    partners: Mapping[NodeId, NodeId],
    before: Graph,
    after: Graph,
    accesses: tuple[Accesses, Accesses],
) -> Mapping[NodeId, Difference]:
    """Return the nodes that moved past nodes that they conflict with, and past which.

    Args:
        partners: For nodes after, the corresponding node before.
        accesses: Those of the function before and of the one after.
    """
    if not any(accesses):
        return {}
    back = {one: two for two, one in partners.items()}
    there = {one: after.index[two] for one, two in back.items()}
    here = {two: before.index[one] for two, one in partners.items()}
    found: dict[frozenset[NodeId], Exchange] = {}
    for earlier, later in _exchanged(accesses[1], here):
        one = Exchange(earlier.node, later.node, earlier.mode, later.mode, later.place.root)
        found.setdefault(frozenset(one[:2]), one)
    for earlier, later in _exchanged(accesses[0], there):
        root = back.get(later.place.root, later.place.root)
        one = Exchange(back[later.node], back[earlier.node], later.mode, earlier.mode, root)
        found.setdefault(frozenset(one[:2]), one)
    return {
        node: _difference(node, past, partners, after)
        for node, past in _fewest(found.values(), after).items()
    }


def _exchanged(
    accesses: Accesses, there: Mapping[NodeId, int]
) -> Iterator[tuple[MemoryAccess, MemoryAccess]]:
    """Yield the conflicting accesses whose order is the other one on the other side.

    Args:
        there: The place of each node's partner.
    """
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


def _fewest(exchanges: Iterable[Exchange], after: Graph) -> Mapping[NodeId, Sequence[Exchange]]:
    """Return few nodes that have moved, with the exchanges that this explains.

    These are the nodes with the most exchanges; of two nodes, the one that changes memory.
    """
    left: dict[NodeId, dict[NodeId, Exchange]] = {}
    changing: set[NodeId] = set()
    for one in exchanges:
        left.setdefault(one.node, {})[one.other] = one
        left.setdefault(one.other, {})[one.node] = one
        modes = (one.node, one.mode), (one.other, one.other_mode)
        changing.update(node for node, mode in modes if mode >= Mode.WRITE)
    found: dict[NodeId, Sequence[Exchange]] = {}
    while left:
        node = max(left, key=lambda one: (len(left[one]), one in changing, -after.index[one]))
        past = left.pop(node)
        for other in past:
            del left[other][node]
            if not left[other]:
                del left[other]
        found[node] = sorted(past.values(), key=lambda one: after.index[_other(one, node)])
    return found


def _other(exchange: Exchange, node: NodeId) -> NodeId:
    return exchange.node if exchange.other == node else exchange.other


def _difference(
    node: NodeId, past: Sequence[Exchange], partners: Mapping[NodeId, NodeId], after: Graph
) -> Difference:
    """Return the move in words: past which node, and what that does with the same memory."""
    first = past[0]
    other, is_before = _other(first, node), first.node == node
    mode = first.other_mode if is_before else first.mode
    words = ("after", "before") if is_before else ("before", "after")
    name = after[first.root].name if first.root in after.index else ""
    does = f"{_VERBS[mode]} {name or 'the same memory'}" if first.root else "has an effect as well"
    more = f", and {len(past) - 1} more" if len(past) > 1 else ""
    return Difference(
        Aspect.ORDER,
        f"{words[0]} {partners[other]}",
        f"{words[1]} {_named(after[other])}, which {does}{more}",
    )


def _named(node: Node) -> str:
    """Return the id of a node, with what it calls where the name is one that TVM made up."""
    return f"{node.id} ({node.callee})" if node.name == "_" and node.callee else node.id


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
