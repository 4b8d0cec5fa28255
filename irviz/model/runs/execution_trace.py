"""The value and the time of each node in a run, and where two runs diverge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from math import prod

from irviz.model.graph.graph import Graph, NodeId, UnknownNodeError, id_in_callee
from irviz.model.runs.array_diff import Array as Array
from irviz.model.runs.array_diff import (
    ArrayDiff,
    ArraySummary,
    Tolerance,
    Verdict,
    combine_diffs,
    compare_arrays,
    is_numeric,
)


@dataclass(frozen=True, eq=False)
class NodeValue:
    """The value of a node.

    Attributes:
        summaries: The statistics of each tensor in the value: one for a tensor, any number for a
            tuple, none for a shape or a number.
        arrays: The same tensors themselves, None for one that was too large to keep.
        text: A value that is not a tensor, as text.
    """

    summaries: tuple[ArraySummary, ...] = ()
    arrays: tuple[Array | None, ...] = ()
    text: str = ""

    @property
    def nbytes(self) -> int:
        """The size of the tensors in bytes."""
        return sum(summary.nbytes for summary in self.summaries)

    @property
    def largest(self) -> float | None:
        """The largest magnitude of the finite numbers, None if there are none."""
        magnitudes = [one.largest for one in self.summaries if one.largest is not None]
        return max(magnitudes, default=None)

    @property
    def is_finite(self) -> bool:
        """Whether the value has neither a NaN nor an infinity."""
        return all(summary.is_finite for summary in self.summaries)

    def is_same(self, other: NodeValue) -> bool:
        """Return whether two values are equal bit by bit."""
        digests = [(one.digest, one.step) for one in self.summaries]
        known = [(one.digest, 1) for one in other.summaries]
        return digests == known and self.text == other.text


@dataclass(frozen=True, eq=False)
class NodeVisit:
    """The visits of one node in a run.

    `seconds` is the time of all visits, without that of nodes in a function that the node calls;
    None for a parameter or a constant.
    """

    value: NodeValue
    seconds: float | None = None
    count: int = 1


@dataclass(frozen=True, eq=False)
class Trace:
    """The values and times of one call of a function.

    Attributes:
        visits: The visits of nodes, in execution order. A node of a called function has its id in
            the inlined graph (`inlined_id`). Nodes of a branch not taken are absent.
        seconds: The time of the call in seconds: the sum over its nodes.
        untraced: The time of a call without tracing, in seconds.
        cost: The cost of recording the values, in seconds.
    """

    function: str
    visits: Mapping[NodeId, NodeVisit]
    seconds: float
    untraced: float
    cost: float
    case: int = 0

    def __repr__(self) -> str:
        return f"<Trace of {self.function!r}, input {self.case}: {len(self.visits)} values>"

    def __getitem__(self, node_id: str) -> NodeVisit:
        """Return the visits of a node; raise UnknownNodeError for one that was not reached."""
        visit = self.visits.get(NodeId(node_id))
        if visit is None:
            raise UnknownNodeError(
                f"no value of {node_id!r} was recorded: it is not a node of {self.function!r}, or "
                "stands in a branch that was not taken"
            )
        return visit

    def taken(self, node_id: str) -> float | None:
        """Return the time of a node in seconds, including the function that it calls."""
        own = self[node_id].seconds
        if own is None:
            return None
        inside = [v for one, v in self.visits.items() if id_in_callee(node_id, one) is not None]
        return own + sum(visit.seconds or 0.0 for visit in inside)

    def share(self, node_id: str) -> float | None:
        """Return a node's fraction of the call's time, from 0 to 1."""
        seconds = self.taken(node_id)
        return None if seconds is None or not self.seconds else seconds / self.seconds

    @property
    def first_not_finite(self) -> NodeId | None:
        """The first node whose value contains a NaN or infinity, None if there is none."""
        return next((one for one, visit in self.visits.items() if not visit.value.is_finite), None)

    @property
    def first_nan(self) -> NodeId | None:
        """The first node whose value contains a NaN, None if there is none."""
        values = ((node, visit.value) for node, visit in self.visits.items())
        return next((node for node, one in values if any(s.nans for s in one.summaries)), None)


Arrays = Sequence[Array | None]
FetchArrays = Callable[[Trace, NodeId], Arrays]
"""Gets the tensors of a node's value that a trace did not keep, in their order."""


@dataclass(frozen=True)
class NodeDifference:
    """The difference between the values of a node and of its partner in the reference run.

    Attributes:
        verdict: How the values compare; None if they are not equal and a tensor was not kept, so
            that it is unknown how close they are.
        max_abs: The largest |Δ|, nan if it is unknown or the values are not numbers.
        past: The count of numbers that are not within tolerance.
        max_ulp: That of `ArrayDiff`.
        reason: Why the values cannot be compared, or a remark about the comparison.
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
        """Whether the values are equal or within tolerance."""
        return self.verdict in (Verdict.EQUAL, Verdict.CLOSE)

    @property
    def is_different(self) -> bool:
        """Whether the values are known to differ by more than the tolerance."""
        return self.verdict is Verdict.DIFFERENT


@dataclass(frozen=True)
class Divergence:
    """The node whose operation caused the first significant difference.

    Attributes:
        difference: The difference between its value and that of its counterpart.
        upstream: The nodes that ran before it with equal values, in execution order.
        drift: The largest |Δ| among these.
        absorbed: The nodes that ran before it and differ without affecting the result.
        between: Operands with unknown values, and their operands in turn; the difference may come
            from one of them.
        is_input: Whether the node is an input, so that the runs had different inputs or constants.
        reaches_output: Whether the difference reaches the function's result.
    """

    node: NodeId
    difference: NodeDifference
    upstream: tuple[NodeId, ...] = ()
    drift: float = 0.0
    absorbed: tuple[NodeId, ...] = ()
    between: tuple[NodeId, ...] = ()
    is_input: bool = False
    reaches_output: bool = True

    @property
    def reference(self) -> NodeId:
        """The node's counterpart in the reference run."""
        return self.difference.reference


def node_differences(
    trace: Trace,
    reference: Trace,
    pairs: Mapping[NodeId, NodeId],
    *,
    tolerance: Tolerance | None = None,
    fetch: FetchArrays | None = None,
) -> Mapping[NodeId, NodeDifference]:
    """Compare the value of each node with that of its partner.

    Args:
        tolerance: What counts as close, `default_tolerance` of each tensor if it is None.
        fetch: Gets tensors that were not kept, if their digests differ; None to do without.

    Returns:
        The differences in the order of the run, without nodes that one of the runs did not reach.
    """
    differences = {}
    for node_id, visit in trace.visits.items():
        other = pairs.get(node_id)
        if other is None or other not in reference.visits:
            continue
        value, expected = visit.value, reference.visits[other].value
        difference = _difference_without_numbers(value, expected, other)
        if difference is None:
            arrays = _arrays(trace, node_id, fetch), _arrays(reference, other, fetch)
            difference = _difference(other, value, expected, arrays, tolerance)
        differences[node_id] = difference
    return differences


def first_divergence(
    trace: Trace, graph: Graph, differences: Mapping[NodeId, NodeDifference]
) -> Divergence | None:
    """Return the first divergence of two runs, None if no value is known to differ.

    The operands of a node without a partner, or without a known difference, stand for the node. Of
    several nodes, the first is returned whose difference continues to the function's result: a
    difference that disappears later was absorbed, or its node has a wrong partner.

    Args:
        graph: The function that ran, with called functions inlined if their nodes were recorded.
    """
    operands = {one.id: [edge.source for edge in graph.operands(one.id)] for one in graph.nodes}
    differing = {one for one, each in differences.items() if each.is_different and one in operands}
    known = differing.union(one for one, each in differences.items() if each.is_same)
    carries: dict[NodeId, bool] = {}
    for one, sources in operands.items():  # where it is not known, it differs if an operand does
        carries[one] = one in differing if one in known else any(map(carries.get, sources))
    reaching = _upstream(graph.outputs, operands, carries.__getitem__)
    visited = (one for one in trace.visits if one in differing)
    origins = [one for one in visited if not any(map(carries.get, operands[one]))]
    if not origins:
        return None
    first = next((one for one in origins if one in reaching), origins[0])
    before = [
        one for one in takewhile(lambda one: one != first, trace.visits) if one in differences
    ]
    upstream = tuple(one for one in before if differences[one].is_same)
    between = _upstream(operands[first], operands, lambda one: one not in known)
    return Divergence(
        node=first,
        difference=differences[first],
        upstream=upstream,
        drift=max((differences[one].max_abs for one in upstream), default=0.0),
        absorbed=tuple(one for one in before if differences[one].is_different),
        between=tuple(sorted(between, key=graph.index.__getitem__)),
        is_input=graph[first].is_input and not graph.entering.get(first),
        reaches_output=first in reaching,
    )


def _upstream(
    nodes: Iterable[NodeId],
    operands: Mapping[NodeId, Sequence[NodeId]],
    holds: Callable[[NodeId], bool],
) -> set[NodeId]:
    """Return those of the nodes, of their operands and so on for which a condition holds."""
    pending, found = list(nodes), set[NodeId]()
    while pending:
        at = pending.pop()
        if at not in found and holds(at):
            found.add(at)
            pending += operands[at]
    return found


def _arrays(trace: Trace, node_id: NodeId, fetch: FetchArrays | None) -> Arrays:
    """Return the tensors of a node's value, fetched if one was not kept."""
    arrays = trace.visits[node_id].value.arrays
    is_kept = all(array is not None for array in arrays)
    return arrays if is_kept or fetch is None else fetch(trace, node_id)


def _difference_without_numbers(
    value: NodeValue, expected: NodeValue, other: NodeId
) -> NodeDifference | None:
    """Return the difference if shapes, digests and texts tell it, None if numbers are needed."""
    sizes = sum(prod(summary.shape) for summary in value.summaries)
    if value.is_same(expected):
        return NodeDifference(other, Verdict.EQUAL, 0.0, 0, sizes)
    if value.text != expected.text:
        reason = f"it is {value.text!r} here and {expected.text!r} there"
        return NodeDifference(other, Verdict.DIFFERENT, numbers=sizes, reason=reason)
    shapes = [summary.shape for summary in value.summaries]
    others = [summary.shape for summary in expected.summaries]
    if shapes != others:
        reason = f"it has the shapes {shapes} here and {others} there"
        return NodeDifference(other, Verdict.INCOMPARABLE, numbers=sizes, reason=reason)
    return None


def _difference(
    other: NodeId,
    value: NodeValue,
    expected: NodeValue,
    arrays: tuple[Arrays, Arrays],
    tolerance: Tolerance | None,
) -> NodeDifference:
    """Compare tensor by tensor; equal digests need no numbers."""
    diffs: list[ArrayDiff] = []
    changed = []
    is_unknown = False
    for mine, theirs, a, b in zip(value.summaries, expected.summaries, *arrays, strict=True):
        if mine.dtype != theirs.dtype:
            changed.append(f"it is {mine.dtype} here and {theirs.dtype} there")
        if mine.digest == theirs.digest:
            diffs.append(ArrayDiff(prod(mine.shape)))
        elif a is None or b is None:
            is_unknown = True
        elif not (is_numeric(a.dtype) and is_numeric(b.dtype)):
            reason = f"it is {a.dtype} here and {b.dtype} there, and only numbers are compared"
            return NodeDifference(other, Verdict.INCOMPARABLE, reason=reason)
        else:
            diffs.append(compare_arrays(a, b, tolerance))
    total = combine_diffs(diffs)
    if is_unknown:
        reason = "it is not equal, and its numbers were not kept"
        numbers = sum(prod(summary.shape) for summary in value.summaries)
        verdict = Verdict.DIFFERENT if total.past else None
        return NodeDifference(other, verdict, past=total.past, numbers=numbers, reason=reason)
    return NodeDifference(
        other,
        Verdict.DIFFERENT if total.past else Verdict.CLOSE,
        total.max_abs,
        total.past,
        total.size,
        total.max_ulp,
        "; ".join(changed),
    )
