"""The texts of a node: its title, the note below the title, and the label of its value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from irviz.model.folding.group_tree import STORAGE_ROTATES, UNKNOWN_FLOPS
from irviz.model.graph.graph import CALL_KINDS, Node, NodeKind, Resolution
from irviz.model.graph.layers import layer_name
from irviz.view.svg_primitives import MAX_CHARACTERS, shorten, shorten_name

NAME_SIZE = 13.0
NOTE_SIZE = VALUE_SIZE = 11.0
_MAX_WEIGHTS = 4
_LEAST_NAME = 16
_MAX_HELD, _MAX_THREADS = 28, 64
"""The most characters for the names of a group's contents."""

_TITLED = (NodeKind.PARAM, NodeKind.FUNCTION, NodeKind.GROUP, NodeKind.ALLOC)
"""The kinds of nodes whose title is the name of their value."""
_TENSOR = re.compile(r"(^|[:×] )Tensor\[(\(.*)\]$")
_FLOAT_TENSOR = re.compile(r"\bTensor\[(\([^()]*\))\]")
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
        case kind if kind in _TITLED:
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
    return group_title(text)


def group_title(text: str) -> str:
    """Return the title of a group or a frame in one line of at most 44 characters.

    If it is longer, the remark on rotating storage is left out first, then the class of the layer;
    the name, the repeat and the number of the copy stay.
    """
    name, *facts = text.split(" · ")
    copy = [one for one in facts if one.startswith("copy ")]
    for kept in (facts, [one for one in facts if one != STORAGE_ROTATES], copy):
        found = " · ".join((name, *kept))
        if len(found) <= MAX_CHARACTERS:
            break
    room = MAX_CHARACTERS - len(found) + len(name)
    return shorten_name(name, room) + found[len(name) :]


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
            count = facts["operators"]
            work = f"{flops} FLOPs" if is_known else f"{count} operator{'s' * (count != '1')}"
            return shorten(" · ".join([*weights, work]))
        return " · ".join([*weights, *_contents(node, facts)])
    if node.kind is NodeKind.FUNCTION:
        return "function"
    if node.kind is NodeKind.ALLOC:
        return shorten(" · ".join(text for _, text in node.attributes))
    if node.kind is NodeKind.BLOCK:
        return shorten(dict(node.attributes).get("axes", ""))
    return _call(node) if node.kind in CALL_KINDS else ""


def lines(node: Node) -> list[str]:
    """Return the small lines below the title: the note, threads, the layer, the weights."""
    threads = dict(node.attributes).get("threads", "") if node.kind is NodeKind.BLOCK else ""
    shown = weights(node)
    texts = [shorten_name(_weight(one)) for one in shown]
    if len(shown) < len(node.weights):
        texts.append(f"and {len(node.weights) - len(shown)} more weights")
    layer = group_title(node.group)
    return list(filter(None, [note(node), shorten_name(threads, _MAX_THREADS), layer, *texts]))


def weights(node: Node) -> Sequence[Node]:
    """Return the weights of a node that have a line each: all of a few, or the first ones."""
    is_few = len(node.weights) <= _MAX_WEIGHTS
    return node.weights if is_few else node.weights[: _MAX_WEIGHTS - 1]


def _weight(leaf: Node) -> str:
    """Return the line for a weight in its user: its name without its layer, and its shape.

    `p_mlp_0_weight` of the layer `mlp.0` is `weight (96, 24)`.
    """
    layer = leaf.layers[0] if leaf.layers else ()  # of two stages one may know no layers
    around = re.escape(layer_name(layer)).replace(r"\.", "[._]")
    name = re.sub(rf"^.*?{around}[._](?=.)", "", leaf.name) if around else leaf.name
    return f"{name or title(leaf)} {type_in_picture(leaf)}"


def type_in_picture(node: Node) -> str:
    """Return the type of a node's value, of a tensor its shape and dtype alone: `(4,), int64`.

    A tensor in a tuple is its shape if it is of float32, which is left out.
    """
    return _FLOAT_TENSOR.sub(r"\1", _TENSOR.sub(r"\1\2", node.type_label))


def _call(node: Node) -> str:
    """Return the kind of a call, and of what is called."""
    is_direct = node.kind in (NodeKind.CALL_FUNCTION, NodeKind.GROUP)
    how = node.operator.removeprefix("relax.") or ("call" if is_direct else node.kind.value)
    if node.resolution is None or (node.resolution is Resolution.PRIM_FUNC and how == "call_tir"):
        return how
    return f"{how} · {_RESOLUTIONS[node.resolution]}"


def _contents(node: Node, facts: Mapping[str, str]) -> Iterator[str]:
    """Yield the number of nodes in a group, and their names, if its title says neither.

    For a call with its buffers, this is the kind of call.
    """
    if node.callee:
        yield _call(node)
        return
    if node.type_label and not node.name.endswith(" operators"):
        yield "1 node" if node.size == 1 else f"{node.size:,} nodes"
    for key, held in facts.items():
        names = [one for one in held.split(", ") if one != "…"]
        if names[0].partition(" ×")[0] not in node.name:
            while len(names) > 1 and len(", ".join(names)) > _MAX_HELD:
                names.pop()
            rest = ["…"] if held.count(", ") >= len(names) else []
            text = shorten_name(", ".join((*names, *rest)))
            yield f"each: {text}" if key == "each holds" else text


def layers_label(node: Node) -> str:
    """Return the names of the layers that a node belongs to, "" for none."""
    names = dict.fromkeys(layer_name(layer) for layer in node.layers)
    return ", ".join(name for name in names if name)


def value_label(node: Node) -> str:
    """Return the name and type of a node's value, the type alone where the name is its title.

    If both are too long, the name is shortened first, then the type.
    Of a call with which an element of its value is drawn, they are those of the element.
    """
    if node.item:
        return value_label(node.item)
    has_name = node.name and node.kind not in (*_TITLED, NodeKind.CONSTANT)
    type_ = type_in_picture(node)
    room = max(MAX_CHARACTERS - len(type_) - 2, _LEAST_NAME)
    name = shorten_name(node.name, room if type_ else MAX_CHARACTERS) if has_name else ""
    return shorten(": ".join(filter(None, (name, type_))))
