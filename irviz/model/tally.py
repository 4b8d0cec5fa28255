"""What is known of a function's nodes, gathered by the node of the picture that shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from irviz.model.graph import NodeId
from irviz.model.shown import Shown
from irviz.model.splice import paths, within

_INSIDE = within("", "")
"""What stands between a call and a node of the function that it calls."""


class Drawn(Protocol):
    """A function as it is drawn, and those in it whose calls are open."""

    @property
    def shown(self) -> Shown:
        """What is drawn of the function itself."""

    @property
    def inner(self) -> Mapping[NodeId, Drawn]:
        """The functions that are shown in place of their calls, by the call."""


def place(drawn: Drawn, node_id: NodeId) -> NodeId | None:
    """Return the node of the picture that shows this very node, or what holds it.

    None for one that is not in the picture, and for one in a copy of a repeat that is not drawn:
    what is drawn in its place is another node. What a closed call does is held by the call.
    """
    call, is_inside, rest = node_id.partition(_INSIDE)
    outer = _own_place(drawn.shown, NodeId(call))
    if not is_inside or outer is None:
        return outer
    inner = drawn.inner.get(outer) if outer == call else None
    if inner is None:
        return outer
    found = place(inner, NodeId(rest))
    return None if found is None else within(call, found)


def held(drawn: Drawn, node_ids: Iterable[NodeId]) -> dict[NodeId, list[NodeId]]:
    """Return which of these nodes each node of the picture shows or holds, in their order."""
    found: dict[NodeId, list[NodeId]] = {}
    for node_id in node_ids:
        where = place(drawn, node_id)
        if where is not None:
            found.setdefault(where, []).append(node_id)
    return found


def total(drawn: Drawn, values: Mapping[NodeId, float]) -> dict[NodeId, float]:
    """Add up what each node has for itself: a closed call has what is done in it, too."""
    return {
        where: sum(values[one] for one in nodes) for where, nodes in held(drawn, values).items()
    }


def gathered(
    drawn: Drawn, values: Mapping[NodeId, float], gather: Callable[[Sequence[float]], float]
) -> dict[NodeId, float]:
    """Return the value of each node, for what holds several what `gather` makes of them.

    A call's value is what its function returns: what is in a closed one counts only where the
    call has none.
    """
    return {
        where: gather([values[one] for one in nodes])
        for where, nodes in outermost(drawn, values).items()
    }


def outermost(drawn: Drawn, node_ids: Iterable[NodeId]) -> dict[NodeId, list[NodeId]]:
    """Return what each node of the picture shows or holds, closed calls without what is in them."""
    found = held(drawn, node_ids)
    return {where: _without_insides(nodes) for where, nodes in found.items()}


def _without_insides(nodes: Sequence[NodeId]) -> list[NodeId]:
    """Leave out what is in a call that is there itself."""
    there = set(nodes)
    return [one for one in nodes if not any(call in there for call in paths(one)[:-1])]


def _own_place(shown: Shown, node_id: NodeId) -> NodeId | None:
    """Return the place of a node of the function itself."""
    step = shown.tree.steps.at.get(node_id)
    return shown.places.get(node_id if step is None else step)
