"""Where two runs part: the first node whose value differs while all that it uses is the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from math import prod

import numpy as np
from numpy.typing import NDArray

from irviz.model.closeness import Closeness, Tolerance, Verdict, closeness, is_numeric
from irviz.model.graph import LEAVES, Graph, NodeId
from irviz.model.trace import Trace, Value

Arrays = Sequence[NDArray[np.generic] | None]
Fetch = Callable[[Trace, NodeId], Arrays]
"""Gets the tensors of a node that a trace did not keep, in their order."""


@dataclass(frozen=True)
class Difference:
    """How the value of a node differs from its partner's in the other run.

    `verdict` is None when the two are not equal and more is not known, because a tensor was not
    kept. `max_abs` is the largest |Δ|, nan where it is not known or the values are no numbers;
    `past` of `numbers` are not within tolerance. `reason` says why values cannot be compared.
    """

    reference: NodeId
    verdict: Verdict | None
    max_abs: float = float("nan")
    past: int = 0
    numbers: int = 0
    max_ulp: int | None = None
    reason: str = ""

    @property
    def is_same(self) -> bool:
        """Whether the values are equal, or within tolerance."""
        return self.verdict in (Verdict.EQUAL, Verdict.CLOSE)

    @property
    def is_different(self) -> bool:
        """Whether the values are known to lie apart."""
        return self.verdict is Verdict.DIFFERENT


@dataclass(frozen=True)
class Parting:
    """The node whose own operation made the first difference that matters.

    `node` and `reference` are its ids in the two runs. `upstream` are the nodes of the run whose
    values are the same as in the other, as far as it had come, in its order, and `drift` is the
    largest |Δ| of these; `absorbed` those that differed before, without an effect on the result.
    `between` are those that the node uses of which nothing is known: the difference could be
    theirs. `is_input` says that the runs had other inputs or other constants, and
    `reaches_output` that what is returned differs as well, by way of this node.
    """

    node: NodeId
    reference: NodeId
    difference: Difference
    upstream: tuple[NodeId, ...] = ()
    drift: float = 0.0
    absorbed: tuple[NodeId, ...] = ()
    between: tuple[NodeId, ...] = ()
    is_input: bool = False
    reaches_output: bool = True


def differences(
    trace: Trace,
    reference: Trace,
    pairs: Mapping[NodeId, NodeId],
    *,
    tolerance: Tolerance | None = None,
    fetch: Fetch | None = None,
) -> Mapping[NodeId, Difference]:
    """Compare the value of each node with that of its partner, in the order of the run.

    Nodes that one of the runs did not reach are left out. Of tensors that were not kept only
    their digests are compared; where these differ `fetch`, if given, is asked for the numbers.
    Without a tolerance each tensor has that of its dtype.
    """
    found = {}
    for node_id, visit in trace.visits.items():
        other = pairs.get(node_id)
        if other is None or other not in reference.visits:
            continue
        value, wanted = visit.value, reference.visits[other].value
        known = _told_without_numbers(value, wanted, other)
        if known is None:
            arrays, others = value.arrays, wanted.arrays
            if fetch is not None:
                arrays = arrays if _is_kept(value) else tuple(fetch(trace, node_id))
                others = others if _is_kept(wanted) else tuple(fetch(reference, other))
            known = _difference(other, value, wanted, arrays, others, tolerance)
        found[node_id] = known
    return found


def parting(trace: Trace, graph: Graph, found: Mapping[NodeId, Difference]) -> Parting | None:
    """Return where the two runs part, None when no value is known to differ.

    `graph` is that of the function as the ids of the trace have it: with called functions in
    place where their nodes were recorded. A node that has no partner, or whose value was not
    kept, is seen through: what it uses stands for it. Of several nodes the first is returned from
    which the difference goes on to what is returned: a difference that is gone in what follows
    was absorbed, or its node has the wrong partner.
    """
    flow = _Flow(graph, found)
    reaching = flow.reaching()
    parted = [node_id for node_id in trace.visits if flow.parts_at(node_id)]
    if not parted:
        return None
    chosen = next((one for one in parted if one in reaching), parted[0])
    before = [one for one in takewhile(lambda one: one != chosen, trace.visits) if one in found]
    upstream = tuple(one for one in before if found[one].is_same)
    node = graph[chosen]
    return Parting(
        chosen,
        found[chosen].reference,
        found[chosen],
        upstream,
        max((found[one].max_abs for one in upstream), default=0.0),
        tuple(one for one in before if found[one].is_different),
        flow.between(chosen),
        node.kind in LEAVES and not graph.entering.get(chosen),
        chosen in reaching,
    )


class _Flow:
    """How differences go through a graph: `carries` says of each node whether it differs.

    Of a node of which that is not known what it uses tells.
    """

    def __init__(self, graph: Graph, found: Mapping[NodeId, Difference]) -> None:
        self.graph, self.found = graph, found
        self.carries: dict[NodeId, bool] = {}
        for node in graph.nodes:
            if self.is_told(node.id):
                self.carries[node.id] = found[node.id].is_different
            else:
                self.carries[node.id] = any(map(self.carries.get, self.sources(node.id)))

    def is_told(self, node_id: NodeId) -> bool:
        """Tell whether a node is known to be the same, or to differ."""
        found = self.found.get(node_id)
        return found is not None and (found.is_same or found.is_different)

    def parts_at(self, node_id: NodeId) -> bool:
        """Tell whether a node differs and nothing that it is made of does."""
        if node_id not in self.found or node_id not in self.carries:
            return False
        is_different = self.found[node_id].is_different
        return is_different and not any(self.carries[one] for one in self.sources(node_id))

    def sources(self, node_id: NodeId) -> Iterator[NodeId]:
        """Yield what a node uses; an edge that leads back, to a function itself, is none."""
        index = self.graph.index
        for edge in self.graph.entering.get(node_id, ()):
            if index[edge.source] < index[node_id]:
                yield edge.source

    def between(self, node_id: NodeId) -> tuple[NodeId, ...]:
        """Return what a node uses that is not told, down to what is."""
        found: set[NodeId] = set()
        pending = list(self.sources(node_id))
        while pending:
            at = pending.pop()
            if not self.is_told(at) and at not in found:
                found.add(at)
                pending += self.sources(at)
        return tuple(sorted(found, key=lambda one: self.graph.index[one]))

    def reaching(self) -> set[NodeId]:
        """Return the nodes from which a difference goes on to what is returned."""
        pending = [one for one in self.graph.outputs if self.carries[one]]
        found: set[NodeId] = set()
        while pending:
            at = pending.pop()
            if at not in found:
                found.add(at)
                pending += [one for one in self.sources(at) if self.carries[one]]
        return found


def _is_kept(value: Value) -> bool:
    return all(array is not None for array in value.arrays)


def _told_without_numbers(value: Value, wanted: Value, other: NodeId) -> Difference | None:
    """Return the difference if what is always kept tells it, None if numbers are needed."""
    sizes = sum(prod(summary.shape) for summary in value.summaries)
    if value.is_same(wanted):
        return Difference(other, Verdict.EQUAL, 0.0, 0, sizes)
    if value.text != wanted.text:
        reason = f"it is {value.text!r} here and {wanted.text!r} there"
        return Difference(other, Verdict.DIFFERENT, numbers=sizes, reason=reason)
    shapes = [summary.shape for summary in value.summaries]
    others = [summary.shape for summary in wanted.summaries]
    if shapes != others:
        reason = f"it has the shapes {shapes} here and {others} there"
        return Difference(other, Verdict.INCOMPARABLE, numbers=sizes, reason=reason)
    return None


def _difference(
    other: NodeId,
    value: Value,
    wanted: Value,
    arrays: Arrays,
    others: Arrays,
    tolerance: Tolerance | None,
) -> Difference:
    """Compare tensor by tensor; those with equal digests need no numbers."""
    found: list[Closeness] = []
    is_open = False
    for mine, theirs, a, b in zip(value.summaries, wanted.summaries, arrays, others, strict=True):
        if mine.digest == theirs.digest:
            found.append(Closeness(prod(mine.shape)))
        elif a is None or b is None:
            is_open = True
        elif not (is_numeric(a.dtype) and is_numeric(b.dtype)):
            reason = f"it is {a.dtype} here and {b.dtype} there, and only numbers are compared"
            return Difference(other, Verdict.INCOMPARABLE, reason=reason)
        else:
            found.append(closeness(a, b, tolerance))
    past = sum(one.past for one in found)
    numbers = sum(prod(summary.shape) for summary in value.summaries)
    if is_open:
        reason = "equal it is not, and its numbers were not kept"
        verdict = Verdict.DIFFERENT if past else None
        return Difference(other, verdict, past=past, numbers=numbers, reason=reason)
    names = [
        (one.dtype, two.dtype) for one, two in zip(value.summaries, wanted.summaries, strict=True)
    ]
    changed = [f"it is {one} here and {two} there" for one, two in names if one != two]
    return Difference(
        other,
        Verdict.DIFFERENT if past else Verdict.CLOSE,
        max((one.max_abs for one in found), default=0.0),
        past,
        numbers,
        max((one.max_ulp for one in found if one.max_ulp is not None), default=None),
        "; ".join(changed),
    )
