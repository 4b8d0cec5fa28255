"""The first divergence of two runs, and the difference of one node, as text."""

from __future__ import annotations

from collections.abc import Sequence

from irviz.model.graph.graph import SEPARATOR, Graph, NodeId
from irviz.model.runs.array_diff import Verdict
from irviz.model.runs.divergence import Divergence, NodeDifference

_MAX_NAMES = 3


def node_path(node_id: str) -> str:
    """Return a node's id for display: `lv3/y` for the `y` of the function that `lv3` calls."""
    return node_id.replace(SEPARATOR, "/")


def divergence_summary(
    divergence: Divergence | None, stage: str, reference: str, graph: Graph
) -> str:
    """Describe where two stages diverge in one line.

    For example `stages 2 and 0 differ first at lv1 (relu0): max |Δ| 0.5, 3 of 12,800 numbers;
    everything before is equal`.

    `divergence` is None if no value is known to differ; `graph` is that of the stage.
    """
    if divergence is None:
        return f"stages {stage} and {reference} do not diverge: no value is known to differ"
    name = _named(divergence.node, graph)
    how = f"{name}: {difference_amount(divergence.difference)}"
    if divergence.is_input:
        return f"stages {stage} and {reference} have different inputs: {how}"
    words = [f"stages {stage} and {reference} differ first at {how}"]
    if divergence.between:
        words.append(f"the cause may be {_names(divergence.between)} before it")
    if divergence.absorbed:
        words.append(f"{_names(divergence.absorbed)} before it differed without an effect")
    elif divergence.drift:
        words.append(f"everything before is within tolerance, max |Δ| {divergence.drift:.2g}")
    else:
        words.append("everything before is equal")
    if not divergence.reaches_output:
        words.append("the results do not show it")
    return "; ".join(words)


def difference_amount(difference: NodeDifference) -> str:
    """Return the size of a difference: `max |Δ| 0.5, 3 of 12,800 numbers`."""
    if difference.reason and difference.max_abs != difference.max_abs:
        return difference.reason
    words = (
        f"max |Δ| {difference.max_abs:.2g}, {difference.past:,} of {difference.numbers:,} numbers"
    )
    return f"{words}; {difference.reason}" if difference.reason else words


def difference_summary(difference: NodeDifference, reference: str) -> str:
    """Compare a node's value with that of its counterpart in the reference, in one line.

    For example `within tolerance of lv1 in stage 0, max |Δ| 9.5e-07`.
    """
    where = f"{node_path(difference.reference)} in stage {reference}"
    match difference.verdict:
        case Verdict.EQUAL:
            return f"equal to {where}"
        case Verdict.CLOSE:
            ulp = "" if difference.max_ulp is None else f", {difference.max_ulp:,} ULP"
            return f"within tolerance of {where}, max |Δ| {difference.max_abs:.2g}{ulp}"
        case Verdict.DIFFERENT:
            return f"different from {where}: {difference_amount(difference)}"
        case Verdict.INCOMPARABLE:
            return f"not comparable with {where}: {difference.reason}"
        case _:
            return f"not equal to {where}: its numbers were not kept"


def _named(node_id: NodeId, graph: Graph) -> str:
    at = graph.index.get(node_id)
    callee = "" if at is None else graph.nodes[at].callee
    return f"{node_path(node_id)} ({callee})" if callee else node_path(node_id)


def _names(node_ids: Sequence[NodeId]) -> str:
    names = [node_path(one) for one in node_ids[:_MAX_NAMES]]
    more = len(node_ids) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")
