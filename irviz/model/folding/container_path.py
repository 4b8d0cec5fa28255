"""The containers around a node, and the corresponding nodes in other copies of a repeat."""

from __future__ import annotations

from dataclasses import dataclass

from irviz.errors import NotFoundError
from irviz.model.folding.containers import Container, ContainerTree
from irviz.model.folding.expansion import Expansion
from irviz.model.graph.graph import NodeId


@dataclass(frozen=True, eq=False)
class ContainerPosition:
    """A container around a step: its first step there, and the copy that holds the step."""

    container: Container
    start: int
    copy: int


@dataclass(frozen=True)
class RepeatCopies:
    """Corresponding nodes of a repeat, one for each copy; `copy` is that of the given node."""

    container: str
    copy: int
    nodes: tuple[NodeId, ...]


def container_path(tree: ContainerTree, step: int) -> tuple[ContainerPosition, ...]:
    """Return the containers around a step, outermost first, without the root."""
    places: list[ContainerPosition] = []
    inside, offset = tree.root.inside, 0
    while around := [one for one in inside if one.start + offset <= step < one.stop + offset]:
        (container,) = around
        start = container.start + offset
        copy = (step - start) // container.held
        places.append(ContainerPosition(container, start, copy))
        inside, offset = container.inside, offset + copy * container.held
    return tuple(places)


def reveal(tree: ContainerTree, expansion: Expansion, node_id: NodeId) -> Expansion:
    """Expand all containers around a node, and show the copies that it is in."""
    step = _step(tree, node_id)
    for place in container_path(tree, step) if step is not None else ():
        expansion = expansion.open(place.container.id)
        if place.container.copies > 1:
            expansion = expansion.show_copy(place.container.id, place.copy)
    return expansion


def repeat_copies(tree: ContainerTree, node_id: NodeId) -> RepeatCopies | None:
    """Return the corresponding nodes in the copies of the innermost repeat around a node.

    Returns None for a node outside repeats, and for an input that all copies share.
    """
    bound = tree.bound
    step = _step(tree, node_id)
    if step is None:
        return None
    around = [place for place in container_path(tree, step) if place.container.copies > 1]
    if not around:
        return None
    place = around[-1]
    held, count = place.container.held, place.container.copies
    first = place.start + (step - place.start) % held
    steps = range(first, first + count * held, held)
    if node_id in bound.at:
        nodes = tuple(bound.nodes[one].id for one in steps)
    else:
        slot = next(i for i, one in enumerate(bound.operands[step]) if one.node == node_id)
        nodes = tuple(bound.operands[one][slot].node for one in steps)
        if any(one in bound.at for one in nodes):  # an input of the first copy only
            return None
    is_shared = len(set(nodes)) == 1
    return None if is_shared else RepeatCopies(place.container.id, place.copy, nodes)


def copy_around(tree: ContainerTree, node_id: NodeId, copy: int) -> frozenset[NodeId]:
    """Return the nodes in one copy of the innermost repeat around a node, without inputs.

    Raises NotFoundError for a node outside of repeats, or an unknown copy.
    """
    step = _step(tree, node_id)
    around = [] if step is None else container_path(tree, step)
    repeat = next((one for one in reversed(around) if one.container.copies > 1), None)
    if repeat is None or not 0 <= copy < repeat.container.copies:
        raise NotFoundError(f"{node_id!r} is in no repeat that has a copy {copy + 1}")
    start, held = repeat.start + copy * repeat.container.held, repeat.container.held
    return frozenset(node.id for node in tree.bound.nodes[start : start + held])


def _step(tree: ContainerTree, node_id: NodeId) -> int | None:
    """Return the step of a node; for an input, that of its first user."""
    bound = tree.bound
    if node_id in bound.at:
        return bound.at[node_id]
    uses = bound.graph.leaving.get(node_id, ())
    return bound.at[uses[0].target] if uses else None
