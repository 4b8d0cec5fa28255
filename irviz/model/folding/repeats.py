"""Repeats: consecutive copies of one structure among the bound nodes of a graph."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from irviz.limits import MIN_REPEAT
from irviz.model.graph.graph import Graph, Node, NodeId, NodeKind, Resolution
from irviz.model.graph.memory_accesses import STORAGES, plans_memory

_OF_MODULE = (Resolution.PRIM_FUNC, Resolution.FUNCTION)
_DIGITS = re.compile(r"\d+")
_MAX_STARTS = 3
"""How many positions are tried for the first copy, and as many again that lose a copy."""


class Operand(NamedTuple):
    """An operand of a step: the step that makes it, -1 for an input; its node; its position."""

    step: int
    node: NodeId
    position: tuple[int, ...]


@dataclass(frozen=True)
class BoundNodes:
    """The nodes of a graph without its parameters and constants, in order.

    A step is the index of one of them.

    Attributes:
        codes: Numbers that are equal for steps with the same operation and type.
        similar: Numbers that are also equal for calls of module functions whose names differ only
            in digits.
        last: The last step that uses the value of each step.
        live: Before each step, the number of values that it or a later step still uses.
    """

    graph: Graph
    nodes: Sequence[Node]
    at: Mapping[NodeId, int]
    operands: Sequence[Sequence[Operand]]
    codes: Sequence[int]
    similar: Sequence[int]
    last: Sequence[int]
    live: Sequence[int]

    def is_storage(self, *operands: Operand) -> bool:
        """Return whether all of these operands are storage, which memory plans reuse."""
        steps = [operand.step for operand in operands]
        return all(step >= 0 and self.nodes[step].callee in STORAGES for step in steps)

    def plans_memory(self, operand: Operand, step: int) -> bool:
        """Return whether a step uses an operand only as storage, or frees it."""
        return plans_memory(self.graph[operand.node], self.nodes[step])

    def has_rotation(self, start: int, held: int, copies: int) -> bool:
        """Return whether copies of a repeat use different storage from outside."""
        return any(
            operand.step < start and other.node != operand.node and self.is_storage(operand)
            for step in range(start, start + held)
            for copy in range(1, copies)
            for operand, other in zip(
                self.operands[step], self.operands[step + copy * held], strict=True
            )
        )

    def renamed(self, step: int) -> int | None:
        """Return the step that a step is only another name of, None for any other step.

        It is another name of a result of the function, or an element of a call's result of which
        at most one element is used, such as the first of `batch_norm`.
        """
        sources = [operand.step for operand in self.operands[step]] if step >= 0 else []
        if len(sources) != 1 or sources[0] < 0:
            return None
        node, source = self.nodes[step], self.nodes[sources[0]]
        if node.kind is NodeKind.TUPLE_GET_ITEM and source.is_call_or_operator:
            users = [self.at[edge.target] for edge in self.graph.leaving[source.id]]
            are_items = all(self.nodes[one].kind is node.kind for one in users)
            is_one = are_items and sum(self.last[one] > one for one in users) <= 1
            return sources[0] if is_one else None
        is_result = node.kind is NodeKind.VALUE and node.id in self.graph.outputs
        return sources[0] if is_result else None


def bound_nodes(graph: Graph) -> BoundNodes:
    """Return the bound nodes of a graph.

    In the graph of several stages, a constant that was computed in one of them has operands.
    """
    entered = graph.entering
    nodes = [node for node in graph.nodes if not node.is_input or node.id in entered]
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
    similar = [
        hash((node.kind, _DIGITS.sub("", node.callee), node.type_label))
        if node.resolution in _OF_MODULE
        else code
        for node, code in zip(nodes, codes, strict=True)
    ]
    return BoundNodes(graph, nodes, at, operands, codes, similar, last, list(accumulate(changes)))


class Repeat(NamedTuple):
    """The units in range(start, start + period * copies); a copy has `period` units."""

    start: int
    period: int
    copies: int


def find_repeats(bound: BoundNodes, codes: Sequence[int], bounds: Sequence[int]) -> list[Repeat]:
    """Return the repeats among units with these codes, in order and without overlaps.

    A unit is a step or a region: unit u has the steps in range(bounds[u], bounds[u + 1]). Two
    sequences of units are copies if their steps have the same operations and operands, whatever
    their names. An operand may come from the same copy, from the copy before, or from outside. From
    outside it is the same for all copies, or a different one of the same kind for each; storage may
    be any.
    """
    found: list[Repeat] = []
    is_taken = [False] * len(codes)
    effort = 40 * (bounds[-1] - bounds[0]) + 1000  # bounds the time for any input
    for run in tandem_repeats(codes):
        free = _free(is_taken, run.start, run.start + run.length)
        if free is None or free[1] - free[0] < 2 * run.period:
            continue
        best: list[Repeat] = []
        begin, end = free
        for period, start in _attempts(bound, bounds, *free, run.period):
            copies = (end - start) // period
            effort -= (bounds[start + period] - bounds[start]) * copies
            if effort < 0:
                break
            best = max(best, _alike(bound, bounds, start, period, copies), key=_covered)
            if _covered(best) == ((end - begin) // period * period, -1):
                break
        for one in best:
            count = one.period * one.copies
            is_taken[one.start : one.start + count] = [True] * count
        found += best
        if effort < 0:
            break
    return sorted(found)


def _free(is_taken: Sequence[bool], start: int, stop: int) -> tuple[int, int] | None:
    """Return the longest range between `start` and `stop` that is not taken."""
    if not is_taken[start] and not is_taken[stop - 1] and stop - start < 64:
        return None if any(is_taken[start:stop]) else (start, stop)
    runs = groupby(range(start, stop), key=is_taken.__getitem__)
    longest = max((list(run) for taken, run in runs if not taken), key=len, default=None)
    return (longest[0], longest[-1] + 1) if longest else None


def _starts(
    bound: BoundNodes, bounds: Sequence[int], start: int, stop: int, period: int
) -> list[int]:
    """Return candidates for the start of the first copy: few values between copies are better."""

    def crossed(at: int) -> tuple[int, int]:
        return bound.live[bounds[at + period]], at

    spare = start + (stop - start) % period + 1  # a later start loses a copy
    early = sorted(range(start, spare), key=crossed)
    late = sorted(range(spare, min(start + period, stop - 2 * period + 1)), key=crossed)
    return sorted(early[:_MAX_STARTS] + late[:_MAX_STARTS], key=crossed)


def _attempts(
    bound: BoundNodes, bounds: Sequence[int], start: int, stop: int, period: int
) -> Iterator[tuple[int, int]]:
    """Yield candidates for the length of a copy and the start of the first one.

    Layers with the same operations may alternate between two or three variants.
    """
    for count in (1, 2, 3):
        if 2 * count * period <= stop - start:
            for begin in _starts(bound, bounds, start, stop, count * period):
                yield count * period, begin


def _covered(repeats: Sequence[Repeat]) -> tuple[int, int]:
    """Return a score: more units are better, then fewer repeats."""
    return sum(one.period * one.copies for one in repeats), -len(repeats)


def _alike(
    bound: BoundNodes, bounds: Sequence[int], start: int, period: int, copies: int
) -> list[Repeat]:
    """Return the repeats whose copies, at least two, are equal operand by operand."""
    found = []
    first = 0
    held = bounds[start + period] - bounds[start]
    begin = bounds[start]
    seen: set[NodeId] = set()
    for copy in range(copies):
        is_last = copy == copies - 1
        if is_last or not _continues(bound, begin + copy * held, held, begin + first * held, seen):
            count = copy - first + 1
            if count > 1 and count * held >= MIN_REPEAT:
                found.append(Repeat(start + first * period, period, count))
            first = copy + 1
            seen = set()
    return found


def _continues(bound: BoundNodes, start: int, held: int, first: int, seen: set[NodeId]) -> bool:
    """Return whether the steps after a copy are the next copy; the first one starts at `first`.

    `seen` holds the outside values that earlier copies use; those of these two are added.
    """
    operands = bound.operands
    after: dict[NodeId, NodeId] = {}
    before: dict[NodeId, NodeId] = {}
    for step in range(start, start + held):
        mine, theirs = operands[step], operands[step + held]
        if [one.position for one in mine] != [other.position for other in theirs]:
            return False
        for slot, (one, other) in enumerate(zip(mine, theirs, strict=True)):
            is_own = other.step == one.step + held and one.step >= first
            if is_own or (max(one.step, other.step) < first and bound.is_storage(one, other)):
                continue  # of its own copy or of the copy before, or whichever storage is free
            is_entry = start == first and one.step < first <= other.step < start + held
            if not is_entry and not _is_outside(bound, one, other, first):
                return False
            if start > first:  # what the first two copies share, all do; or each has its own
                at = first + step - start
                is_shared = operands[at][slot].node == operands[at + held][slot].node
                if is_shared != (one.node == other.node):
                    return False
            # a value that one copy uses twice corresponds to one that the next uses twice
            is_same = after.setdefault(one.node, other.node) == other.node
            if not is_same or before.setdefault(other.node, one.node) != one.node:
                return False
    seen.update(after)
    own = {other for one, other in after.items() if one != other}
    if not own.isdisjoint(seen):
        return False
    seen |= own
    return True


def _is_outside(bound: BoundNodes, one: Operand, other: Operand, first: int) -> bool:
    """Return whether two operands are the same value from outside, or values of one kind."""
    if one.step >= first or other.step >= first or (one.step < 0) != (other.step < 0):
        return False
    if one.node == other.node:
        return True
    mine, theirs = bound.graph[one.node], bound.graph[other.node]
    return mine.operation == theirs.operation and mine.type_label == theirs.type_label


# --- Find the tandem repeats of a sequence in O(n log n) time ------------------------------------


class TandemRepeat(NamedTuple):
    """A range in which each item equals the one `period` before it."""

    start: int
    period: int
    length: int


def tandem_repeats(codes: Sequence[int]) -> list[TandemRepeat]:
    """Return ranges of at least two periods, the longest first.

    Substrings of length 1, 2, 4, … are ranked by doubling (Karp, Miller and Rosenberg, STOC 1972).
    A distance is a period where consecutive substrings all recur at that distance. Every range of
    three periods or more is found; one of two periods may be missed next to shorter ones.
    """
    if len(set(codes)) == len(codes):
        return []
    ranks = _ranks(np.asarray(codes, dtype=np.int64))
    width = 1
    lengths: dict[tuple[int, int], int] = {}
    while len(ranks) > 1:
        gaps = _gaps(ranks)
        if not gaps.any():  # no longer substring recurs either
            break
        ends = np.flatnonzero(np.append(np.diff(gaps) != 0, True)) + 1
        starts = np.append(0, ends[:-1])
        periods = gaps[starts]
        reach = ends - starts + periods + width - 1
        chosen = (periods > 0) & (reach >= 2 * periods)
        for start, period, length in zip(
            starts[chosen].tolist(), periods[chosen].tolist(), reach[chosen].tolist(), strict=True
        ):
            lengths[start, period] = max(length, lengths.get((start, period), 0))
        ranks = _ranks(ranks[:-width] * (int(ranks.max()) + 1) + ranks[width:])
        width *= 2
    found = [TandemRepeat(start, period, length) for (start, period), length in lengths.items()]
    return sorted(found, key=lambda run: (-run.length, run.period, run.start))


def _ranks(values: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def _gaps(ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the distance to the next occurrence of each rank, 0 if there is none."""
    order = np.argsort(ranks, kind="stable")
    distances = np.diff(order)
    distances[np.diff(ranks[order]) != 0] = 0
    gaps = np.zeros(len(ranks), dtype=np.int64)
    gaps[order[:-1]] = distances
    return gaps
