"""Search for nodes by name, operator, callee or type."""

from __future__ import annotations

from irviz.model.graph.graph import Graph, Node, NodeId

MOST_FOUND = 200
"""The most nodes that are listed."""


def search_nodes(graph: Graph, words: str) -> tuple[NodeId, ...]:
    """Return the nodes with every word in their name, operator, callee or type, ignoring case.

    Nodes whose name or callee is the first word come first, then those whose name or callee starts
    with it; otherwise the order is that of the text. A saved file is searched by the page: by
    `search_nodes.ts`, which is tested with the same cases as this.
    """
    terms = [word.removeprefix("relax.") for word in words.lower().split()]
    if not terms:
        return ()
    found = []
    for index, node in enumerate(graph.nodes):
        text = search_text(node)
        if all(word in text for word in terms):
            found.append((_rank(text, terms[0]), index, node.id))
    return tuple(node_id for _, _, node_id in sorted(found))


def search_text(node: Node) -> str:
    """Return what words are looked for in: name, callee and more in lines, all in lower case."""
    callee, operator = (one.removeprefix("relax.") for one in (node.callee, node.operator))
    return "\n".join((node.name, callee, node.id, operator, node.type_label)).lower()


def _rank(text: str, word: str) -> int:
    names = text.split("\n")[:2]
    if word in names:
        return 0
    return 1 if any(name.startswith(word) for name in names) else 2
