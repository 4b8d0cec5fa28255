"""Which containers are expanded, and which ones are around a node.

The user chooses containers to expand; more are expanded while there is space.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from irviz.errors import NotFoundError
from irviz.limits import (
    AUTOMATIC_NODES,
    EXPANDED_NODES,
    FIRST_NODES,
    FIRST_RANKS,
    FRAME_RANKS,
    MAX_INPUTS,
    MOST_NODES,
)
from irviz.model.folding.group_tree import Container, ContainerTree, count_ranks
from irviz.model.graph.graph import NodeId, RegionKind


@dataclass(frozen=True)
class Expansion:
    """What the user expanded and collapsed.

    Attributes:
        opened: The expanded containers, the latest last.
        closed: The collapsed containers.
        copies: The copy shown of each repeat, counted from 0; the first by default.
        every: Whether all others are expanded or collapsed; None for as many as suit a screen.
    """

    opened: tuple[str, ...] = ()
    closed: frozenset[str] = frozenset()
    copies: Mapping[str, int] = field(default_factory=dict)
    every: bool | None = None

    def open(self, container: str) -> Expansion:
        """Expand a container."""
        now = (*(one for one in self.opened if one != container), container)
        return replace(self, opened=now, closed=self.closed - {container})

    def close(self, container: str) -> Expansion:
        """Collapse a container."""
        now = tuple(one for one in self.opened if one != container)
        return replace(self, opened=now, closed=self.closed | {container})

    def show_copy(self, container: str, copy: int) -> Expansion:
        """Show another copy of a repeat, counted from 0."""
        return replace(self, copies={**self.copies, container: copy})


def expanded_containers(
    tree: ContainerTree, expansion: Expansion, limit: int = MOST_NODES, minimum: int = 0
) -> set[str]:
    """Return the ids of the expanded containers, which show at most `limit` nodes in total.

    The user's choices come first, latest first, then outer containers before inner ones. The
    containers around an expanded one are expanded too, and so are an only child and a layer that is
    one call. Of a model's layers, as many levels are expanded as fit on one screen.

    While that shows fewer than `minimum` steps and collapsed containers (at most MIN_NODES), two
    steps between layers are expanded, or else the largest container; calls with their buffers only
    if there are too few inputs as well. They are within MOST_NODES: a container has at most
    MAX_CHILDREN. The space of what the user collapsed stays free: nothing else is expanded because
    of it.
    """
    budget = _NodeBudget(tree)
    paths = dict(container_paths(tree.root, ()))
    for container_id in reversed(expansion.opened):
        for container in paths.get(container_id, ()):
            if container.id in expansion.closed or not budget.open(container, limit, 1):
                break
    if expansion.every is not None:
        budget.open_levels(min(limit, EXPANDED_NODES), is_block=not expansion.every)
    else:
        opener = _LevelOpener(tree, budget, limit)
        opener.open()
        opener.fill(minimum)
    for *outer, container in paths.values():
        is_shown = not outer or outer[-1].id in budget.is_open
        if container.layer and container.held == container.copies == 1 and is_shown:
            budget.open(container, limit, 1)  # a call says more than a layer that is one
    return budget.is_open - expansion.closed


class _LevelOpener:
    """Expands a model's layers a whole level at a time while they fit on one screen.

    If a level does not fit, its repeats are expanded, longest first. The innermost layers stay
    collapsed. Without layers, containers are expanded while they show few enough nodes, and what
    one call became in a comparison is expanded everywhere or nowhere.
    """

    def __init__(self, tree: ContainerTree, budget: _NodeBudget, limit: int) -> None:
        self._tree, self._budget, self._limit = tree, budget, limit
        self._ranks = 1.0 + count_ranks(tree.bound, tree.root.children)  # with inputs or the result

    def open(self) -> None:
        automatic, most = (min(one, self._limit) for one in (AUTOMATIC_NODES, FIRST_NODES))
        if not self._tree.has_layers:
            level = [self._tree.root]
            while level:
                inner = [one for around in level for one in around.parts]
                fused = [one for one in inner if one.kind is RegionKind.FUSED]
                if not self._budget.open_all(fused, most):
                    inner = [one for one in inner if one.kind is not RegionKind.FUSED]
                level = [one for one in inner if self._budget.open(one, automatic)]
            return
        level, later = self._inside(self._tree.root)
        while level or later:
            more = {one.id: self._more_ranks(one) for one in level}
            added, opened = sum(more.values()), level
            if self._ranks + added <= FIRST_RANKS and self._budget.open_all(level, most):
                self._ranks += added
            else:
                opened = []
                for one in sorted(level, key=lambda one: one.start - one.stop):
                    fits = one.copies > 1 and self._ranks + more[one.id] <= FIRST_RANKS
                    if fits and self._budget.open(one, most):
                        self._ranks += more[one.id]
                        opened.append(one)
            level, later = later, []
            for one in opened:
                inner, repeats = self._inside(one)
                level += inner
                later += repeats

    def fill(self, minimum: int) -> None:
        """Expand more where fewer than `minimum` steps and collapsed containers are shown."""
        besides = _drawn_besides(self._tree)
        collapsed = self._tree.root.inside
        while collapsed:
            largest = max(collapsed, key=self._priority)
            is_call = largest.kind is RegionKind.CALL
            if self._budget.count_items() + (besides if is_call else 0) >= minimum:
                break
            collapsed.remove(largest)
            if self._budget.open(largest, self._limit, 1):
                collapsed += largest.inside
                self._ranks += self._more_ranks(largest)

    def _priority(self, container: Container) -> tuple[bool, bool, bool, int]:
        """Return a key that is largest for the container to expand first.

        That is the largest one, or two steps between layers. Calls with their buffers come last,
        after containers that would make a lowered model taller than the screen.
        """
        size = container.stop - container.start
        is_pair = container.kind is RegionKind.PART and size == 2
        fits = True
        if self._tree.is_lowered and self._tree.has_layers:
            fits = self._ranks + self._more_ranks(container) <= FIRST_RANKS
        return container.kind is not RegionKind.CALL, fits, is_pair, size

    def _more_ranks(self, container: Container) -> float:
        return count_ranks(self._tree.bound, container.children) - 1 + FRAME_RANKS

    def _inside(self, around: Container) -> tuple[list[Container], list[Container]]:
        """Return the containers to expand inside of one, and the repeats, which are a level deeper.

        An only child is expanded immediately.
        """
        inner = around.parts
        if len(around.children) == len(inner) == 1 and self._budget.open(inner[0], self._limit, 1):
            self._ranks += self._more_ranks(inner[0])
            return self._inside(inner[0])
        innermost = (RegionKind.LAYER, RegionKind.PART)
        inner = [one for one in inner if one.parts or not (one.layer or one.kind in innermost)]
        repeats = [one for one in inner if one.copies > 1]
        return [one for one in inner if one.copies == 1], repeats


class _NodeBudget:
    """Counts the nodes that expanded containers show.

    There are three counts: with up to `MAX_INPUTS` inputs per step, with one node for all inputs of
    a step (used if space is short), and without inputs.
    """

    def __init__(self, tree: ContainerTree) -> None:
        self._tree = tree
        self._counts = {most: 1 + self._weight(tree.root, most) for most in (0, 1, MAX_INPUTS)}
        self.is_open = {tree.root.id}

    def open(self, container: Container, limit: int, max_inputs: int = MAX_INPUTS) -> bool:
        """Expand a container if its nodes are within the limit; return whether it is expanded."""
        if container.id not in self.is_open:
            more = {most: self._weight(container, most) - 1 for most in self._counts}
            if self._counts[max_inputs] + more[max_inputs] > limit:
                return False
            self._counts = {most: count + more[most] for most, count in self._counts.items()}
            self.is_open.add(container.id)
        return True

    def open_all(self, containers: Sequence[Container], limit: int) -> bool:
        """Expand all of these if their nodes are within the limit; return whether they are."""
        before = self._counts, set(self.is_open)
        if all(self.open(one, limit) for one in containers):
            return True
        self._counts, self.is_open = before
        return False

    def open_levels(self, limit: int, *, is_block: bool) -> None:
        """Expand all containers but calls with their buffers, outer ones first, or only blocks."""
        level = self._tree.root.inside
        while level:
            opened = [
                one
                for one in level
                if one.kind is RegionKind.DATAFLOW_BLOCK
                or not (is_block or one.kind is RegionKind.CALL)
            ]
            opened = [one for one in opened if self.open(one, limit, 1)]
            level = [inner for one in opened for inner in one.inside]

    def count_items(self) -> int:
        """Return the number of steps and collapsed containers that are shown."""
        return self._counts[0] - 1

    def _weight(self, container: Container, most: int) -> int:
        operands = self._tree.bound.operands
        steps = [child for child in container.children if isinstance(child, int)]
        inputs = [sum(operand.step < 0 for operand in operands[step]) for step in steps]
        return len(container.children) + sum(min(count, most) for count in inputs)


def _drawn_besides(tree: ContainerTree) -> int:
    """Return how many inputs are drawn; negative if a step is drawn as another name of a value."""
    if not tree.graph.has_weights:
        return len(tree.graph.nodes) - len(tree.bound.nodes)
    steps = (tree.bound.at.get(one, -1) for one in tree.graph.outputs)
    return -tree.has_layers * sum(tree.bound.renamed(step) is not None for step in steps)


def container_paths(
    container: Container, around: tuple[Container, ...] = ()
) -> Iterator[tuple[str, tuple[Container, ...]]]:
    """Yield the id of every container, with those around it and itself, before what is in it."""
    for one in container.inside:
        yield one.id, (*around, one)
        yield from container_paths(one, (*around, one))


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
    """Expand all containers around a node, and show the copies that it is in.

    An element of a call's result is then a node of its own.
    """
    step = _step(tree, node_id)
    places = container_path(tree, step) if step is not None else ()
    expansion = _opened(expansion, ((place.container, place.copy) for place in places))
    at = tree.bound.at.get(node_id)
    is_part = at is not None and tree.bound.renamed(at) is not None
    return expansion.open(node_id) if is_part else expansion


def reveal_container(tree: ContainerTree, expansion: Expansion, container: str) -> Expansion | None:
    """Expand all containers around one, in their first copies; None if there is no such one."""
    path = dict(container_paths(tree.root)).get(container)
    return _opened(expansion, ((around, 0) for around in path[:-1])) if path else None


def _opened(expansion: Expansion, places: Iterable[tuple[Container, int]]) -> Expansion:
    """Expand containers, and show these copies of them."""
    for container, copy in places:
        expansion = expansion.open(container.id)
        if container.copies > 1:
            expansion = expansion.show_copy(container.id, copy)
    return expansion


def repeat_copies(tree: ContainerTree, node_id: NodeId) -> RepeatCopies | None:
    """Return the corresponding nodes in the copies of the innermost repeat around a node.

    Returns None for a node outside repeats, and for an input that all copies share.
    """
    bound, step = tree.bound, _step(tree, node_id)
    place = _innermost_repeat(tree, step)
    if step is None or place is None:
        return None
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
    repeat = _innermost_repeat(tree, _step(tree, node_id))
    if repeat is None or not 0 <= copy < repeat.container.copies:
        raise NotFoundError(f"{node_id!r} is in no repeat that has a copy {copy + 1}")
    start, held = repeat.start + copy * repeat.container.held, repeat.container.held
    return frozenset(node.id for node in tree.bound.nodes[start : start + held])


def _innermost_repeat(tree: ContainerTree, step: int | None) -> ContainerPosition | None:
    around = () if step is None else container_path(tree, step)
    return next((one for one in reversed(around) if one.container.copies > 1), None)


def _step(tree: ContainerTree, node_id: NodeId) -> int | None:
    """Return the step of a node; for an input, that of its first user."""
    bound = tree.bound
    if node_id in bound.at:
        return bound.at[node_id]
    uses = bound.graph.leaving.get(node_id, ())
    return bound.at[uses[0].target] if uses else None
