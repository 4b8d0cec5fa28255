"""Ids of nodes of called functions that are inlined: the call's id, a separator, the node's id."""

from __future__ import annotations

from irviz.model.graph.graph import Graph, Node, NodeId, Region

SEPARATOR = "\ue000/"
"""Only in ids: a name cannot contain its first character (`ir/node_ids.py`)."""


def inlined_id(call: str, node_id: str) -> NodeId:
    """Return the id of a node of a called function where it replaces the call, "" for no call."""
    return NodeId(f"{call}{SEPARATOR}{node_id}" if call else node_id)


def inlined_parts(
    graph: Graph, call: str, region: int | None, first: int
) -> tuple[list[Node], list[Region]]:
    """Return the nodes and regions of a called function as those of the caller.

    Args:
        call: The call that the function replaces.
        region: The index of the caller's region around them.
        first: The index of the first of the regions in the caller.
    """

    def index(inner: int | None) -> int | None:
        return region if inner is None else first + inner

    nodes = [
        node._replace(id=inlined_id(call, node.id), region=index(node.region))
        for node in graph.nodes
    ]
    regions = [
        inner._replace(
            parent=index(inner.parent),
            owner=inlined_id(call, inner.owner) if inner.owner else None,
            id=inlined_id(call, inner.id) if inner.id else "",
        )
        for inner in graph.regions
    ]
    return nodes, regions


def id_in_callee(call: str, node_id: str) -> str | None:
    """Return the id that a node has in the function that a call calls, None if it is not inside."""
    prefix = inlined_id(call, "")
    return node_id[len(prefix) :] if node_id.startswith(prefix) else None


def call_path(node_id: str) -> list[str]:
    """Return the calls that a node is inside of, the outermost first, and the node itself last."""
    parts = node_id.split(SEPARATOR)
    return [SEPARATOR.join(parts[:count]) for count in range(1, len(parts) + 1)]
