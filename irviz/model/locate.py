"""Where a node is among what can be opened, and the nodes in its place in other copies."""

from __future__ import annotations

from dataclasses import dataclass

from irviz.model.graph import NodeId
from irviz.model.opening import Choices
from irviz.model.tree import Container, Tree


@dataclass(frozen=True, eq=False)
class Place:
    """A container around a step: where it starts there, and which copy the step is in."""

    container: Container
    start: int
    copy: int


@dataclass(frozen=True)
class Copies:
    """The nodes in one place of a repeat: one for each copy, `copy` being the asked one's."""

    container: str
    copy: int
    nodes: tuple[NodeId, ...]


def path(tree: Tree, step: int) -> tuple[Place, ...]:
    """Return the containers around a step, the outermost first, without the root."""
    places: list[Place] = []
    container, offset = tree.root, 0
    while True:
        inner = next(
            (
                child
                for child in container.children
                if isinstance(child, Container)
                and child.start + offset <= step < child.stop + offset
            ),
            None,
        )
        if inner is None:
            return tuple(places)
        start = inner.start + offset
        copy = (step - start) // inner.held
        places.append(Place(inner, start, copy))
        container, offset = inner, offset + copy * inner.held


def reveal(tree: Tree, choices: Choices, node_id: NodeId) -> Choices:
    """Open all that hides a node, in the copies it is in."""
    step = _step(tree, node_id)
    for place in path(tree, step) if step is not None else ():
        choices = choices.open(place.container.id)
        if place.container.copies > 1:
            choices = choices.show_copy(place.container.id, place.copy)
    return choices


def copies(tree: Tree, node_id: NodeId) -> Copies | None:
    """Return what is in a node's place in each copy of the innermost repeat around it.

    None for a node outside of repeats, and for a parameter or constant that all copies share.
    """
    of = tree.steps
    step = _step(tree, node_id)
    around = [p for p in path(tree, step) if p.container.copies > 1] if step is not None else []
    if step is None or not around:
        return None
    place = around[-1]
    held, count = place.container.held, place.container.copies
    first = place.start + (step - place.start) % held
    steps = range(first, first + count * held, held)
    if node_id in of.at:
        nodes = tuple(of.nodes[one].id for one in steps)
    else:
        slot = next(i for i, one in enumerate(of.operands[step]) if one.node == node_id)
        nodes = tuple(of.operands[one][slot].node for one in steps)
        if any(
            one in of.at for one in nodes
        ):  # it enters the first copy: the next have a step there
            return None
    is_shared = len(set(nodes)) == 1
    return None if is_shared else Copies(place.container.id, place.copy, nodes)


def _step(tree: Tree, node_id: NodeId) -> int | None:
    """Return the step of a node, or the first that uses it."""
    of = tree.steps
    if node_id in of.at:
        return of.at[node_id]
    uses = of.graph.leaving.get(node_id, ())
    return of.at[uses[0].target] if uses else None
