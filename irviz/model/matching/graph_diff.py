"""The nodes of a graph that differ from the nodes with the same ids in a reference."""

from __future__ import annotations

from irviz.model.graph.graph import INPUT_KINDS, Graph, NodeId


def changed_nodes(graph: Graph, reference: Graph) -> tuple[NodeId, ...]:
    """Return the nodes that the reference lacks, or has with another kind, callee or operand.

    Types are ignored: nearly all of them change when symbolic sizes become known. A constant with
    the name of the parameter that it replaced is the same input.
    """
    known = _descriptions(reference)
    return tuple(
        node_id
        for node_id, description in _descriptions(graph).items()
        if known.get(node_id) != description
    )


def _descriptions(graph: Graph) -> dict[NodeId, tuple[object, ...]]:
    names = {node.id: node.name if node.kind in INPUT_KINDS else node.id for node in graph.nodes}
    operands: dict[NodeId, list[object]] = {node.id: [] for node in graph.nodes}
    for edge in graph.edges:
        operands[edge.target].append((names[edge.source] or edge.source, edge.position))
    return {
        node.id: (
            node.kind,
            node.callee,
            node.resolution,
            node.literals,
            tuple(operands[node.id]),
        )
        for node in graph.nodes
    }
