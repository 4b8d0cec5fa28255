"""Nodes in one line of text each, for tests to compare."""

from __future__ import annotations

from typing import Any

from irviz.model.graph.graph import Graph, Node, NodeKind


class DescribedGraph:
    """A graph, and its nodes as lines of text.

    A line has the kind of the node, the callee, its operator if that is different, the
    resolution, `!` for an effect, and after the colon the sources of its edges, each with its
    position; `()` is the position of the callee.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def __getattr__(self, name: str) -> Any:
        return getattr(self._graph, name)

    def __getitem__(self, node_id: str) -> Node:
        return self._graph[node_id]

    def describe(self, node_id: str) -> str:
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
        return {str(node.id): self.describe(node.id) for node in nodes}

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
