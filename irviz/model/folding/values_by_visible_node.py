"""Aggregate values of a function's nodes by the drawn node that shows or contains them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from irviz.model.folding.visible_graph import VisibleGraph
from irviz.model.graph.graph import NodeId
from irviz.model.graph.inlined_ids import SEPARATOR, call_path, inlined_id


class DrawnFunction(Protocol):
    """A drawn function, and the functions that are inlined in it."""

    @property
    def visible(self) -> VisibleGraph:
        """The drawn graph of the function itself."""

    @property
    def inner(self) -> Mapping[NodeId, DrawnFunction]:
        """The inlined functions by their call."""


def visible_node(drawn: DrawnFunction, node_id: NodeId) -> NodeId | None:
    """Return the drawn node that shows or contains a node.

    Returns None for a node that is not drawn. That includes nodes in copies of a repeat that are
    not shown, because the drawn node is a different one. A call that is not inlined contains the
    nodes of the function that it calls.
    """
    call, is_inside, rest = node_id.partition(SEPARATOR)
    outer = _own_node(drawn.visible, NodeId(call))
    if not is_inside or outer is None:
        return outer
    inner = drawn.inner.get(outer) if outer == call else None
    if inner is None:
        return outer
    found = visible_node(inner, NodeId(rest))
    return None if found is None else inlined_id(call, found)


def by_visible_node(drawn: DrawnFunction, node_ids: Iterable[NodeId]) -> dict[NodeId, list[NodeId]]:
    """Group nodes by the drawn node that shows or contains them."""
    found: dict[NodeId, list[NodeId]] = {}
    for node_id in node_ids:
        where = visible_node(drawn, node_id)
        if where is not None:
            found.setdefault(where, []).append(node_id)
    return found


def sum_values(drawn: DrawnFunction, values: Mapping[NodeId, float]) -> dict[NodeId, float]:
    """Add up values for each drawn node; a call includes the function that it calls."""
    return {
        where: sum(values[one] for one in nodes)
        for where, nodes in by_visible_node(drawn, values).items()
    }


def reduce_values(
    drawn: DrawnFunction, values: Mapping[NodeId, float], reduce: Callable[[Sequence[float]], float]
) -> dict[NodeId, float]:
    """Reduce the values for each drawn node to one.

    The value of a call is its function's result, so nodes in the function count only if the call
    itself has no value.
    """
    return {
        where: reduce([values[one] for one in nodes])
        for where, nodes in outermost_by_visible_node(drawn, values).items()
    }


def outermost_by_visible_node(
    drawn: DrawnFunction, node_ids: Iterable[NodeId]
) -> dict[NodeId, list[NodeId]]:
    """Group nodes as `by_visible_node` does, without the nodes inside of calls of the group."""
    found = by_visible_node(drawn, node_ids)
    for where, nodes in found.items():
        there = set(nodes)
        found[where] = [one for one in nodes if there.isdisjoint(call_path(one)[:-1])]
    return found


def _own_node(shown: VisibleGraph, node_id: NodeId) -> NodeId | None:
    """Return the drawn node for a node of the function itself."""
    step = shown.tree.bound.at.get(node_id)
    return shown.places.get(node_id if step is None else step)
