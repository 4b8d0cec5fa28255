"""Ids of nodes of called functions that are inlined: the call's id, a separator, the node's id."""

from __future__ import annotations

from irviz.model.graph.graph import NodeId

SEPARATOR = "\ue000/"
"""Only in ids: a name cannot contain its first character (`ir/node_ids.py`)."""


def inlined_id(call: str, node_id: str) -> NodeId:
    """Return the id of a node of a called function where the function replaces the call."""
    return NodeId(f"{call}{SEPARATOR}{node_id}")


def id_in_callee(call: str, node_id: str) -> str | None:
    """Return the id that a node has in the function that a call calls, None if it is not inside."""
    prefix = inlined_id(call, "")
    return node_id[len(prefix) :] if node_id.startswith(prefix) else None


def call_path(node_id: str) -> list[str]:
    """Return the calls that a node is inside of, the outermost first, and the node itself last."""
    parts = node_id.split(SEPARATOR)
    return [SEPARATOR.join(parts[:count]) for count in range(1, len(parts) + 1)]
