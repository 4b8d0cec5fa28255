"""Which nodes of one graph another does not have: enough to mark them, not yet a diff."""

from __future__ import annotations

from irviz.model.graph import LEAVES, Graph, NodeId


def changed(graph: Graph, reference: Graph) -> tuple[NodeId, ...]:
    """Return the nodes that the reference lacks or has with another kind, callee or input.

    Types are left out: when sizes become known, nearly all of them change. A constant with the
    name of the parameter that it replaced is the same input.
    """
    known = _descriptions(reference)
    return tuple(
        node_id
        for node_id, description in _descriptions(graph).items()
        if known.get(node_id) != description
    )


def _descriptions(graph: Graph) -> dict[NodeId, tuple[object, ...]]:
    names = {node.id: node.name if node.kind in LEAVES else node.id for node in graph.nodes}
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
