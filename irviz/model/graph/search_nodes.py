"""Find nodes and groups by words.

The page searches a saved file by itself: `offline_search.ts` is tested with the same cases.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from irviz.model.graph.graph import Node, NodeId, NodeKind
from irviz.model.graph.layers import layer_name

MOST_FOUND = 200
"""The most nodes that are listed."""
_OCCURRENCE = r"^[^=\n]*{0}[^=\n]*$|(?<![^\W\d_]){0}"
"""A word anywhere in a line that is no attribute, or at the beginning of a word."""
_SHAPE = re.compile(r"\d+(?:[x×]\d+)+")


def search_nodes(
    nodes: Iterable[Node], words: str, notes: Mapping[NodeId, str] | None = None
) -> tuple[NodeId, ...]:
    """Return the nodes with every word in their names, type, layers, attributes or notes.

    Case does not matter, nor the bracket before a list: `strides=2` finds `strides=(2, 2)`, and
    shapes are found with commas, with or without spaces, and as `1x64x56x56`. In an attribute a
    word begins as one of its words does: `add` finds no `padding=1`. Nodes
    whose name or callee is the first word come first, and nodes without a callee, such as weights,
    after calls. Of each kind, those whose name or callee starts with the word come first.
    Otherwise the order is that of `nodes`.
    """
    terms, notes = _terms(words), notes or {}
    if not terms:
        return ()
    found = []
    looked_for = [re.compile(_OCCURRENCE.format(re.escape(word)), re.MULTILINE) for word in terms]
    for index, node in enumerate(nodes):
        text = _searched(search_text(node, notes.get(node.id, "")))
        # most nodes have not all words, which is sooner seen without the pattern
        if all(word in text for word in terms) and all(one.search(text) for one in looked_for):
            found.append((_rank(text, terms[0]), index, node.id))
    return tuple(node_id for _, _, node_id in sorted(found))


def search_text(node: Node, note: str = "") -> str:
    """Return what words are looked for in: name, callee and more, in lines.

    A group has its name, its class and its layer.
    """
    if node.kind is NodeKind.GROUP:
        name, _, kind = node.name.partition(" · ")
        return "\n".join((name, kind or "group", dict(node.attributes).get("layer", "")))
    callee, operator = (one.removeprefix("relax.") for one in (node.callee, node.operator))
    layers = map(layer_name, node.layers)
    attributes = (f"{name}={value}" for name, value in node.attributes)
    words = (node.name, callee, node.id, operator, node.type_label, *layers, *attributes, note)
    return "\n".join(words)


def other_matches(line: str, text: str, words: str) -> str:
    """Return the lines of a node's text with words that are not in the line shown of it."""
    shown = _searched(line)
    other = [word for word in _terms(words) if word not in shown]
    more = [one for one in text.split("\n") if any(word in _searched(one) for word in other)]
    return "  ".join(more)


def _terms(words: str) -> list[str]:
    terms = (word.removeprefix("relax.") for word in words.lower().split())
    return [re.sub("[x×]", ",", one) if _SHAPE.fullmatch(one) else one for one in terms]


def _searched(text: str) -> str:
    """Return a text in lower case, then without brackets before lists, then without spaces."""
    lower = text.lower()
    return f"{lower}\n{lower.replace('=(', '=').replace('=[', '=')}\n{lower.replace(', ', ',')}"


def _rank(text: str, word: str) -> int:
    names = text.split("\n")[:2]
    if word in names:
        return 0
    is_input = not names[1]
    return 1 + 2 * is_input + (not any(name.startswith(word) for name in names))
