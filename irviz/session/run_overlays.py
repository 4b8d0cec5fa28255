"""Overlays of a view: the times, sizes and values of a run, and differences between two."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Literal

from irviz.model.graph.graph import SEPARATOR, NodeId, call_path, grouped, inlined_id
from irviz.model.runs.array_diff import ArraySummary
from irviz.model.runs.execution_trace import Trace
from irviz.session.shown_function import StageView
from irviz.units import format_bytes, format_duration
from irviz.view.graph.overlay import Mark, Overlay, scaled_shares


def time_overlay(trace: Trace, view: StageView) -> Overlay:
    """Return each node's share of the time; groups and collapsed calls have the sum."""
    taken = {one: v.seconds for one, v in trace.visits.items() if v.seconds is not None}
    every = trace.seconds or sum(taken.values())
    times = {one: max(seconds, 0.0) for one, seconds in sum_values(view, taken).items()}
    most = max(times.values(), default=0.0)
    marks = {}
    for one, seconds in times.items():
        words = format_duration(seconds)
        if every and seconds >= 0.01 * every:
            words += f" · {_percent(seconds, every)}"
        marks[one] = Mark(seconds / most if most else 0.0, words)
    title = f"time of each node, of {format_duration(every)}"
    return Overlay(title, "0 %", _percent(most, every), marks)


def size_overlay(trace: Trace, view: StageView) -> Overlay:
    """Return the size of each node's value in bytes; groups have the sum."""
    bytes_ = {
        one: float(visit.value.nbytes)
        for one, visit in trace.visits.items()
        if visit.value.summaries
    }
    sizes = reduce_values(view, bytes_, sum)
    shares, low, high, scale = scaled_shares(sizes, format_bytes)
    marks = {one: Mark(shares[one], format_bytes(size)) for one, size in sizes.items()}
    return Overlay(f"size of each value{scale}", low, high, marks)


def value_overlay(trace: Trace, view: StageView) -> Overlay:
    """Return the largest |value| of each node; groups have the maximum.

    Nodes with NaN or Inf are flagged, even inside a collapsed call; the first one is marked.
    """
    largest = {
        one: visit.value.largest
        for one, visit in trace.visits.items()
        if visit.value.largest is not None
    }
    values = reduce_values(view, largest, max)
    shares, low, high, scale = scaled_shares(values, _number)
    marks = {one: Mark(shares[one], _number(value)) for one, value in values.items()}
    broken = [one for one, visit in trace.visits.items() if not visit.value.is_finite]
    for place, nodes in by_visible_node(view, broken).items():
        summaries = [summary for one in nodes for summary in trace.visits[one].value.summaries]
        is_first = broken[0] in nodes
        words = _not_finite(summaries) + " · first" * is_first
        share = 1.0 if is_first or place not in shares else shares[place]
        marks[place] = Mark(share, words, is_flagged=True, is_first=is_first)
    return Overlay(f"largest |value|{scale}", low, high, marks, "NaN or Inf")


def difference_overlay(
    differences: Mapping[NodeId, float], view: StageView, first: Iterable[NodeId] = ()
) -> Overlay:
    """Return the largest |Δ| of each node from another stage; groups have the maximum.

    The nodes in `first`, where the stages first differ, and differences that are not finite are
    flagged.
    """
    found = reduce_values(view, differences, _largest)
    finite = {one: abs(value) for one, value in found.items() if math.isfinite(value)}
    shares, low, high, scale = scaled_shares(finite, _number)
    parted = list(first)
    flagged = by_visible_node(view, parted)
    marks = {}
    for place, value in found.items():
        is_finite = place in finite
        is_first = bool(parted) and parted[0] in flagged.get(place, ())
        marks[place] = Mark(
            shares[place] if is_finite else 1.0,
            (_number(value) if is_finite else "not finite") + " · first" * is_first,
            is_flagged=place in flagged or not is_finite,
            is_first=is_first,
        )
    reasons = ["first difference"] * bool(flagged) + ["not finite"] * (len(finite) < len(found))
    return Overlay(f"largest |Δ| of each value{scale}", low, high, marks, ", or ".join(reasons))


def dimmed_places(
    equal: Collection[NodeId], compared: Iterable[NodeId], view: StageView
) -> list[str]:
    """Return the drawn nodes that show only equal values; `compared` are all compared nodes."""
    same = frozenset(equal)
    return [
        str(place)
        for place, nodes in by_visible_node(view, compared).items()
        if same.issuperset(nodes)
    ]


def _largest(values: Sequence[float]) -> float:
    """Return the largest |value|; NaN counts as larger than any number."""
    return max(map(abs, values), key=lambda one: math.inf if math.isnan(one) else one)


def _not_finite(summaries: Collection[ArraySummary]) -> str:
    nans, infs = sum(one.nans for one in summaries), sum(one.infs for one in summaries)
    return ", ".join(f"{count:,} {name}" for count, name in ((nans, "NaN"), (infs, "Inf")) if count)


def _percent(part: float, whole: float) -> str:
    share = 100 * part / whole if whole else 0.0
    return f"{share:.0f} %" if share >= 1 or not share else "< 1 %"


def _number(value: float) -> str:
    """Format a number in few characters: `0.42`, `1.2e-6`, `3.1e12`."""
    text = f"{value:.2g}" if not 1 <= abs(value) < 1e4 else f"{value:.3g}"
    if 100 <= abs(value) < 1e4:
        text = f"{value:.0f}"
    mantissa, is_far, exponent = text.partition("e")
    return f"{mantissa}e{int(exponent)}" if is_far else text


OverlayKind = Literal["time", "size", "value", "difference"]

OVERLAYS: Mapping[OverlayKind, str] = {
    "time": "time",
    "size": "size",
    "value": "largest |value|",
    "difference": "difference of values",
}
"""The quantities that nodes can be coloured by, with their labels."""


def trace_overlay(kind: OverlayKind, trace: Trace, view: StageView) -> Overlay:
    """Return an overlay of a trace, of any kind except "difference", which takes two traces."""
    made = {"time": time_overlay, "size": size_overlay, "value": value_overlay}
    return made[kind](trace, view)


# --- Aggregate values of a function's nodes by the drawn node that shows or contains them --------


def visible_node(drawn: StageView, node_id: NodeId) -> NodeId | None:
    """Return the drawn node that shows or contains a node.

    Returns None for a node that is not drawn. That includes nodes in copies of a repeat that are
    not shown, because the drawn node is a different one. A call that is not inlined contains the
    nodes of the function that it calls.
    """
    call, is_inside, rest = node_id.partition(SEPARATOR)
    step = drawn.visible.tree.bound.at.get(NodeId(call))
    outer = drawn.visible.places.get(NodeId(call) if step is None else step)
    if not is_inside or outer is None:
        return outer
    inner = drawn.inner.get(outer) if outer == call else None
    if inner is None:
        return outer
    found = visible_node(inner, NodeId(rest))
    return None if found is None else inlined_id(call, found)


def by_visible_node(drawn: StageView, node_ids: Iterable[NodeId]) -> dict[NodeId, list[NodeId]]:
    """Group nodes by the drawn node that shows or contains them."""
    places = ((visible_node(drawn, node_id), node_id) for node_id in node_ids)
    return grouped((where, node_id) for where, node_id in places if where is not None)


def sum_values(drawn: StageView, values: Mapping[NodeId, float]) -> dict[NodeId, float]:
    """Add up values for each drawn node; a call includes the function that it calls."""
    return {
        where: sum(values[one] for one in nodes)
        for where, nodes in by_visible_node(drawn, values).items()
    }


def reduce_values(
    drawn: StageView, values: Mapping[NodeId, float], reduce: Callable[[Sequence[float]], float]
) -> dict[NodeId, float]:
    """Reduce the values for each drawn node to one.

    The value of a call is its function's result, so nodes in the function count only if the call
    itself has no value.
    """
    found = {}
    for where, nodes in by_visible_node(drawn, values).items():
        there = set(nodes)
        outer = [one for one in nodes if there.isdisjoint(call_path(one)[:-1])]
        found[where] = reduce([values[one] for one in outer])
    return found
