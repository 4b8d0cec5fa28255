"""Match the nodes of two functions that differ in casts and dtypes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TypeAlias

from irviz.model.graph.graph import INPUT_KINDS, Graph, Literal, Node, NodeId, NodeKind
from irviz.model.matching.node_matching import Correspondence, correspondence

_CAST = "relax.astype"
_OF_DTYPES = ("out_dtype", "dtype")
_Attributes: TypeAlias = "tuple[tuple[str, str], ...]"
_DTYPE = re.compile(r", (?:b?float|u?int)\w+")


def correspondence_through_casts(
    graph: Graph, reference: Graph, identical: Mapping[NodeId, NodeId]
) -> Correspondence:
    """Match two graphs that may differ in casts of operands.

    The graphs are matched without casts and dtypes first, then the casts. A variable in both may
    name an operation in one and a cast of it in the other; that is not a pair.
    """
    if not any(node.callee == _CAST for each in (graph, reference) for node in each.nodes):
        return correspondence(graph, reference, identical)
    known = {
        one: other
        for one, other in identical.items()
        if graph[one].kind in INPUT_KINDS or graph[one].callee == reference[other].callee != _CAST
    }
    found = correspondence(
        _without_casts(graph), _without_casts(reference), known, _type_without_dtype
    )
    more = correspondence(graph, reference, found)
    return Correspondence(more, {**more.steps, **found.steps})


def _without_casts(graph: Graph) -> Graph:
    """Return a graph whose nodes use the operands of casts in place of the casts."""
    sources: dict[NodeId, NodeId] = {}
    numbers: dict[NodeId, str] = {}
    for node in graph.nodes:
        if node.callee != _CAST:
            continue
        origins = [_source(edge.source, sources) for edge in graph.operands(node.id)]
        texts = [literal.text for literal in node.literals]
        texts += [numbers[one] for one in origins if one in numbers]
        if texts and node.id not in graph.outputs:
            numbers[node.id] = texts[0]
        elif len(origins) == 1 and not texts:
            sources[node.id] = origins[0]
    if not sources and not numbers:
        return graph.with_nodes([_without_dtype(node, ()) for node in graph.nodes])
    literals: dict[NodeId, list[Literal]] = {}
    for edge in graph.edges:
        if edge.source in numbers:
            number = Literal(edge.position, numbers[edge.source])
            literals.setdefault(edge.target, []).append(number)
    nodes = [node for node in graph.nodes if node.id not in sources and node.id not in numbers]
    return replace(
        graph,
        nodes=tuple(_without_dtype(node, literals.get(node.id, ())) for node in nodes),
        edges=tuple(
            edge._replace(source=sources[edge.source]) if edge.source in sources else edge
            for edge in graph.edges
            if edge.target not in sources and edge.source not in numbers
        ),
        outputs=tuple(_source(output, sources) for output in graph.outputs),
    )


def _source(node_id: NodeId, sources: Mapping[NodeId, NodeId]) -> NodeId:
    return sources.get(node_id, node_id)


def _type_without_dtype(node: Node) -> str:
    return _DTYPE.sub("", node.type_label)


@lru_cache(maxsize=1024)
def _attributes_without_dtype(attributes: _Attributes) -> _Attributes:
    return tuple(item for item in attributes if item[0] not in _OF_DTYPES)


def _without_dtype(node: Node, more: Sequence[Literal]) -> Node:
    """Return a node whose operation has no dtype, with literals in place of cast literals."""
    literals = tuple(sorted((*node.literals, *more))) if more else node.literals
    attributes = _attributes_without_dtype(node.attributes)
    if literals is node.literals and len(attributes) == len(node.attributes):
        return node
    if node.kind is not NodeKind.OPERATOR:
        return node._replace(literals=literals)
    structure = hash((node.kind.value, node.callee, node.operator, attributes, literals))
    return node._replace(structure=structure, literals=literals)
