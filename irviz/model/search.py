"""Find nodes by name, operator, callee or shape."""

from __future__ import annotations

from irviz.model.graph import Graph, Node, NodeId


def search(graph: Graph, words: str) -> tuple[NodeId, ...]:
    """Return the nodes that have every word in their name, operator, callee or type.

    Capitals and small letters are one. Nodes whose name or callee is the very word come first,
    then those where one of the two begins with it; else the order is the text's.
    """
    wanted = [word.removeprefix("relax.") for word in words.lower().split()]
    if not wanted:
        return ()
    found = []
    for index, node in enumerate(graph.nodes):
        called = f"{node.callee.removeprefix('relax.')}\n{node.operator.removeprefix('relax.')}"
        texts = f"{node.id}\n{node.name}\n{called}\n{node.type_label}".lower()
        if all(word in texts for word in wanted):
            found.append((_rank(node, wanted[0]), index, node.id))
    return tuple(node_id for _, _, node_id in sorted(found))


def _rank(node: Node, word: str) -> int:
    names = (node.name.lower(), node.callee.lower(), node.callee.removeprefix("relax.").lower())
    if word in names:
        return 0
    return 1 if any(name.startswith(word) for name in names) else 2
