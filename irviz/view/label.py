"""The words of a node in a picture, and how wide they are."""

from __future__ import annotations

import unicodedata

from irviz.model.graph import Node, NodeKind, Resolution

NAME_SIZE = 13.0
NOTE_SIZE = 10.0
VALUE_SIZE = 11.0
_ADVANCE = 0.602  # of the em, in the usual monospaced faces
_MOST_CHARACTERS = 44

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
assert _RESOLUTIONS.keys() == set(Resolution), "every resolution has a word"


def title(node: Node) -> str:
    """Return the words in the middle of a node: what is called, or the variable's name."""
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
    return shortened(text)


def note(node: Node) -> str:
    """Return the small line below the title: how it is called and what the name leads to."""
    if node.kind is NodeKind.OPERATOR:
        return shortened(", ".join(literal.text for literal in node.literals))
    if node.kind is NodeKind.GROUP:
        holds = [v if key in ("holds", "they") else f"each: {v}" for key, v in node.attributes]
        count = [f"{node.size:,} nodes"] if node.type_label else []
        return shortened("; ".join([*count, *holds]))
    if node.kind is NodeKind.FUNCTION:
        return "function"
    if node.kind is NodeKind.ALLOC:
        return shortened(" · ".join(text for _, text in node.attributes))
    if node.kind is NodeKind.BLOCK:
        return shortened(dict(node.attributes).get("axes", ""))
    if node.kind not in _CALLS:
        return ""
    direct = "call" if node.kind is NodeKind.CALL_FUNCTION else node.kind.value
    how = node.operator.removeprefix("relax.") or direct
    is_plain = node.resolution is Resolution.PRIM_FUNC and how == "call_tir"
    if node.resolution is None or is_plain:
        return how
    return f"{how} · {_RESOLUTIONS[node.resolution]}"


def value_label(node: Node) -> str:
    """Return the words on the edges that leave a node: its value's name and type."""
    has_name = node.kind not in (NodeKind.CONSTANT, NodeKind.GROUP) and node.name
    return shortened(f"{node.name}: {node.type_label}" if has_name else node.type_label)


def shortened(text: str) -> str:
    """Return one printable line of at most 44 characters."""
    line = printable(" ".join(text.split()))
    return line if len(line) <= _MOST_CHARACTERS else line[: _MOST_CHARACTERS - 1] + "…"


def printable(text: str) -> str:
    """Return the text with every character that XML forbids replaced by U+FFFD."""
    return "".join(char if _is_xml(ord(char)) else "\ufffd" for char in text)


def width(text: str, size: float) -> float:
    """Return the width of monospaced text in px, for a font of this size in px."""
    cells = sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)
    return cells * size * _ADVANCE


def _is_xml(code: int) -> bool:
    return (
        code in (0x9, 0xA, 0xD)
        or 0x20 <= code <= 0xD7FF
        or 0xE000 <= code <= 0xFFFD
        or 0x10000 <= code <= 0x10FFFF
    )
