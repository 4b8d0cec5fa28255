"""What a node is, as HTML for the pane beside the picture."""

from __future__ import annotations

from html import escape

from irviz.model.graph import Graph, Node, NodeKind, Resolution
from irviz.view.code import code_html

KINDS: dict[NodeKind, str] = {
    NodeKind.PARAM: "parameter",
    NodeKind.CONSTANT: "constant",
    NodeKind.CALL_TIR: "call_tir of a PrimFunc",
    NodeKind.CALL_DPS_PACKED: "call_dps_packed",
    NodeKind.OPERATOR: "operator",
    NodeKind.CALL_FUNCTION: "call of a function",
    NodeKind.TUPLE: "tuple",
    NodeKind.TUPLE_GET_ITEM: "item of a tuple",
    NodeKind.MATCH_CAST: "match_cast",
    NodeKind.OTHER: "other expression",
}
assert KINDS.keys() == set(NodeKind), "every kind of node has a name"

RESOLUTIONS: dict[Resolution, str] = {
    Resolution.PRIM_FUNC: "a PrimFunc of this module",
    Resolution.FUNCTION: "a Relax function of this module",
    Resolution.LIBRARY: "a registered library function",
    Resolution.UNKNOWN: "nothing: no function of this name is in the module or registered",
}
assert RESOLUTIONS.keys() == set(Resolution), "every resolution has words"


def facts_html(graph: Graph, node: Node) -> str:
    """Return what a node is: kind, type, callee and what it leads to, arguments, users, block."""
    facts = [("kind", KINDS[node.kind]), ("type", node.type_label)]
    if node.callee:
        facts.append(("callee", node.callee))
    if node.resolution is not None:
        facts.append(("leads to", RESOLUTIONS[node.resolution]))
    names = {other.id: other.name or str(other.id) for other in graph.nodes}
    inputs = [(edge.position, names[edge.source]) for edge in graph.edges if edge.target == node.id]
    inputs += [(literal.position, literal.text) for literal in node.literals]
    if inputs:
        facts.append(("arguments", ", ".join(text for _, text in sorted(inputs))))
    users = dict.fromkeys(edge.target for edge in graph.edges if edge.source == node.id)
    uses = [*map(names.__getitem__, users), *(["return"] if node.id in graph.outputs else [])]
    facts.append(("used by", ", ".join(uses) or "nothing"))
    facts.append(("block", _block(graph, node)))
    facts += node.attributes
    rows = "".join(f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>" for key, value in facts)
    name = escape(node.name or "constant")
    return f'<div class="irviz-details"><h4>{name}</h4><dl>{rows}</dl></div>'


def source_html(node: Node, line: str, line_number: int, prim_func: str) -> str:
    """Return a node's line of TVMScript and the PrimFunc behind it, highlighted.

    `line` is "" for a node that has no line of its own, `prim_func` "" where there is none.
    """
    parts = []
    if line:
        parts.append(f"<h5>TVMScript, line {line_number}</h5>{code_html(line)}")
    if prim_func:
        parts.append(f"<h5>PrimFunc {escape(node.callee)}</h5>{code_html(prim_func)}")
    return f'<div class="irviz-details">{"".join(parts)}</div>'


def _block(graph: Graph, node: Node) -> str:
    if node.block is None:
        return "none: a parameter" if node.kind is NodeKind.PARAM else "none: returned as it is"
    number = node.block + 1
    kind = (
        "dataflow block" if graph.blocks[node.block].is_dataflow else "binding block, no dataflow"
    )
    return f"{number} of {len(graph.blocks)}, {kind}"
