"""The texts of a node: its title, the note below the title, and the label of its value."""

from __future__ import annotations

from irviz.model.folding.group_facts import UNKNOWN_FLOPS
from irviz.model.graph.graph import Node, NodeKind, Resolution
from irviz.model.graph.layers import layer_name
from irviz.view.svg_primitives import shorten, shorten_name

NAME_SIZE = 13.0
NOTE_SIZE = 10.0
VALUE_SIZE = 11.0

_CALLS = (
    NodeKind.CALL_TIR,
    NodeKind.CALL_DPS_PACKED,
    NodeKind.CALL_PACKED,
    NodeKind.CALL_FUNCTION,
)
_RESOLUTIONS = {
    Resolution.PRIM_FUNC: "PrimFunc",
    Resolution.FUNCTION: "Function",
    Resolution.PYTHON: "Python",
    Resolution.LIBRARY: "library",
    Resolution.UNKNOWN: "not registered",
}
assert _RESOLUTIONS.keys() == set(Resolution), "every resolution has a name"


def title(node: Node) -> str:
    """Return the title of a node: its callee, or the name of its variable."""
    match node.kind:
        case NodeKind.PARAM | NodeKind.FUNCTION | NodeKind.GROUP | NodeKind.ALLOC:
            text = node.name
        case NodeKind.CONSTANT:
            text = node.name or "const"
        case NodeKind.BLOCK:
            text = node.id
        case NodeKind.TUPLE:
            text = "( , )"
        case NodeKind.TUPLE_GET_ITEM:
            text = f"[{dict(node.attributes).get('index', '?')}]"
        case NodeKind.MATCH_CAST:
            text = "match_cast"
        case NodeKind.IF:
            text = "if"
        case NodeKind.VALUE:
            text = node.literals[0].text if node.literals else "="
        case NodeKind.OPERATOR:
            text = node.callee.removeprefix("relax.")
        case _:
            text = node.callee or node.name
    return shorten_name(text)


def note(node: Node) -> str:
    """Return the small line below the title: the kind of call and of callee, arguments, sizes."""
    if node.kind is NodeKind.OPERATOR:
        return shorten(", ".join(literal.text for literal in node.literals))
    if node.kind is NodeKind.GROUP:
        facts = dict(node.attributes)
        weights = [f"{facts.pop('parameters')} params"] if "parameters" in facts else []
        flops = facts.pop("FLOPs", "").partition(":")[0]
        if "layer" in facts:
            is_known = flops not in ("", UNKNOWN_FLOPS)
            work = f"{flops} FLOPs" if is_known else _operators(facts["operators"])
            return shorten(" · ".join([*weights, work]))
        holds = [v if key in ("holds", "they") else f"each: {v}" for key, v in facts.items()]
        count = [f"{node.size:,} nodes"] if node.type_label else []
        return shorten("; ".join([*weights, *count, *holds]))
    if node.kind is NodeKind.FUNCTION:
        return "function"
    if node.kind is NodeKind.ALLOC:
        return shorten(" · ".join(text for _, text in node.attributes))
    if node.kind is NodeKind.BLOCK:
        return shorten(dict(node.attributes).get("axes", ""))
    if node.kind not in _CALLS:
        return ""
    direct = "call" if node.kind is NodeKind.CALL_FUNCTION else node.kind.value
    how = node.operator.removeprefix("relax.") or direct
    is_plain = node.resolution is Resolution.PRIM_FUNC and how == "call_tir"
    if node.resolution is None or is_plain:
        return how
    return f"{how} · {_RESOLUTIONS[node.resolution]}"


def layers_label(node: Node) -> str:
    """Return the names of the layers that a node serves, "" for none."""
    names = dict.fromkeys(layer_name(layer) for layer in node.layers)
    return ", ".join(name for name in names if name)


def _operators(count: str) -> str:
    return "1 operator" if count == "1" else f"{count} operators"


def value_label(node: Node) -> str:
    """Return the label of the edges that leave a node: the name and type of its value."""
    has_name = node.kind not in (NodeKind.CONSTANT, NodeKind.GROUP) and node.name
    return shorten_name(f"{node.name}: {node.type_label}" if has_name else node.type_label)
