"""Straight ways for edges: in lanes beside boxes, or aside in one row, apart from other ways."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, product
from operator import itemgetter
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from irviz.view.graph.layout import ClusterFrame, Route
from irviz.view.svg_primitives import Point, Rect

Way = TypeVar("Way")
Points = NDArray[np.float64]
"""An array with a row of two for each point, or a row of four for each rectangle."""


NODE_GAP, ROW_GAP = 18.0, 36.0
ARROW = 7.0
BEND = 4.0
"""How far before a corner a route turns."""
BESIDE = NODE_GAP / 2
"""The distance of a backward edge from the boxes beside it: the middle of a gap between two."""


class Room(NamedTuple):
    """The room that a straight way needs, and where it is looked for.

    Attributes:
        apart: The distance in px between routes that lead aside one below the other.
        starts: How much further from its source a route may lead aside.
        rows: How much nearer to its target it may, or further from it.
        steps: Into how many steps the way between its ends is divided.
        from_frames: The distance of a part that leads aside from the sides of frames.
        is_last: Whether nothing is tried after it: frames around neither of its ends may be
            crossed, and any number of edges.
    """

    apart: float
    starts: Sequence[float]
    rows: Sequence[float]
    steps: int
    from_frames: float
    is_last: bool = False


class Obstacles(NamedTuple):
    """What a straight way may not meet: boxes and frames, and parallel parts of other routes.

    Attributes:
        across: Those of ways that lead aside.
        upright: Those of ways along the flow.
    """

    across: Points
    upright: Points

    def leave_free(self, one: Point, other: Point, clear: float = 0.0) -> bool:
        """Return whether an upright line between two points meets none of them."""
        way = _way(one, other, clear)
        left, top, right, bottom = self.upright.T
        met = (left < way.right) & (way.left < right) & (top < way.bottom) & (way.top < bottom)
        return not met.any()

    def reached(self, start: Point, rows: Sequence[float]) -> list[float]:
        """Return the rows that upright lines from a point reach without meeting any of them."""
        x, y = start
        left, top, right, bottom = self.upright.T
        is_there = (left < x) & (x < right)
        ends = np.array(rows)[:, None]
        met = (top[is_there] < np.maximum(ends, y)) & (np.minimum(ends, y) < bottom[is_there])
        return [float(one) for one in ends[~met.any(1), 0]]

    def free_rows(self, rows: Sequence[float], start: float, end: float) -> list[float]:
        """Return the rows in which a line from one x to another meets none of them."""
        if start == end or not len(rows):
            return [*rows]
        left, top, right, bottom = self.across.T
        is_there = (left < max(start, end)) & (min(start, end) < right)
        high, low = top[is_there] - _HALF, bottom[is_there] + _HALF
        y = np.array(rows)
        met = (high < y[:, None]) & (y[:, None] < low)
        return [float(one) for one in y[~met.any(1)]]


class DrawnLines:
    """The lines of all routes, with the node that each is from; they cross one another."""

    def __init__(self, routes: Iterable[tuple[str, Route]]) -> None:
        sources, known = zip(*routes, strict=True)
        self._sources = np.array(sources)
        # with their arrows: Graphviz leads some across those of others
        self.lines = [np.vstack([sampled_route(one), one.tip]) for one in known]
        self._segments = np.vstack([_segments(line) for line in self.lines])
        self._of = np.repeat(np.arange(len(known)), [len(line) - 1 for line in self.lines])

    def crossings(self, way: Points, source: str) -> int:
        """Return how often a line from a node crosses those from others."""
        is_other = self._sources[self._of] != source
        return _segments_crossed(way, self._segments[is_other])

    def move(self, at: int, line: Points) -> None:
        """Give a route another line."""
        self.lines[at], is_other = line, self._of != at
        self._segments = np.vstack([self._segments[is_other], _segments(line)])
        self._of = np.append(self._of[is_other], [at] * (len(line) - 1))


class TakenWays:
    """The parts of straight routes, with the node that each is from."""

    def __init__(self, known: Iterable[tuple[str, Route]]) -> None:
        self._across: list[tuple[str, Rect]] = []
        self._upright: list[tuple[str, Rect]] = []
        for source, route in known:
            self.add(source, corners_of(route)[1:-1])

    def add(self, source: str, corners: Sequence[Point]) -> None:
        """Add the parts between the corners of a route."""
        for way in (_way(*pair, BEND) for pair in pairwise(corners)):
            (self._across if _is_across(way) else self._upright).append((source, way))

    def obstacles(self, boxes: Points, source: str, room: Room) -> Obstacles:
        """Return what another route from a node may not meet."""
        across, upright = (
            np.array([way for other, way in ways if other != source]).reshape(-1, 4)
            for ways in (self._across, self._upright)
        )
        across += np.array([0, 1, 0, -1]) * (2 * _HALF - room.apart)
        return Obstacles(np.vstack([boxes, across]), np.vstack([boxes, upright]))


class WaySearch(NamedTuple):
    """The search for straight ways of one edge; yielded are their corners, the best first.

    Attributes:
        start: Where the edge begins.
        end: Where its arrow begins, further along the flow.
        turned: Where other edges from its source lead aside; this one does, too, if it can.
    """

    start: Point
    end: Point
    flow: float
    frames: Sequence[ClusterFrame]
    turned: Sequence[float]
    room: Room
    obstacles: Obstacles

    @property
    def _outside(self) -> Point:
        """The point outside of the source, but for rounding."""
        return (self.start[0], self.start[1] + self.flow)

    def ways(self, known: Route, line: Points, boxes: Sequence[Rect]) -> Iterator[list[Point]]:
        """Yield ways in place of a known route with this line, none if it leads back."""
        if (self.end[1] - self.start[1]) * self.flow <= 0:
            return
        if len(known.points) >= _LONG:
            yield from self._in_lanes(boxes, _median_x(line))
        elif self.start[0] != self.end[0]:
            yield from self._aside()

    def _in_lanes(self, boxes: Sequence[Rect], middle: float) -> Iterator[list[Point]]:
        """Yield ways past boxes, none along a frame; `middle` is where most of it would be."""
        start, end, flow, room, is_free = *self[:3], self.room, self.obstacles.leave_free
        above, below = start[1] + flow * _TURN_TO_LANE, end[1] - flow * _TURN_FROM_LANE
        rows = min(above, below), max(above, below)
        outlines, ends = [one.rect for one in self.frames], (start[0], end[0])
        lanes = _free_lanes(boxes, outlines, rows, middle, ends)
        shared = (y for y in self.turned if 0 <= (y - above) * flow <= max(room.starts))
        firsts = [*shared, *(above + flow * gap for gap in room.starts)]
        firsts = self.obstacles.reached(self._outside, firsts)
        lasts = self.obstacles.reached(end, [below - flow * gap for gap in room.rows])
        ways = [
            (first, x, last)
            for x in lanes
            for first in self.obstacles.free_rows(firsts, start[0], x)[:1]
            for last in self.obstacles.free_rows(lasts, x, end[0])[:1]
        ]
        for clear, (first, x, last) in product(_CLEAR, ways):
            if is_free((x, first), (x, last), clear):
                yield [(start[0], first), (x, first), (x, last), (end[0], last)]

    def _aside(self) -> Iterator[list[Point]]:
        """Yield ways that lead aside once."""
        start, end, obstacles = self.start, self.end, self.obstacles
        left, right = sorted((start[0], end[0]))
        across = [one for one in self.frames if one.rect.left < right and one.rect.right > left]
        lines = [y for one in across for y in one.rect[1::2]]
        titles = [title_rect(one) for one in across]
        top, bottom = sorted((start[1], end[1]))
        rows = np.linspace(top, bottom, self.room.steps + 1)[1:-1].tolist()
        rows.sort(key=lambda y: abs(y - (top + bottom) / 2))
        rows = [*(one for one in self.turned if top < one < bottom), *rows]
        rows = obstacles.reached(self._outside, obstacles.reached(end, rows))
        for y in obstacles.free_rows(rows, left, right):
            corners = (start[0], y), (end[0], y)
            is_far = all(abs(y - line) > self.room.from_frames for line in lines)
            if is_far and not any(map(_way(*corners, 0).overlaps, titles)):
                yield [*corners]


def _median_x(sampled: Points) -> float:
    """Return the median of a route's x, weighted by the height of each part."""
    x = sampled[1:, 0]
    order = np.argsort(x)
    heights = np.cumsum(abs(np.diff(sampled[:, 1]))[order])
    return float(x[order][np.searchsorted(heights, heights[-1] / 2)])


def _free_lanes(
    boxes: Sequence[Rect],
    frames: Sequence[Rect],
    rows: tuple[float, float],
    middle: float,
    ends: tuple[float, float],
) -> list[float]:
    """Return where a vertical line between two rows meets no box and is not along a frame.

    At the ends of the route first, then as near as possible to its middle; those that are hard to
    tell from the side of a frame come later, and last those outside of a frame around both ends.
    """
    top, bottom = rows
    sides, lines = (
        np.array([x for one in rects if one.top < bottom and one.bottom > top for x in one[::2]])
        for rects in (boxes, frames)
    )
    beside = np.add.outer([*sides, *lines], _GAPS).ravel()
    near = sorted({middle, *beside}, key=lambda x: (abs(x - middle), x))
    every = np.array([*ends, *near])[:, None]
    room = abs(every - lines).min(1, initial=math.inf)
    is_free = room >= BESIDE / 2
    is_free &= ~((sides[::2] - BEND < every) & (every < sides[1::2] + BEND)).any(1)
    way = Rect(min(ends), top, max(ends), bottom)
    left, right = np.array([one[::2] for one in frames if one.contains(way)]).reshape(-1, 2).T
    is_outside = ((every < left) | (right < every)).any(1)
    best = np.argsort(2 * is_outside + (room < BESIDE), kind="stable")
    return [float(x) for x in every[best[is_free[best]], 0][:_MOST_LANES]]


def corners_of(route: Route) -> list[Point]:
    """Return the corners of a straight route, with its ends; none for a curve."""
    points = route.points
    corners = [points[0]]
    for start, first, last, end in (points[at : at + 4] for at in range(0, len(points) - 3, 3)):
        if first == last:
            corners.append(first)
        elif not any(a == b == c == d for a, b, c, d in zip(start, first, last, end, strict=True)):
            return []
    return [*corners, points[-1]]


def is_inside(points: Points, rects: Points) -> NDArray[np.bool]:
    """Return for each point (rows) and rectangle (columns) whether it is inside."""
    x, y = points.T[:, :, None]
    left, top, right, bottom = rects.T
    return np.asarray((left < x) & (x < right) & (top < y) & (y < bottom))


def best_way(ways: Iterable[tuple[int, Way]], enough: int, default: Way) -> tuple[int, Way]:
    """Return the first way that crosses at most `enough` things, else that which crosses fewest."""
    tried = []
    for crossed, way in ways:
        if crossed <= enough:
            return crossed, way
        tried.append((crossed, way))
    return min(tried, key=itemgetter(0), default=(0, default))


def _way(one: Point, other: Point, clear: float) -> Rect:
    """Return the space of a straight part of a route, with `clear` px beside a vertical one."""
    (left, right), (top, bottom) = sorted((one[0], other[0])), sorted((one[1], other[1]))
    if top == bottom:
        return Rect(left, top - _HALF, right, bottom + _HALF)
    return Rect(left - clear, top, right + clear, bottom)


def _is_across(way: Rect) -> bool:
    return way.width > way.height


def title_rect(frame: ClusterFrame) -> Rect:
    """Return the rectangle of the title of a frame, at its left."""
    (x, y), left = frame.label, frame.rect.left
    return Rect(left, y - TITLE_HEIGHT / 2, 2 * x - left, y + TITLE_HEIGHT / 2)


def crossings_of(first: Points, second: Points) -> int:
    """Return how often two lines of several segments cross."""
    return _segments_crossed(first, _segments(second))


def _segments(line: Points) -> Points:
    """Return the two ends of each segment of a line, as rows of four."""
    return np.hstack([line[:-1], line[1:]])


def _segments_crossed(line: Points, segments: Points) -> int:
    """Return how often a line of several segments crosses others, all at once."""
    (left, top), (right, bottom) = line.min(0), line.max(0)
    x, y, to_x, to_y = segments.T
    is_near = (np.minimum(x, to_x) <= right) & (left <= np.maximum(x, to_x))
    is_near &= (np.minimum(y, to_y) <= bottom) & (top <= np.maximum(y, to_y))
    near = segments[is_near]
    if not len(near):
        return 0
    start, way = line[:-1, None], line[1:, None] - line[:-1, None]
    other, other_way = near[None, :, :2], near[None, :, 2:] - near[None, :, :2]
    gap = other - start
    turn = _turn(way, other_way)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = _turn(gap, other_way) / turn, _turn(gap, way) / turn
    return int(np.logical_and.reduce([(one > 0) & (one < 1) for one in shares]).sum())


def sampled_route(one: Route) -> Points:
    """Return points of a curve, eight for each of its parts, and its end."""
    points = np.array(one.points)
    parts = np.stack([points[at : len(points) - 3 + at : 3] for at in range(4)], axis=1)
    found = np.einsum("tk,pkc->ptc", _BERNSTEIN, parts).reshape(-1, 2)
    return np.vstack([found, points[-1:]])


def _turn(one: Points, two: Points) -> Points:
    return np.asarray(one[..., 0] * two[..., 1] - one[..., 1] * two[..., 0])


_TURN_TO_LANE, _TURN_FROM_LANE = 4.0, 8.0
"""How far after its start, and before its end, a route turns to and from its lane."""
_WIDE = Room(3.0, (0.0,), (0.0, -3.0, 3.0, -6.0, 6.0), 20, 4.0)
_NEAR = 0.0, -0.7, 0.7, -1.4, 1.4, -2.1, 2.1, -2.8, 2.8
_BEFORE_FRAME = -5.0, -6.0, -6.8, -7.5
"""Rows between a node and a frame before it, which is 8 px from it until the layout is spread."""
_TIGHT = Room(0.6, _NEAR[::2], (*_NEAR, *_BEFORE_FRAME), 40, 1.0)
_LAST = Room(
    0.6,
    [0.7 * step for step in range(20)],
    [0.7 * step for step in range(-11, 20)],
    40,
    1.0,
    is_last=True,
)
ROOMS = _WIDE, _TIGHT, _LAST
"""The rooms that are tried one after another."""
_HALF = 0.4
"""Half of the height of a line, for what it may not overlap."""
_LONG = 7
"""The points of a route of two curves: it turns more than once, or leads past other rows."""
_GAPS = -9.0, -6.0, 6.0, 9.0
"""Where lanes are tried beside boxes and frames: 6 px are the middle between two frames."""
_CLEAR = 8.0, 4.0
"""The distances of a lane from boxes, the best one and the least."""
_MOST_LANES = 6
"""The most lanes that are tried for a route."""
TITLE_HEIGHT = 14.0
"""The height of a frame's title."""
_TIMES = np.arange(8)[:, None] / 8
_BERNSTEIN = np.hstack([math.comb(3, k) * _TIMES**k * (1 - _TIMES) ** (3 - k) for k in range(4)])
