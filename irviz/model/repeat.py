"""Copies of one structure, one after the other: which of a sequence's stretches truly are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from irviz.model.graph import LEAVES, Graph, Node, NodeId
from irviz.model.tandem import runs

_LEAST_STEPS = 16
"""What is shorter is easier to read as it is written."""
_MOST_STARTS = 3
"""As many places are tried for where the first copy begins, and as many that cost one copy."""


class Operand(NamedTuple):
    """What a step uses: the step that makes it, -1 for a leaf; its node; where it enters."""

    step: int
    node: NodeId
    position: tuple[int, ...]


@dataclass(frozen=True)
class Steps:
    """A graph's bound nodes in order: what is left without parameters and constants.

    `codes` are equal for steps that do the same and give the same type; `last` is the last step
    that uses each one's value; `live[i]` counts the values made, and the leaves used, before step
    i that are used in it or after it.
    """

    graph: Graph
    nodes: Sequence[Node]
    at: Mapping[NodeId, int]
    operands: Sequence[Sequence[Operand]]
    codes: Sequence[int]
    last: Sequence[int]
    live: Sequence[int]


def steps(graph: Graph) -> Steps:
    """Return the steps of a graph."""
    nodes = [node for node in graph.nodes if node.kind not in LEAVES]
    at = {node.id: index for index, node in enumerate(nodes)}
    operands: list[list[Operand]] = [[] for _ in nodes]
    last = list(range(len(nodes)))
    leaves: dict[NodeId, tuple[int, int]] = {}
    for edge in graph.edges:
        source, target = at.get(edge.source, -1), at[edge.target]
        operands[target].append(Operand(source, edge.source, edge.position))
        if source < 0:
            first, latest = leaves.get(edge.source, (target, target))
            leaves[edge.source] = min(first, target), max(latest, target)
        elif target > last[source]:
            last[source] = target
    for output in graph.outputs:
        if output in at:
            last[at[output]] = len(nodes)
    changes = [0] * (len(nodes) + 2)
    for index, used in (*enumerate(last), *leaves.values()):
        changes[index + 1] += 1
        changes[used + 1] -= 1
    codes = [hash((node.structure, node.type_label)) for node in nodes]
    return Steps(graph, nodes, at, operands, codes, last, list(accumulate(changes)))


class Repeat(NamedTuple):
    """Units `start` to `start + period * copies`, of which each `period` does the same."""

    start: int
    period: int
    copies: int


def repeats(
    of: Steps, codes: Sequence[int], bounds: Sequence[int], low: int, high: int
) -> list[Repeat]:
    """Return the repeats among the units low to high, none of which overlap, in order.

    A unit is a step, or a region of steps: unit u holds the steps bounds[u] to bounds[u + 1].
    Names have no part in it: two stretches are copies when their steps do the same with the same
    operands: those of their own copy, of the copy before, of outside (the same for all, or
    another one of the same kind for each).
    """
    found: list[Repeat] = []
    is_taken = [False] * (high - low)
    effort = 40 * (bounds[high] - bounds[low]) + 1000  # so that it stays linear, whatever comes
    for run in runs(codes[low:high]):
        free = _free(is_taken, run.start, run.start + run.length)
        if free is None or free[1] - free[0] < 2 * run.period:
            continue
        best: list[Repeat] = []
        begin, end = low + free[0], low + free[1]
        for period, start in _attempts(of, bounds, begin, end, run.period):
            copies = (end - start) // period
            effort -= (bounds[start + period] - bounds[start]) * copies
            if effort < 0:
                break
            best = max(best, _alike(of, bounds, start, period, copies), key=_covered)
            if _covered(best) == ((end - begin) // period * period, -1):
                break
        for one in best:
            count = one.period * one.copies
            is_taken[one.start - low : one.start - low + count] = [True] * count
        found += best
        if effort < 0:
            break
    return sorted(found)


def _free(is_taken: Sequence[bool], start: int, stop: int) -> tuple[int, int] | None:
    """Return the longest stretch in start to stop that is not taken."""
    if not is_taken[start] and not is_taken[stop - 1] and stop - start < 64:
        return None if any(is_taken[start:stop]) else (start, stop)
    best: tuple[int, int] | None = None
    begin = start
    for index in range(start, stop + 1):
        if index == stop or is_taken[index]:
            if index > begin and (best is None or index - begin > best[1] - best[0]):
                best = (begin, index)
            begin = index + 1
    return best


def _starts(of: Steps, bounds: Sequence[int], start: int, stop: int, period: int) -> list[int]:
    """Return where the first copy may begin: first where the fewest values go over to the next."""

    def crossed(at: int) -> tuple[int, int]:
        return of.live[bounds[at + period]], at

    spare = start + (stop - start) % period + 1  # beginning later costs a copy
    early = sorted(range(start, spare), key=crossed)
    late = sorted(range(spare, min(start + period, stop - 2 * period + 1)), key=crossed)
    return sorted(early[:_MOST_STARTS] + late[:_MOST_STARTS], key=crossed)


def _attempts(
    of: Steps, bounds: Sequence[int], start: int, stop: int, period: int
) -> Iterator[tuple[int, int]]:
    """Yield how long a copy may be and where the first one may begin.

    Layers that do the same may still be of two or three sorts, in turn.
    """
    for count in (1, 2, 3):
        if 2 * count * period <= stop - start:
            for begin in _starts(of, bounds, start, stop, count * period):
                yield count * period, begin


def _covered(repeats: Sequence[Repeat]) -> tuple[int, int]:
    """Return how many units are in these; of equal ones, fewer repeats are better."""
    return sum(one.period * one.copies for one in repeats), -len(repeats)


def _alike(of: Steps, bounds: Sequence[int], start: int, period: int, copies: int) -> list[Repeat]:
    """Return the stretches of true copies, at least two each."""
    found = []
    first = 0
    held = bounds[start + period] - bounds[start]
    begin = bounds[start]
    seen: set[NodeId] = set()
    for copy in range(copies):
        is_last = copy == copies - 1
        if is_last or not _continues(of, begin + copy * held, held, begin + first * held, seen):
            count = copy - first + 1
            if count > 1 and count * held >= _LEAST_STEPS:
                found.append(Repeat(start + first * period, period, count))
            first = copy + 1
            seen = set()
    return found


def _continues(of: Steps, start: int, held: int, first: int, seen: set[NodeId]) -> bool:
    """Tell whether the steps after a copy are the next one; the first copy begins at `first`.

    `seen` has what the copies before this one use of outside, and is given what these two use.
    """
    after: dict[NodeId, NodeId] = {}
    before: dict[NodeId, NodeId] = {}
    for step in range(start, start + held):
        mine, theirs = of.operands[step], of.operands[step + held]
        if [one.position for one in mine] != [other.position for other in theirs]:
            return False
        for slot, (one, other) in enumerate(zip(mine, theirs, strict=True)):
            if other.step == one.step + held and one.step >= first:
                continue  # each of the two is of its own copy, or the one before
            is_entry = start == first and one.step < first <= other.step < start + held
            if not is_entry and not _is_outside(of, one, other, first):
                return False
            if start > first and _is_shared(of, first + step - start, held, slot) != (
                one.node == other.node
            ):
                return False
            # what one copy uses twice, the next does too
            is_same = after.setdefault(one.node, other.node) == other.node
            if not is_same or before.setdefault(other.node, one.node) != one.node:
                return False
    seen.update(after)
    own = {other for one, other in after.items() if one != other}
    if not own.isdisjoint(seen):
        return False
    seen |= own
    return True


def _is_shared(of: Steps, step: int, held: int, slot: int) -> bool:
    """Tell whether the first two copies use the same here: then all do, or each has its own."""
    return of.operands[step][slot].node == of.operands[step + held][slot].node


def _is_outside(of: Steps, one: Operand, other: Operand, first: int) -> bool:
    """Tell whether two copies use the same thing of outside, or two things of one kind."""
    if one.step >= first or other.step >= first or (one.step < 0) != (other.step < 0):
        return False
    if one.node == other.node:
        return True
    nodes, index = of.graph.nodes, of.graph.index
    mine, theirs = nodes[index[one.node]], nodes[index[other.node]]
    is_alike = mine.kind is theirs.kind and mine.structure == theirs.structure
    return is_alike and mine.type_label == theirs.type_label
