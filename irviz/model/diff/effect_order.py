"""The order of what nodes read, write and free.

Two nodes conflict if both access common memory and one of them writes or frees it. Two sequences of
the same nodes do the same exactly if no pair of conflicting nodes is exchanged: they are one trace
in the sense of Mazurkiewicz.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from irviz.model.diff.diff_result import Aspect, Difference
from irviz.model.graph.graph import Graph, Node, NodeId
from irviz.model.graph.memory_accesses import MemoryAccess, Mode, Place, Root

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
        counts: dict[Place, Counter[Mode]] = {}
        for node, mode, place in sequence:
            overlapping = (count for other, count in counts.items() if place.overlaps(other))
            number = sum(count[one] for count in overlapping for one in _EARLIER[mode])
            found.setdefault(node, []).append((mode, number))
            counts.setdefault(place, Counter())[mode] += 1
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
