"""The nodes of a graph that differ from the nodes with the same ids in a reference."""

from __future__ import annotations

from typing import NamedTuple

from irviz.model.graph.graph import INPUT_KINDS, Graph, NodeId, NodeKind, Resolution


class Description(NamedTuple):
    """What a node computes: two nodes with equal descriptions compute the same."""

    kind: NodeKind
    callee: str
    resolution: Resolution | None
    literals: tuple[object, ...]
    operands: tuple[tuple[str, tuple[int, ...]], ...]


def changed_nodes(graph: Graph, reference: Graph) -> tuple[NodeId, ...]:
    """Return the nodes that the reference lacks, or has with another kind, callee or operand.

    Types are ignored: nearly all of them change when symbolic sizes become known. A constant with
    the name of the parameter that it replaced is the same input.
    """
    known = descriptions(reference)
    return tuple(
        node_id
        for node_id, description in descriptions(graph).items()
        if known.get(node_id) != description
    )


def descriptions(graph: Graph) -> dict[NodeId, Description]:
    """Return what each node computes; inputs are identified by name, or by id without one."""
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
