"""Layouts: the positions of nodes, edges and clusters by Graphviz, and better routes of edges."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from itertools import combinations, pairwise, product
from operator import itemgetter
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from irviz.model.graph.graph import grouped
from irviz.view.graph.graphviz_engine import run_dot
from irviz.view.svg_primitives import Point, Rect, Size

Way = TypeVar("Way")
Points = NDArray[np.float64]
"""An array with a row of two for each point, or a row of four for each rectangle."""

WAYPOINT = "point"
"""The shape of a node of no size through which an edge leads."""
LAYOUT_SECONDS = 3.0
"""The default time limit of a layout; 2,000 nodes take about half of it."""


class LayoutInput(NamedTuple):
    """The input of a layout; node `n3` is the graph's fourth node, edge `e3` its fourth edge.

    The edges to the output follow the graph's own.

    Attributes:
        sizes: The size of each node in px.
        edges: `(id, source, target, entry)`: an edge enters its target at this fraction of the
            target's width.
        frames: `(parent, nodes)` for each cluster: the cluster around it, "" for none, and the
            nodes that are directly inside.
        flow: 1 where data flows downwards, -1 where it flows upwards.
    """

    sizes: dict[str, Size]
    edges: list[tuple[str, str, str, float]]
    frames: dict[str, tuple[str, list[str]]]
    flow: float = -1.0


@dataclass(frozen=True, slots=True)
class ClusterFrame:
    """The frame of a cluster, and the centre of its title; in px."""

    rect: Rect
    label: Point


@dataclass(frozen=True, slots=True)
class Route:
    """An edge's cubic Bézier curve (3n + 1 points) and the tip of its arrow."""

    points: tuple[Point, ...]
    tip: Point


@dataclass(frozen=True, slots=True)
class Layout:
    """The positions of a graph's parts, in px.

    Attributes:
        nodes: The centre of each node, by its name in DOT.
        frames: The frame of each cluster by its name in DOT, outer ones before inner ones.
        routes: The route of each edge, by its id in DOT.
        shapes: The rectangle of the shape of some nodes; others have the size of their texts.
    """

    width: float
    height: float
    nodes: dict[str, Point]
    frames: dict[str, ClusterFrame]
    routes: dict[str, Route]
    shapes: dict[str, Rect] = field(default_factory=dict)


@lru_cache(maxsize=16)
def lay_out(dot: str, seconds: float = LAYOUT_SECONDS) -> Layout:
    """Place the parts of a DOT text, which has an id for every edge, with Graphviz's dot.

    Layouts are cached, because many passes change no sizes and so give the same DOT text.

    Raises:
        TimeoutError: The engine gave no answer. It may the next time, and an error is not cached.
        ValueError: As in `read_layout` and `run_dot`.
        ImportError, StartError: As in `run_dot`.
    """
    answer = run_dot(dot, seconds)
    if answer is None:
        raise TimeoutError(f"the layout was not ready within {seconds:g} s")
    return read_layout(answer)


class Routing:
    """The routes of a layout, which each method improves where it can.

    Edges without a route get one, which may cross nodes, and so do those whose route starts at the
    side of a node where its operands enter: Graphviz exchanges the sides of some edges between
    nodes of one rank.
    """

    def __init__(self, layout: Layout, given: LayoutInput) -> None:
        self._layout, self._edges, self._flow = layout, given.edges, given.flow
        self._rects = {
            name: Rect.around(centre, given.sizes[name]) for name, centre in layout.nodes.items()
        }
        self._boxes = np.array([*self._rects.values()]).reshape(-1, 4)
        self.routes: dict[str, Route] = {}
        for name, source, target, entry in given.edges:
            known, (_, y) = layout.routes.get(name), layout.nodes[source]
            if known is None or (known.points[0][1] - y) * given.flow < 0:
                known = self._route(source, target, entry)
            self.routes[name] = known

    def layout(self) -> Layout:
        """Return the layout with the routes as they are now."""
        return replace(self._layout, routes=self.routes)

    def uncross(self) -> None:
        """Make routes to a node almost straight where they cross less often for that.

        Graphviz bends each route by itself, so two may cross although their ends are in one order.
        """
        entering = grouped(
            (target, (name, source, entry)) for name, source, target, entry in self._edges
        )
        curves = {name: (one, _sampled(one)) for name, one in self.routes.items()}

        @cache
        def free_direct(source: str, target: str, entry: float) -> list[tuple[Route, Points]]:
            one = self._direct(source, target, entry)
            return [(one, _sampled(one))] if self._is_free(one) else []

        def crossings(both: Sequence[tuple[Route, Points]]) -> int:
            (_, first), (_, second) = both
            return _crossings(first, second)

        for target, siblings in entering.items():
            for pair in combinations(siblings, 2):
                if crossings([curves[name] for name, _, _ in pair]):
                    choices = (
                        [curves[name], *free_direct(source, target, entry)]
                        for name, source, entry in pair
                    )
                    best = min(product(*choices), key=crossings)
                    curves.update(zip((name for name, _, _ in pair), best, strict=True))
        self.routes = {name: one for name, (one, _) in curves.items()}

    def keep_in_frames(self) -> None:
        """Move each route into the smallest frame around both ends, if it meets no box there.

        Graphviz lets routes bulge out of frames at their sides.
        """
        frames = sorted((one.rect for one in self._layout.frames.values()), key=lambda r: r.width)
        for name, *ends, _ in self._edges:
            known, rects = self.routes[name], [self._rects[end] for end in ends]
            if frame := next((one for one in frames if all(map(one.contains, rects))), None):
                x = _sampled(known)[:, 0]
                if x.min() < frame.left or x.max() > frame.right:
                    least, most = frame.left + _BEND, frame.right - _BEND
                    points = ((min(max(x, least), most), y) for x, y in known.points)
                    self._try(name, Route(tuple(points), known.tip))

    def go_around_boxes(self) -> None:
        """Lead routes that run through a box around all boxes, where there is a way.

        Graphviz draws such routes where ranks are those of the whole graph and not of each frame.
        """
        for name, source, target, entry in self._edges:
            if not self._is_free(self.routes[name]):
                self._try(name, self._route(source, target, entry, is_direct=False))

    def use_lanes(self, fixed: Collection[str] = frozenset()) -> None:
        """Let routes beside several boxes, and those that lead aside, run straight there.

        Graphviz draws them as waves. A route stays as it is where a straight one would meet a box,
        more routes, a straight route from another node, or a frame around neither of its ends, and
        at the nodes that are `fixed`.
        """
        flow, routes = self._flow, self.routes
        boxes, frames = [*self._rects.values()], [*self._layout.frames.values()]
        outlines = np.array([one.rect for one in frames]).reshape(-1, 4)
        taken = list[tuple[str, Rect]]()
        # where routes from a node lead aside: others may do so, too
        turns = defaultdict[str, list[float]](list)
        # the longest first: short ones find another place more easily
        edges = sorted(
            self._edges, key=lambda one: -math.dist(routes[one[0]].points[0], routes[one[0]].tip)
        )
        if len(edges) > _MOST_IN_LANES:
            return
        sources = np.array([source for _, source, *_ in edges])
        known = [routes[name] for name, *_ in edges]
        # with their arrows: Graphviz leads some across those of others
        sampled = [np.vstack([_sampled(one), one.tip]) for one in known]
        low, high = (np.array([end(one, 0) for one in sampled]) for end in (np.min, np.max))

        def crossings(way: Points, source: str) -> int:
            is_near = ((low <= way.max(0)) & (high >= way.min(0))).all(1) & (sources != source)
            others = [sampled[at] for at in np.flatnonzero(is_near)]
            return _segments_crossed(way, others) if others else 0

        def straight_ways(at: int) -> Iterator[tuple[int, list[Point]]]:
            """Yield the corners of ways that a route can take, after how many each crosses."""
            name, source, target, _ = edges[at]
            start, (x, y) = routes[name].points[0], routes[name].tip
            end = (x, y - flow * _ARROW)
            outside = (start[0], start[1] + flow)  # of the source, but for rounding
            ends = np.array([self._layout.nodes[source], self._layout.nodes[target]])
            met = np.vstack([self._boxes, outlines[~_inside(ends, outlines).any(0)]])
            others = [way for other, way in taken if other != source]
            across, upright = (
                np.array([way for way in others if _is_across(way) == is_across]).reshape(-1, 4)
                for is_across in (True, False)
            )
            lanes = _lanes(routes[name], sampled[at][:-1], flow, boxes, frames, turns[source])
            for corners, clear in lanes:
                ways = [_way(*pair, clear) for pair in pairwise(corners)]
                ways += [_way(outside, corners[0], 0), _way(corners[-1], end, 0)]
                if not any(
                    _meet([way], rects)
                    for way in ways
                    for rects in (met, across if _is_across(way) else upright)
                ):
                    points = [start, *corners, end]
                    yield crossings(np.array([*points, (x, y)]), source), points

        for at, (name, source, target, _) in enumerate(edges):
            if source in fixed or target in fixed:
                continue
            crossed = crossings(sampled[at], source)
            count, points = _best_way(straight_ways(at), crossed, [])
            if points and count <= crossed + _MORE_CROSSINGS:
                routes[name] = Route(_rounded(*points), routes[name].tip)
                sampled[at] = np.array([*points, routes[name].tip])
                low[at], high[at] = sampled[at].min(0), sampled[at].max(0)
                corners = points[1:-1]
                turns[source].append(corners[0][1])
                taken += [(source, space) for space in _space_of(corners)]

    def straighten(self) -> None:
        """Make almost vertical routes vertical, unless the tips or routes would meet others."""
        entering = grouped((target, name) for name, _, target, _ in self._edges)
        for target, names in entering.items():
            rect = self._rects[target]
            for name in names:
                one = self.routes[name]
                x, (tip, y) = one.points[0][0], one.tip
                others = [self.routes[other].tip[0] for other in names if other != name]
                if (
                    rect.left + _BEND <= x <= rect.right - _BEND
                    and all(abs(along - x) <= _SLANT for along, _ in (*one.points, one.tip))
                    and all(abs(at - x) >= _BESIDE and (at < x) == (at < tip) for at in others)
                ):
                    self._try(name, Route(tuple((x, along) for _, along in one.points), (x, y)))

    def _route(self, source: str, target: str, entry: float, *, is_direct: bool = True) -> Route:
        """Return a route as `route` does, around all boxes if around any."""
        rects, frames = self._rects, [one.rect for one in self._layout.frames.values()]
        ends = rects[source], rects[target]
        return route(*ends, entry, self._flow, rects.values(), frames, is_direct=is_direct)

    def _direct(self, source: str, target: str, entry: float) -> Route:
        """Return a route that is almost straight."""
        plain = route(self._rects[source], self._rects[target], entry, self._flow)
        (x, y), (end, low) = plain.points[0], plain.points[-1]
        bend = (low - y) * _STRAIGHT
        return Route(((x, y), (x, y + bend), (end, low - bend), (end, low)), plain.tip)

    def _try(self, name: str, other: Route) -> None:
        """Take another route for an edge if it runs through no box."""
        if self._is_free(other):
            self.routes[name] = other

    def _is_free(self, one: Route) -> bool:
        """Return whether a route runs through no box."""
        points = _sampled(one)
        lengths = np.hypot(*np.diff(points, axis=0).T)
        far = np.concatenate([[0.0], np.cumsum(lengths)])
        steps = np.linspace(0.0, far[-1], 2 + int(far[-1] / _STEP))
        along = np.stack([np.interp(steps, far, line) for line in points.T], axis=1)
        return not _inside(along, self._boxes).any()


def _lanes(
    known: Route,
    sampled: Points,
    flow: float,
    boxes: Sequence[Rect],
    frames: Sequence[ClusterFrame],
    turned: Sequence[float],
) -> Iterator[tuple[list[Point], float]]:
    """Yield the corners of straight ways for a route, the best first, none along a frame.

    With each comes the distance from boxes that it must have. Where other routes from its source
    have `turned`, this one does, too, if it can.
    """
    start, end = known.points[0], (known.tip[0], known.points[-1][1])
    if (end[1] - start[1]) * flow <= 0:
        return
    if len(known.points) >= _LONG:
        above, below = start[1] + flow * _TURN_TO_LANE, end[1] - flow * _TURN_FROM_LANE
        rows = min(above, below), max(above, below)
        outlines, ends = [one.rect for one in frames], (start[0], end[0])
        found = _free_lanes(boxes, outlines, rows, _median_x(sampled), ends)
        for clear, x, gap in product(_CLEAR, found, _ROWS):
            row = below - flow * gap
            yield [(start[0], above), (x, above), (x, row), (end[0], row)], clear
    elif start[0] != end[0]:
        left, right = sorted((start[0], end[0]))
        across = [one for one in frames if one.rect.left < right and one.rect.right > left]
        lines = [y for one in across for y in one.rect[1::2]]
        titles = [_title_of(one) for one in across]
        top, bottom = sorted((start[1], end[1]))
        rows = np.linspace(top, bottom, 21)[1:-1].tolist()
        rows.sort(key=lambda y: abs(y - (top + bottom) / 2))
        for y in (*(one for one in turned if top < one < bottom), *rows):
            way = _way((left, y), (right, y), 0)
            if all(abs(y - line) > _BEND for line in lines) and not any(map(way.overlaps, titles)):
                yield [(start[0], y), (end[0], y)], 0


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
    is_free = room >= _BESIDE / 2
    is_free &= ~((sides[::2] - _BEND < every) & (every < sides[1::2] + _BEND)).any(1)
    way = Rect(min(ends), top, max(ends), bottom)
    left, right = np.array([one[::2] for one in frames if one.contains(way)]).reshape(-1, 2).T
    is_outside = ((every < left) | (right < every)).any(1)
    best = np.argsort(2 * is_outside + (room < _BESIDE), kind="stable")
    return [float(x) for x in every[best[is_free[best]], 0][:_MOST_LANES]]


def _inside(points: Points, rects: Points) -> NDArray[np.bool]:
    """Return for each point (rows) and rectangle (columns) whether it is inside."""
    x, y = points.T[:, :, None]
    left, top, right, bottom = rects.T
    return np.asarray((left < x) & (x < right) & (top < y) & (y < bottom))


def _best_way(ways: Iterable[tuple[int, Way]], enough: int, default: Way) -> tuple[int, Way]:
    """Return the first way that crosses at most `enough` things, else that which crosses fewest."""
    tried = []
    for crossed, way in ways:
        if crossed <= enough:
            return crossed, way
        tried.append((crossed, way))
    return min(tried, key=itemgetter(0), default=(0, default))


def _space_of(corners: Sequence[Point]) -> list[Rect]:
    """Return where no other route may run along a way with these corners."""
    ways = (_way(*pair, _BEND) for pair in pairwise(corners))
    return [one._replace(top=one.top - _APART, bottom=one.bottom + _APART) for one in ways]


def _way(one: Point, other: Point, clear: float) -> Rect:
    """Return the space of a straight part of a route, with `clear` px beside a vertical one."""
    (left, right), (top, bottom) = sorted((one[0], other[0])), sorted((one[1], other[1]))
    if top == bottom:
        return Rect(left, top - 1, right, bottom + 1)
    return Rect(left - clear, top, right + clear, bottom)


def _is_across(way: Rect) -> bool:
    return way.width > way.height


def _meet(ways: Sequence[Rect], obstacles: Points) -> bool:
    """Return whether one of the rectangles overlaps an obstacle."""
    left, top, right, bottom = obstacles.T
    return any(
        ((left < way.right) & (way.left < right) & (top < way.bottom) & (way.top < bottom)).any()
        for way in ways
    )


def _title_of(frame: ClusterFrame) -> Rect:
    x, y = frame.label
    return Rect(frame.rect.left, y - _TITLE / 2, 2 * x - frame.rect.left, y + _TITLE / 2)


def _crossings(first: Points, second: Points) -> int:
    """Return how often two lines of several segments cross."""
    if (first.max(0) < second.min(0)).any() or (second.max(0) < first.min(0)).any():
        return 0
    return _segments_crossed(first, [second])


def _segments_crossed(line: Points, others: Sequence[Points]) -> int:
    """Return how often a line of several segments crosses others, all at once."""
    start, way = line[:-1, None], line[1:, None] - line[:-1, None]
    other = np.vstack([one[:-1] for one in others])[None]
    other_way = np.vstack([one[1:] for one in others])[None] - other
    gap = other - start
    turn = _turn(way, other_way)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = _turn(gap, other_way) / turn, _turn(gap, way) / turn
    return int(np.logical_and.reduce([(one > 0) & (one < 1) for one in shares]).sum())


def _sampled(one: Route) -> Points:
    """Return points of a curve, eight for each of its parts, and its end."""
    points = np.array(one.points)
    parts = np.stack([points[at : len(points) - 3 + at : 3] for at in range(4)], axis=1)
    found = np.einsum("tk,pkc->ptc", _BERNSTEIN, parts).reshape(-1, 2)
    return np.vstack([found, points[-1:]])


def _turn(one: Points, two: Points) -> Points:
    return np.asarray(one[..., 0] * two[..., 1] - one[..., 1] * two[..., 0])


_TURN_TO_LANE, _TURN_FROM_LANE = 4.0, 8.0
"""How far after its start, and before its end, a route turns to and from its lane."""
_APART = 1.0
"""The space in px between routes that lead aside one below the other."""
_MORE_CROSSINGS = 2
"""How many edges more a straight route may cross than Graphviz's, which is harder to follow."""
_ROWS = 0.0, -3.0, 3.0, -6.0, 6.0
"""How much nearer to its target a route may lead aside, or further from it, where others do."""
_MOST_IN_LANES = 600
"""The most routes among which lanes are looked for: more take seconds."""
_STEP = 8.0
"""The distance in px of the points of a route that are looked for in boxes."""
_LONG = 7
"""The points of a route of two curves: it turns more than once, or leads past other rows."""
_GAPS = -9.0, -6.0, 6.0, 9.0
"""Where lanes are tried beside boxes and frames: 6 px are the middle between two frames."""
_CLEAR = 8.0, 4.0
"""The distances of a lane from boxes, the best one and the least."""
_MOST_LANES = 6
"""The most lanes that are tried for a route."""
_SLANT = 12.0
"""By how many px a line leans at most that looks badly drawn."""
_TITLE = 14.0
"""The height of a frame's title."""
_STRAIGHT = 0.35
"""The part of the way in which such a route turns; a third would be a straight line."""
_TIMES = np.arange(8)[:, None] / 8
_BERNSTEIN = np.hstack([math.comb(3, k) * _TIMES**k * (1 - _TIMES) ** (3 - k) for k in range(4)])


def read_layout(answer: str) -> Layout:
    """Read Graphviz's JSON: lengths in points, which become px, with y upwards.

    Graphviz fails for individual edges ("lost n66 n89 edge") and omits their `pos`. Nodes, clusters
    and edges without a usable position are absent from the layout.

    Raises:
        ValueError: The text is not the JSON of a graph with a size, or a position does not consist
            of finite numbers.
    """
    placed = json.loads(answer)
    if not isinstance(placed, dict):
        raise ValueError(f"Graphviz answered {answer[:40]!r} instead of a graph")
    _, _, width, height = _numbers(placed.get("bb"), 4)
    nodes: dict[str, Point] = {}
    frames: dict[str, ClusterFrame] = {}
    for item in placed.get("objects", ()):  # Graphviz writes a cluster before those inside it
        if "bb" in item:
            frames[item["name"]] = _frame(item, height)
        elif "pos" in item and item.get("shape") != WAYPOINT:
            x, y = _numbers(item["pos"], 2)
            nodes[item["name"]] = (x, height - y)
    # those that lead to a waypoint first
    edges = sorted(placed.get("edges", ()), key=lambda one: "arrowhead" not in one)
    parts = grouped((edge["id"], _route(edge.get("pos"), height)) for edge in edges)
    routes = {name: way for name, ways in parts.items() if (way := _joined(ways)) is not None}
    return Layout(width, height, nodes, frames, routes)


def _frame(item: Mapping[str, str], height: float) -> ClusterFrame:
    """Read a cluster; if it has no label, use the middle of its upper side."""
    left, bottom, right, top = _numbers(item["bb"], 4)
    x, y = _numbers(item["lp"], 2) if "lp" in item else ((left + right) / 2, top)
    return ClusterFrame(Rect(left, height - top, right, height - bottom), (x, height - y))


def _joined(parts: Sequence[Route | None]) -> Route | None:
    """Return the route of an edge with these parts, None if one of them has none."""
    found = [one for one in parts if one is not None]
    if len(found) < len(parts):
        return None
    points: tuple[Point, ...] = ()
    for one in found:
        points = (*points[:-1], *one.points)
    return Route(points, found[-1].tip)


def _route(text: object, height: float) -> Route | None:
    """Read `e,x,y x,y …`, the tip of the arrow and the curve; None for anything else.

    The tip of an arrow at the start (`s,x,y`) is ignored: irviz draws no such arrows. A route in
    several pieces, separated by `;`, counts as none.
    """
    tip: Point | None = None
    points: list[Point] = []
    try:
        for word in str(text).split():
            mark, _, rest = word.partition(",")
            x, y = _numbers(rest if mark in ("e", "s") else word, 2)
            if mark == "e":
                tip = (x, height - y)
            elif mark != "s":
                points.append((x, height - y))
    except ValueError:
        return None
    if len(points) < 4 or len(points) % 3 != 1:
        return None
    return Route(tuple(points), tip or points[-1])


def _numbers(text: object, count: int) -> tuple[float, ...]:
    """Read finite numbers that are separated by commas; raise ValueError for anything else."""
    try:
        numbers = tuple(map(float, str(text).split(",")))
    except ValueError:
        numbers = ()
    if len(numbers) != count or not all(map(math.isfinite, numbers)):
        raise ValueError(f"Graphviz answered {text!r} where {count} finite numbers should be")
    return numbers


# --- fallback routes ---------------------------------------------------------------------------
#
# Route the edges that Graphviz leaves out, or leads through boxes.


NODE_GAP, ROW_GAP = 18.0, 36.0
_ARROW = 7.0
_TURN_AT_SOURCE, _TURN_AT_TARGET, _BEND = 8.0, 4.0, 4.0
"""How far a backward edge extends beyond its ends, and how far before a corner it turns."""
_BESIDE = NODE_GAP / 2
"""The distance of a backward edge from the boxes beside it: the middle of a gap between two."""
_ASIDE = _BESIDE, 2 * _BESIDE / 3
"""The same, and the middle between a box and the frame around it."""


def route(
    source: Rect,
    target: Rect,
    entry: float,
    flow: float,
    boxes: Collection[Rect] = (),
    frames: Iterable[Rect] = (),
    *,
    is_direct: bool = True,
) -> Route:
    """Return a curve along the flow.

    An edge that leads back, or that is not direct, goes around its ends and `boxes`, and not along
    the side of one of the `frames`.
    """
    start = (source.centre[0], source.side(flow))
    tip = (target.left + entry * target.width, target.side(-flow))
    end = (tip[0], tip[1] - flow * _ARROW)
    ahead = (end[1] - start[1]) * flow
    if ahead >= 0 and is_direct:
        reach = flow * max(ahead, ROW_GAP) / 2
        return Route((start, (start[0], start[1] + reach), (end[0], end[1] - reach), end), tip)
    above, below = start[1] + flow * _TURN_AT_SOURCE, end[1] - flow * _TURN_AT_TARGET
    x = _way_back((start[0], above), (end[0], below), {source, target, *boxes}, frames)
    corners = (start[0], above), (x, above), (x, below), (end[0], below)
    return Route(_rounded(start, *corners, end), tip)


def _way_back(
    leaving: Point, entering: Point, boxes: Collection[Rect], frames: Iterable[Rect]
) -> float:
    """Return where a line back to earlier rows meets no box, or few, with the least detour."""
    ends = sorted((leaving[1], entering[1]))
    # none of these distances is one that boxes have: rounding decides nothing
    beside = [box for box in boxes if box.bottom > ends[0] - 0.9 and box.top < ends[1] + 0.9]

    def met(x: float) -> int:
        ways = [Rect(x - 3.9, ends[0] - 0.9, x + 3.9, ends[1] + 0.9)]
        for at, y in (leaving, entering):
            ways.append(Rect(min(at, x) - 0.9, y - 0.9, max(at, x) + 0.9, y + 0.9))
        along = sum(abs(x - side) < _BESIDE / 2 for side in lines)
        return along + sum(way.overlaps(box) for way in ways for box in boxes)

    lines = {x for one in frames if one.bottom > ends[0] and one.top < ends[1] for x in one[::2]}
    sides = {
        (x, _BESIDE - far)
        for box in beside
        for far in _ASIDE
        for x in (box.left - far, box.right + far)
    }

    def detour(side: tuple[float, float]) -> tuple[float, float]:
        x, nearer = side
        return round(abs(x - leaving[0]) + abs(x - entering[0]) + 3 * nearer, 3), -x

    nearest = [x for x, _ in sorted(sides, key=detour)]
    return _best_way(((met(x), x) for x in nearest), 0, leaving[0])[1]


def _rounded(*corners: Point) -> tuple[Point, ...]:
    """Return the points of a curve that follows straight lines, with round corners."""
    points = [corners[0]]
    for before, corner, after in zip(corners, corners[1:], corners[2:], strict=False):
        first, last = _toward(corner, before), _toward(corner, after)
        points += [first, first, first, corner, corner, last]
    return (*points, points[-1], points[-1], corners[-1])


def _toward(one: Point, other: Point) -> Point:
    """Return a point near the first, on the line to the second."""
    length = math.dist(one, other)
    share = min(_BEND / length, 0.5) if length else 0.0
    return (one[0] + share * (other[0] - one[0]), one[1] + share * (other[1] - one[1]))
