"""The words of an overlay: each beside its node, where nothing stands that is to be read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from irviz.model.graph import NodeId
from irviz.view import label
from irviz.view.box import Box, text_box
from irviz.view.element import text
from irviz.view.layout import Point
from irviz.view.style import Theme

_Points = NDArray[np.float64]

_SIZE = 10.0
_ABOVE, _BELOW = 0.75 * _SIZE, 0.22 * _SIZE
_GAP, _SPACE = 4.0, 3.9
"""What is left free between words and their box; between them and all else."""
_ARROWS = 8.5
"""How far the arrows that enter a node reach out of it."""
_CELL = 48.0
_AWAY = 0.6
"""How many points of lines are rather covered than the next place is taken."""


class Ground:
    """What is on the paper already: `taken` are boxes, `crossed` points that words may cover.

    It is divided into cells, so that what is near a place is found without going through all.
    """

    def __init__(self, paper: Box, taken: Iterable[Box], crossed: Iterable[Point]) -> None:
        self._paper = paper
        self._taken: dict[tuple[int, int], list[Box]] = {}
        self._crossed: dict[tuple[int, int], _Points] = {}
        for box in taken:
            self.take(box)
        points = np.fromiter(crossed, dtype=(np.float64, 2))
        cells = (points // _CELL).astype(np.int64)
        order = np.lexsort(cells.T)
        points, cells = points[order], cells[order]
        ends = np.flatnonzero((cells[1:] != cells[:-1]).any(axis=1)) + 1
        for start, end in pairwise([0, *ends.tolist(), len(points)]):
            if end > start:
                column, row = cells[start].tolist()
                self._crossed[column, row] = points[start:end]

    def take(self, box: Box) -> None:
        """Let something stand there."""
        for cell in _cells(box):
            self._taken.setdefault(cell, []).append(box)

    def is_free(self, box: Box) -> bool:
        """Tell whether nothing stands there, and it is on the paper."""
        if not self._paper.holds(box):
            return False
        return not any(box.meets(one) for cell in _cells(box) for one in self._taken.get(cell, ()))

    def crossings(self, box: Box) -> int:
        """Count the points that would be covered there."""
        found = (self._crossed[cell] for cell in _cells(box) if cell in self._crossed)
        low, high = (box.left, box.top), (box.right, box.bottom)
        return sum(int(((low <= points) & (points <= high)).all(axis=1).sum()) for points in found)


def placed(
    words: Mapping[NodeId, tuple[str, Box]], inward: float, ground: Ground
) -> dict[NodeId, Point]:
    """Return where the words beside these boxes stand; those without a free place have none.

    A place is free of boxes; of several it is the one that covers the fewest lines, the nearer
    ones first. `inward` is 1 where edges enter from below, -1 from above. What is placed is
    taken from then on.
    """
    found: dict[NodeId, Point] = {}
    for node_id, (line, box) in words.items():
        best: tuple[float, Point, Box] | None = None
        for rank, place in enumerate(_places(line, box, inward)):
            room = _room(line, place)
            if ground.is_free(room):
                cost = ground.crossings(room) + _AWAY * rank
                if best is None or cost < best[0]:
                    best = (cost, place, room)
        if best:
            found[node_id] = best[1]
            ground.take(best[2])
    return found


def draw_word(
    parent: ElementTree.Element, node_id: NodeId, line: str, place: Point, theme: Theme
) -> ElementTree.Element:
    """Write the words of a node, with paper around the letters; return the group."""
    attributes = {"class": "word", "data-node": label.printable(node_id)}
    group = ElementTree.SubElement(parent, "g", attributes)
    halo = {"stroke": theme.background, "stroke-width": "3", "stroke-linejoin": "round"}
    element = text(group, label.printable(line), place, _SIZE, theme.text)
    element.attrib.update({"font-weight": "600", "paint-order": "stroke", **halo})
    return group


def _places(line: str, box: Box, inward: float) -> Iterator[Point]:
    """Yield where words may stand beside a box, the best first.

    At its sides; where edges enter, between their arrows and the corners, or beyond the arrows;
    and where values leave, past the corners.
    """
    half = label.width(line, _SIZE) / 2
    middle = (box.top + box.bottom) / 2 + (_ABOVE - _BELOW) / 2
    right, left = box.right + _GAP + half, box.left - _GAP - half
    centre = (box.left + box.right) / 2
    inlet, outlet = (box.bottom, box.top) if inward > 0 else (box.top, box.bottom)
    yield from ((right, middle), (left, middle))
    corner = _baseline(inlet, 3, inward)
    yield from ((box.right - half, corner), (box.left + half, corner))
    past = _baseline(outlet, 3, -inward)
    yield from ((right, past), (left, past))
    for row in range(2):
        beyond = _baseline(inlet, _ARROWS + row * (_ABOVE + _BELOW + 2), inward)
        yield from ((x, beyond) for x in (centre, box.right - half, box.left + half))


def _room(line: str, place: Point) -> Box:
    box = text_box(line, place, _SIZE)
    return box._replace(left=box.left - _SPACE, right=box.right + _SPACE)


def _baseline(border: float, away: float, sense: float) -> float:
    """Return where a line of text stands that is so far from a border, below it or above."""
    return border + sense * away + (_ABOVE if sense > 0 else -_BELOW)


def _cells(box: Box) -> list[tuple[int, int]]:
    return [
        (column, row)
        for column in range(int(box.left // _CELL), int(box.right // _CELL) + 1)
        for row in range(int(box.top // _CELL), int(box.bottom // _CELL) + 1)
    ]
