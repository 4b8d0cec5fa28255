"""What the reader opened and closed, and what is open because of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from irviz.model.tree import Container, Tree

AUTOMATIC = 150
"""As many nodes are shown before the reader has chosen anything."""
LIMIT = 300
"""Never more nodes than this are laid out, whatever the reader has opened."""
MOST_LEAVES = 8
"""More parameters or constants than this, all of them used alike, are shown as one."""


@dataclass(frozen=True)
class Choices:
    """What the reader opened, the latest last, and closed; and which copy of a repeat to show."""

    opened: tuple[str, ...] = ()
    closed: frozenset[str] = frozenset()
    copies: Mapping[str, int] = field(default_factory=dict)

    def open(self, container: str) -> Choices:
        """Open a container."""
        now = (*(one for one in self.opened if one != container), container)
        return replace(self, opened=now, closed=self.closed - {container})

    def close(self, container: str) -> Choices:
        """Close a container."""
        now = tuple(one for one in self.opened if one != container)
        return replace(self, opened=now, closed=self.closed | {container})

    def show_copy(self, container: str, copy: int) -> Choices:
        """Show another copy of a repeat, counted from 0."""
        return replace(self, copies={**self.copies, container: copy})


def opened(tree: Tree, choices: Choices, limit: int = LIMIT) -> set[str]:
    """Return what is open: what the reader opened, the latest first, then what else fits.

    Nothing is open whose surroundings are not, and together they show at most `limit` nodes.
    """
    room = _Room(tree)
    paths = dict(_paths(tree.root, ()))
    for container_id in reversed(choices.opened):
        for container in paths.get(container_id, ()):
            if container.id in choices.closed or not room.open(container, limit, 1):
                break
    level = [tree.root]
    while level:
        inner = [one for around in level for one in _held(around)]
        automatic = min(AUTOMATIC, limit)
        level = [one for one in inner if one.id not in choices.closed and room.open(one, automatic)]
    return room.is_open


class _Room:
    """Counts the nodes that what is open shows: its leaves one by one, or one for each step."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._counts = {most: 1 + self._weight(tree.root, most) for most in (1, MOST_LEAVES)}
        self.is_open = {tree.root.id}

    def open(self, container: Container, limit: int, most_leaves: int = MOST_LEAVES) -> bool:
        """Open a container if there is room for what it shows; return whether it is open.

        What the reader wants to see is open with its leaves as one for each step, if need be.
        """
        if container.id not in self.is_open:
            more = {most: self._weight(container, most) - 1 for most in self._counts}
            if self._counts[most_leaves] + more[most_leaves] > limit:
                return False
            self._counts = {most: count + more[most] for most, count in self._counts.items()}
            self.is_open.add(container.id)
        return True

    def _weight(self, container: Container, most: int) -> int:
        operands = self._tree.steps.operands
        leaves = [
            sum(operand.step < 0 for operand in operands[child])
            for child in container.children
            if isinstance(child, int)
        ]
        return len(container.children) + sum(min(count, most) for count in leaves)


def _paths(
    container: Container, around: tuple[Container, ...]
) -> Iterator[tuple[str, tuple[Container, ...]]]:
    """Yield every container's id with the containers around it and itself, without the root."""
    for one in _held(container):
        yield one.id, (*around, one)
        yield from _paths(one, (*around, one))


def _held(container: Container) -> list[Container]:
    return [child for child in container.children if isinstance(child, Container)]
