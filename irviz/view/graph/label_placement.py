"""Place each label of an overlay next to its node where it covers as little as possible.

A greedy form of the candidate-position model of map labelling (Christensen, Marks and Shieber,
1995): each label in turn takes the best free one of a few positions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from irviz.model.graph.graph import NodeId
from irviz.view.geometry import Point, Rect
from irviz.view.svg_primitives import add, add_text, text_rect, text_width
from irviz.view.theme import Theme

_Points = NDArray[np.float64]

_SIZE = 10.0
_ABOVE, _BELOW = 0.75 * _SIZE, 0.22 * _SIZE
_GAP, _SPACE = 4.0, 3.9
"""The distance of a label from its node, and from everything else at its sides."""
_ARROW_LENGTH = 8.5
_CELL = 48.0
_RANK_COST = 0.6
"""The cost of the next candidate position, in covered points of lines."""


class OccupiedArea:
    """The occupied part of a picture.

    A grid of cells makes lookups near a position fast.
    """

    def __init__(self, picture: Rect, obstacles: Iterable[Rect], lines: Iterable[Point]) -> None:
        """Take the rectangles that labels must not overlap, and points that they should avoid."""
        self._picture = picture
        self._obstacles: dict[tuple[int, int], list[Rect]] = {}
        self._points: dict[tuple[int, int], _Points] = {}
        for rect in obstacles:
            self.add(rect)
        points = np.fromiter(lines, dtype=(np.float64, 2))
        cells = (points // _CELL).astype(np.int64)
        order = np.lexsort(cells.T)
        points, cells = points[order], cells[order]
        ends = np.flatnonzero((cells[1:] != cells[:-1]).any(axis=1)) + 1
        for start, end in pairwise([0, *ends.tolist(), len(points)]):
            if end > start:
                column, row = cells[start].tolist()
                self._points[column, row] = points[start:end]

    def add(self, rect: Rect) -> None:
        """Add an obstacle."""
        for cell in _cells(rect):
            self._obstacles.setdefault(cell, []).append(rect)

    def is_free(self, rect: Rect) -> bool:
        """Return whether a rectangle is inside the picture and overlaps no obstacle."""
        if not self._picture.contains(rect):
            return False
        return not any(
            rect.overlaps(one) for cell in _cells(rect) for one in self._obstacles.get(cell, ())
        )

    def covered_points(self, rect: Rect) -> int:
        """Count the points of lines in a rectangle."""
        found = (self._points[cell] for cell in _cells(rect) if cell in self._points)
        low, high = (rect.left, rect.top), (rect.right, rect.bottom)
        return sum(int(((low <= points) & (points <= high)).all(axis=1).sum()) for points in found)


def place_labels(
    labels: Mapping[NodeId, tuple[str, Rect]], inward: float, area: OccupiedArea
) -> dict[NodeId, Point]:
    """Return the position of each label that has a free one, and add it to the area.

    Of the free positions the one that covers the fewest lines is chosen; earlier ones are
    preferred.

    Args:
        labels: The text of each label, and the rectangle of its node.
        inward: 1 where edges enter nodes from below, -1 where they enter from above.
    """
    placed: dict[NodeId, Point] = {}
    for node_id, (line, node_rect) in labels.items():
        best: tuple[float, Point, Rect] | None = None
        for rank, position in enumerate(_positions(line, node_rect, inward)):
            rect = text_rect(line, position, _SIZE)
            rect = rect._replace(left=rect.left - _SPACE, right=rect.right + _SPACE)
            if area.is_free(rect):
                cost = area.covered_points(rect) + _RANK_COST * rank
                if best is None or cost < best[0]:
                    best = (cost, position, rect)
        if best:
            placed[node_id] = best[1]
            area.add(best[2])
    return placed


def draw_label(
    parent: ElementTree.Element, node_id: NodeId, line: str, position: Point, theme: Theme
) -> ElementTree.Element:
    """Write the label of a node with a halo in the background's colour; return the group."""
    group = add(parent, "g", "word", data_node=node_id)
    halo = {"stroke": theme.background, "stroke_width": "3", "stroke_linejoin": "round"}
    style = {"font_weight": "600", "paint_order": "stroke", **halo}
    add_text(group, line, position, _SIZE, theme.text, **style)
    return group


def _positions(line: str, rect: Rect, inward: float) -> Iterator[Point]:
    """Yield the candidate positions around a node, the preferred ones first.

    Beside the node; below the corners where edges enter; beside the corners where edges leave; and
    beyond the arrows of the edges that enter.
    """
    half = text_width(line, _SIZE) / 2
    middle = (rect.top + rect.bottom) / 2 + (_ABOVE - _BELOW) / 2
    right, left = rect.right + _GAP + half, rect.left - _GAP - half
    centre = (rect.left + rect.right) / 2
    inlet, outlet = (rect.bottom, rect.top) if inward > 0 else (rect.top, rect.bottom)
    yield from ((right, middle), (left, middle))
    corner = _baseline(inlet, 3, inward)
    yield from ((rect.right - half, corner), (rect.left + half, corner))
    past = _baseline(outlet, 3, -inward)
    yield from ((right, past), (left, past))
    for row in range(2):
        beyond = _baseline(inlet, _ARROW_LENGTH + row * (_ABOVE + _BELOW + 2), inward)
        yield from ((x, beyond) for x in (centre, rect.right - half, rect.left + half))


def _baseline(border: float, distance: float, direction: float) -> float:
    """Return the baseline of a line of text at a distance below or above a border."""
    return border + direction * distance + (_ABOVE if direction > 0 else -_BELOW)


def _cells(rect: Rect) -> list[tuple[int, int]]:
    return [
        (column, row)
        for column in range(int(rect.left // _CELL), int(rect.right // _CELL) + 1)
        for row in range(int(rect.top // _CELL), int(rect.bottom // _CELL) + 1)
    ]
