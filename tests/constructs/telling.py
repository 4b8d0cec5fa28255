"""A node in one line of text, so that a test reads like what it promises."""

from __future__ import annotations

from typing import Any

from irviz.model.graph import Graph, Node, NodeKind


class Told:
    """A graph whose nodes are told in words, and everything else that a graph has.

    A line has the kind of the node, `callee` and the operator that calls it where that is
    another one, where the name leads, `!` for an effect, and after the colon what it uses at
    which position; `()` is the place of what is called.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def __getattr__(self, name: str) -> Any:
        return getattr(self._graph, name)

    def __getitem__(self, node_id: str) -> Node:
        return self._graph[node_id]

    def told(self, node_id: str) -> str:
        node = self._graph[node_id]
        words = [node.kind.name.lower()]
        if node.callee:
            words.append(f"`{node.callee}`")
        if node.operator and node.operator != node.callee:
            words.append(f"by {node.operator}")
        if node.resolution:
            words.append(f"-> {node.resolution.value}")
        if not node.is_pure:
            words.append("!")
        entering = self._graph.entering.get(node.id, ())
        return " ".join(words) + ": " + ", ".join(f"{e.source} {_at(e.position)}" for e in entering)

    def all(self, *left_out: NodeKind) -> dict[str, str]:
        """Return the lines of all nodes but parameters, in their order."""
        nodes = (n for n in self._graph.nodes if n.kind not in (NodeKind.PARAM, *left_out))
        return {str(node.id): self.told(node.id) for node in nodes}

    def around(self, node_id: str) -> list[str]:
        """Return the regions a node stands in, the outermost first: their names or kinds."""
        found, at = [], self._graph[node_id].region
        while at is not None:
            region = self._graph.regions[at]
            found.append(region.name or region.kind.value)
            at = region.parent
        return found[::-1]


def _at(position: tuple[int, ...]) -> str:
    return ".".join(map(str, position)) or "()"
