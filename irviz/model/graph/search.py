"""Search for nodes by name, operator, callee or type."""

from __future__ import annotations

from irviz.model.graph.graph import Graph, Node, NodeId


def search_nodes(graph: Graph, words: str) -> tuple[NodeId, ...]:
    """Return the nodes with every word in their name, operator, callee or type, ignoring case.

    Nodes whose name or callee is the first word come first, then those whose name or callee starts
    with it; otherwise the order is that of the text.
    """
    terms = [word.removeprefix("relax.") for word in words.lower().split()]
    if not terms:
        return ()
    found = []
    for index, node in enumerate(graph.nodes):
        called = f"{node.callee.removeprefix('relax.')}\n{node.operator.removeprefix('relax.')}"
        texts = f"{node.id}\n{node.name}\n{called}\n{node.type_label}".lower()
        if all(word in texts for word in terms):
            found.append((_rank(node, terms[0]), index, node.id))
    return tuple(node_id for _, _, node_id in sorted(found))


def _rank(node: Node, word: str) -> int:
    names = (node.name.lower(), node.callee.lower(), node.callee.removeprefix("relax.").lower())
    if word in names:
        return 0
    return 1 if any(name.startswith(word) for name in names) else 2
