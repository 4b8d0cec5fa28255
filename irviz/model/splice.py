"""A called function, shown in place of its call."""

from __future__ import annotations

from dataclasses import replace

from irviz.model.graph import CALLEE, Edge, Graph, NodeId, NodeKind, Region, RegionKind
from irviz.model.shown import Shown


def splice(outer: Graph, call: NodeId, inner: Shown) -> Graph:
    """Put the picture of a function into a frame before its call.

    The arguments enter the function's parameters, and what it returns enters the call, which
    stays: it has the value's name. Ids of the function's nodes begin with the call's.
    """
    caller = outer[call]
    frame = len(outer.regions)
    name = inner.graph.function
    regions = [Region(RegionKind.FUNCTION, name, caller.region, call, call)]
    for region in inner.graph.regions:
        parent = frame if region.parent is None else frame + 1 + region.parent
        owner = within(call, region.owner) if region.owner else None
        region_id = within(call, region.id) if region.id else ""
        regions.append(region._replace(parent=parent, owner=owner, id=region_id))
    nodes = [
        node._replace(
            id=within(call, node.id),
            region=frame if node.region is None else frame + 1 + node.region,
        )
        for node in inner.graph.nodes
    ]
    edges = _entering(outer, call, inner)
    edges += [
        edge._replace(source=within(call, edge.source), target=within(call, edge.target))
        for edge in inner.graph.edges
    ]
    edges += [
        Edge(within(call, output), call, (index,))
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


_INSIDE = "\ue000/"
"""Stands in ids alone: a name cannot have the first of these (`ir/identity.py`)."""


def within(call: str, node_id: str) -> NodeId:
    """Return the id that a node of a called function has where the function is shown in place."""
    return NodeId(f"{call}{_INSIDE}{node_id}")


def inside(call: str, node_id: str) -> str | None:
    """Return the id that a node has in the called function, None for a node that is not in it."""
    prefix = within(call, "")
    return node_id[len(prefix) :] if node_id.startswith(prefix) else None


def paths(node_id: str) -> list[str]:
    """Return the calls that a node is inside of, the outermost first, and the node at last."""
    parts = node_id.split(_INSIDE)
    return [_INSIDE.join(parts[:count]) for count in range(1, len(parts) + 1)]


def _entering(outer: Graph, call: NodeId, inner: Shown) -> list[Edge]:
    whole = inner.tree.steps.graph
    params = [n for n in whole.nodes if n.kind is NodeKind.PARAM and n.region is None]
    edges = []
    for edge in outer.entering.get(call, ()):
        position = edge.position
        if position == CALLEE or position[0] >= len(params):
            edges.append(edge)
            continue
        param = inner.where(params[position[0]].id)
        edges.append(edge._replace(target=within(call, param), position=position[1:]))
    return edges
