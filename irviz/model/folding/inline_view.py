"""A called function that is drawn in place of its call."""

from __future__ import annotations

from dataclasses import replace

from irviz.model.folding.visible_graph import VisibleGraph
from irviz.model.graph.graph import CALLEE, Edge, Graph, NodeId, NodeKind, Region, RegionKind
from irviz.model.graph.inlined_ids import inlined_id


def inline_call(outer: Graph, call: NodeId, inner: VisibleGraph) -> Graph:
    """Insert a drawn function as a region before its call.

    The arguments enter the function's parameters, and its results enter the call, which remains
    because it has the value's name. The ids of the function's nodes are those of `inlined_id`.
    """
    caller = outer[call]
    frame = len(outer.regions)
    name = inner.graph.function
    regions = [Region(RegionKind.FUNCTION, name, caller.region, call, call)]
    for region in inner.graph.regions:
        parent = frame if region.parent is None else frame + 1 + region.parent
        owner = inlined_id(call, region.owner) if region.owner else None
        region_id = inlined_id(call, region.id) if region.id else ""
        regions.append(region._replace(parent=parent, owner=owner, id=region_id))
    nodes = [
        node._replace(
            id=inlined_id(call, node.id),
            region=frame if node.region is None else frame + 1 + node.region,
        )
        for node in inner.graph.nodes
    ]
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
        regions=(*outer.regions, *regions),
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
        edges.append(edge._replace(target=inlined_id(call, param), position=position[1:]))
    return edges
