"""What is said of the place where two runs part, and of one node in both."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from irviz.model.closeness import Verdict
from irviz.model.graph import Graph, NodeId
from irviz.model.parting import Difference, Parting
from irviz.model.splice import within

_MOST_NAMES = 3


def node_name(node_id: str) -> str:
    """Return an id as it is read: `lv3/y` for the `y` of the function that `lv3` calls."""
    return node_id.replace(within("", ""), "/")


def parting_line(parting: Parting | None, stage: str, reference: str, graph: Graph) -> str:
    """Say in words where two stages part; `graph` is that of the first.

    `stages 2 and 0 part at lv1 (relu0): max |Δ| 0.5, 3 of 12,800 numbers; everything before is
    equal`. Without a parting no value that both have is known to differ.
    """
    if parting is None:
        return f"stages {stage} and {reference} do not part: no value is known to differ"
    name = _named(parting.node, graph)
    how = f"{name}: {amount(parting.difference)}"
    if parting.is_input:
        return f"stages {stage} and {reference} did not begin with the same: {how}"
    words = [f"stages {stage} and {reference} part at {how}"]
    if parting.between:
        words.append(f"it could be the work of {_names(parting.between)} before it")
    if parting.absorbed:
        words.append(f"{_names(parting.absorbed)} before it differed without an effect")
    elif parting.drift:
        words.append(f"everything before is within tolerance, max |Δ| {parting.drift:.2g}")
    else:
        words.append("everything before is equal")
    if not parting.reaches_output:
        words.append("the results do not show it")
    return "; ".join(words)


def parting_html(parting: Parting | None, stage: str, reference: str, graph: Graph) -> str:
    """Return where two stages part as a paragraph that is read aloud."""
    words = parting_line(parting, stage, reference, graph)
    return f'<p role="status" class="irviz-parting">{escape(words)}</p>'


def amount(difference: Difference) -> str:
    """Return by how much a value differs: `max |Δ| 0.5, 3 of 12,800 numbers`."""
    if difference.reason and difference.max_abs != difference.max_abs:
        return difference.reason
    words = (
        f"max |Δ| {difference.max_abs:.2g}, {difference.past:,} of {difference.numbers:,} numbers"
    )
    return f"{words}; {difference.reason}" if difference.reason else words


def difference_line(difference: Difference, reference: str) -> str:
    """Say how the value of a node is in a stage beside the one that `reference` names.

    `equal to lv1 in stage 0`, `within tolerance of lv1 in stage 0, max |Δ| 9.5e-07`.
    """
    where = f"{node_name(difference.reference)} in stage {reference}"
    match difference.verdict:
        case Verdict.EQUAL:
            return f"equal to {where}"
        case Verdict.CLOSE:
            ulp = "" if difference.max_ulp is None else f", {difference.max_ulp:,} ULP"
            return f"within tolerance of {where}, max |Δ| {difference.max_abs:.2g}{ulp}"
        case Verdict.DIFFERENT:
            return f"different from {where}: {amount(difference)}"
        case Verdict.INCOMPARABLE:
            return f"not comparable with {where}: {difference.reason}"
        case _:
            return f"not equal to {where}: its numbers were not kept"


def _named(node_id: NodeId, graph: Graph) -> str:
    at = graph.index.get(node_id)
    callee = "" if at is None else graph.nodes[at].callee
    return f"{node_name(node_id)} ({callee})" if callee else node_name(node_id)


def _names(node_ids: Sequence[NodeId]) -> str:
    names = [node_name(one) for one in node_ids[:_MOST_NAMES]]
    more = len(node_ids) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")
