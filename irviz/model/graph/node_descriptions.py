"""Descriptions of what nodes compute, for comparison between graphs."""

from __future__ import annotations

from typing import NamedTuple

from irviz.model.graph.graph import INPUT_KINDS, Graph, NodeId, NodeKind, Resolution


class Description(NamedTuple):
    """A description of a node: nodes with equal descriptions compute the same."""

    kind: NodeKind
    callee: str
    resolution: Resolution | None
    literals: tuple[object, ...]
    operands: tuple[tuple[str, tuple[int, ...]], ...]


def descriptions(graph: Graph) -> dict[NodeId, Description]:
    """Return a description of each node; inputs are identified by name, or else by id.

    Types are ignored: nearly all of them change when symbolic sizes become known. A constant with
    the name of the parameter that it replaced is the same input.
    """
    names = {
        node.id: (node.name or node.id) if node.kind in INPUT_KINDS else node.id
        for node in graph.nodes
    }
    operands: dict[NodeId, list[tuple[str, tuple[int, ...]]]] = {
        node.id: [] for node in graph.nodes
    }
    for edge in graph.edges:
        operands[edge.target].append((names[edge.source], edge.position))
    return {
        node.id: Description(
            node.kind, node.callee, node.resolution, node.literals, tuple(operands[node.id])
        )
        for node in graph.nodes
    }
