"""Match the nodes of two functions that differ in casts and dtypes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from irviz.model.graph.graph import INPUT_KINDS, Graph, Node, NodeId, NodeKind
from irviz.model.matching.correspondence import Correspondence, MatchedBy, correspondence

_CAST = "relax.astype"
_CERTAIN = (MatchedBy.KNOWN, MatchedBy.STRUCTURE)
_OF_DTYPES = ("out_dtype", "dtype")
_DTYPE = re.compile(r", (?:b?float|u?int)\w+")


def correspondence_through_casts(
    graph: Graph, reference: Graph, found: Correspondence
) -> Correspondence:
    """Return a correspondence with more pairs, where nodes differ only in what is cast before.

    Pairs of different operations are dropped first: they may be an operation and a cast of it.
    """
    if not any(node.callee == _CAST for each in (graph, reference) for node in each.nodes):
        return found
    known = {
        one: other
        for one, other in found.items()
        if graph[one].kind in INPUT_KINDS
        or (found.steps[one] in _CERTAIN and graph[one].callee == reference[other].callee != _CAST)
    }
    sources = _without_casts(graph), _without_casts(reference)
    more = correspondence(*sources, known)
    steps = {
        one: found.steps.get(one, by) if one in known else by for one, by in more.steps.items()
    }
    pairs, taken = dict(more), set(more.values())
    for one, other in found.items():
        if one not in pairs and other not in taken:
            pairs[one], steps[one] = other, found.steps[one]
            taken.add(other)
    return Correspondence(
        {node.id: pairs[node.id] for node in graph.nodes if node.id in pairs}, steps
    )


def _without_casts(graph: Graph) -> Graph:
    sources: dict[NodeId, NodeId] = {}
    for node in graph.nodes:
        operands = graph.operands(node.id)
        if node.callee == _CAST and len(operands) == 1:
            sources[node.id] = _source(operands[0].source, sources)
    return replace(
        graph,
        nodes=tuple(_without_dtype(node) for node in graph.nodes if node.id not in sources),
        edges=tuple(
            edge._replace(source=_source(edge.source, sources))
            for edge in graph.edges
            if edge.target not in sources
        ),
        outputs=tuple(_source(output, sources) for output in graph.outputs),
    )


def _source(node_id: NodeId, sources: Mapping[NodeId, NodeId]) -> NodeId:
    return sources.get(node_id, node_id)


def _without_dtype(node: Node) -> Node:
    label = _DTYPE.sub("", node.type_label)
    attributes = tuple(item for item in node.attributes if item[0] not in _OF_DTYPES)
    if node.kind is not NodeKind.OPERATOR:
        return node._replace(type_text=label)
    structure = hash((node.kind.value, node.callee, attributes, node.literals))
    return node._replace(type_text=label, structure=structure)
