"""A called function that is drawn in place of its call."""

from __future__ import annotations

from dataclasses import replace

from irviz.model.folding.visible_graph import VisibleGraph
from irviz.model.graph.graph import CALLEE, Edge, Graph, NodeId, NodeKind, Region, RegionKind
from irviz.model.graph.inlined_ids import inlined_id, inlined_parts


def inline_call(outer: Graph, call: NodeId, inner: VisibleGraph) -> Graph:
    """Insert a drawn function as a region before its call.

    The arguments lead to the function's parameters, and its results to the call, which is kept
    because it has the value's name. The ids of the function's nodes are those of `inlined_id`.
    """
    caller, frame = outer[call], len(outer.regions)
    region = Region(RegionKind.FUNCTION, inner.graph.function, caller.region, call, call)
    nodes, regions = inlined_parts(inner.graph, call, frame, frame + 1)
    edges = _entering(outer, call, inner)
    edges += [
        edge._replace(source=inlined_id(call, edge.source), target=inlined_id(call, edge.target))
        for edge in inner.graph.edges
    ]
    edges += [
        Edge(inlined_id(call, output), call, (index,))
        for index, output in enumerate(inner.graph.outputs)
    ]
    at = outer.index[call]
    kept = [edge for edge in outer.edges if edge.target != call]
    return replace(
        outer,
        nodes=(*outer.nodes[:at], *nodes, *outer.nodes[at:]),
        edges=(*kept, *edges),
        regions=(*outer.regions, region, *regions),
    )


def _entering(outer: Graph, call: NodeId, inner: VisibleGraph) -> list[Edge]:
    whole = inner.tree.bound.graph
    params = [n for n in whole.nodes if n.kind is NodeKind.PARAM and n.region is None]
    edges = []
    for edge in outer.entering.get(call, ()):
        position = edge.position
        if position == CALLEE or position[0] >= len(params):
            edges.append(edge)
            continue
        param = inner.where(params[position[0]].id)
        if param is not None:
            edges.append(edge._replace(target=inlined_id(call, param), position=position[1:]))
    return edges
