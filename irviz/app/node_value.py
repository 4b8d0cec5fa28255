"""What a trace has of one node, and what is said of it."""

from __future__ import annotations

from functools import lru_cache

from irviz.app.controls import said
from irviz.app.findings import Findings
from irviz.app.picture import Picture
from irviz.app.read import array_of
from irviz.model.graph import NodeId, NodeKind
from irviz.model.summary import summarise
from irviz.model.trace import Trace, Value
from irviz.transforms.stage import Stage
from irviz.view.badge import duration
from irviz.view.parting import node_name

_UNTOLD = (*(NodeKind.FUNCTION, NodeKind.BLOCK, NodeKind.ALLOC, NodeKind.GROUP, NodeKind.CONSTANT),)
"""Kinds of nodes that a run tells no value of."""


def node_value(
    stage: Stage, trace: Trace | None, found: Findings | None, node_id: str, picture: Picture
) -> tuple[Value | None, str]:
    """Return the value of a node of a stage's picture, None where it is not known, and words."""
    if trace is not None and node_id in trace.visits:
        line = "" if found is None else found.line_of(node_id)
        words = [f"input {trace.case}", _time(trace, node_id), line]
        return trace[node_id].value, "; ".join(filter(None, words))
    function, inner, graph = picture.locate(node_id)
    value = _constant(stage, function, inner)
    if value is not None or trace is None or inner not in graph.index:
        return value, ""
    is_told = graph[inner].kind not in _UNTOLD
    return None, f"input {trace.case}: it was not reached" if is_told else ""


def not_finite_line(trace: Trace | None) -> str:
    """Return where a NaN or an infinity appears first, in words; "" where none does."""
    first = trace.first_not_finite if trace is not None else None
    if trace is None or first is None:
        return ""
    counts = [(one.nans, one.infs) for one in trace[first].value.summaries]
    nans, infs = (sum(column) for column in zip(*counts, strict=True))
    return f"the first value that is not finite is {node_name(first)}: {nans} NaN, {infs} Inf"


def cost_html(trace: Trace | None) -> str:
    """Say what the recording cost."""
    if trace is None:
        return ""
    untraced, cost = duration(trace.untraced), duration(trace.cost)
    return said(
        f"{len(trace.visits)} values recorded in {cost}; a call takes {untraced} without that",
        "irviz-hint",
    )


def _time(trace: Trace, node_id: str) -> str:
    """Say how long a node took, and which part of the call that is."""
    taken, share = trace.taken(node_id), trace.share(node_id)
    if taken is None or share is None:
        return ""
    return f"{duration(taken)}, {share:.0%} of the call"


@lru_cache(maxsize=8)
def _constant(stage: Stage, function: str, node_id: NodeId) -> Value | None:
    """Return the value of a constant, None for another node."""
    array = array_of(stage, function, node_id)
    return None if array is None else Value((summarise(array),), (array,))
