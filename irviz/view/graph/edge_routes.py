"""Routes of edges: around boxes, straight where they can be, and apart from one another."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from dataclasses import replace
from functools import cache
from itertools import combinations, pairwise, product
from typing import NamedTuple, TypeAlias

import numpy as np

from irviz.model.graph.graph import grouped
from irviz.view.graph.layout import ClusterFrame, Layout, LayoutInput, Route
from irviz.view.graph.straight_ways import (
    ARROW,
    BEND,
    BESIDE,
    ROOMS,
    ROW_GAP,
    TITLE_HEIGHT,
    DrawnLines,
    Points,
    Room,
    TakenWays,
    WaySearch,
    best_way,
    corners_of,
    crossings_of,
    is_inside,
    sampled_route,
    title_rect,
)
from irviz.view.svg_primitives import Point, Rect


class Routing:
    """The routes of a layout, which each method improves where it can.

    Edges without a route get one, which may cross nodes, and so do those whose route starts at the
    side of a node where its operands enter: Graphviz exchanges the sides of some edges between
    nodes of one rank.
    """

    def __init__(self, layout: Layout, given: LayoutInput) -> None:
        self._layout, self._given = layout, given
        self._edges, self._flow = given.edges, given.flow
        self._place()
        self.routes: dict[str, Route] = {}
        for name, source, target, entry in given.edges:
            known, (_, y) = layout.routes.get(name), layout.nodes[source]
            if known is None or (known.points[0][1] - y) * given.flow < 0:
                known = self._route(source, target, entry)
            self.routes[name] = known

    def _place(self) -> None:
        nodes, sizes = self._layout.nodes, self._given.sizes
        self._rects = {name: Rect.around(centre, sizes[name]) for name, centre in nodes.items()}
        self._boxes = np.array([*self._rects.values()]).reshape(-1, 4)

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
        curves = {name: (one, sampled_route(one)) for name, one in self.routes.items()}

        @cache
        def free_direct(source: str, target: str, entry: float) -> list[tuple[Route, Points]]:
            one = self._direct(source, target, entry)
            return [(one, sampled_route(one))] if self._is_free(one) else []

        def crossings(both: Sequence[tuple[Route, Points]]) -> int:
            (_, first), (_, second) = both
            return crossings_of(first, second)

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
                x = sampled_route(known)[:, 0]
                if x.min() < frame.left or x.max() > frame.right:
                    least, most = frame.left + BEND, frame.right - BEND
                    points = ((min(max(x, least), most), y) for x, y in known.points)
                    self._try(name, Route(tuple(points), known.tip))

    def go_around_boxes(self) -> None:
        """Lead routes that run through a box around all boxes, where there is a way.

        Graphviz draws such routes where ranks are those of the whole graph and not of each frame.
        """
        for name, source, target, entry in self._edges:
            if not self._is_free(self.routes[name]):
                self._try(name, self._route(source, target, entry, is_direct=False))

    def use_lanes(self, kept: Set[str] = frozenset()) -> None:
        """Let routes beside several boxes, and those that lead aside, run straight there.

        Graphviz draws them as waves. A route stays as it is where a straight one would meet a box,
        or a straight route from another node, and if it is to be `kept`.
        Where there is little room it may lie close to others, until `spread` moves them apart.
        """
        flow, routes = self._flow, self.routes
        boxes, frames = [*self._rects.values()], [*self._layout.frames.values()]
        outlines = np.array([one.rect for one in frames]).reshape(-1, 4)
        # those that lead back are straight already
        back = {name for name, one in routes.items() if (one.tip[1] - one.points[0][1]) * flow < 0}
        taken = TakenWays((one[1], routes[one[0]]) for one in self._edges if one[0] in back | kept)
        # where routes from a node lead aside: others may do so, too
        turns = defaultdict[str, list[float]](list)
        # the longest first: short ones find another place more easily
        edges = sorted(
            self._edges, key=lambda one: -math.dist(routes[one[0]].points[0], routes[one[0]].tip)
        )
        if not 0 < len(edges) <= _MOST_IN_LANES:
            return
        drawn = DrawnLines((source, routes[name]) for name, source, *_ in edges)

        def straight_ways(at: int, room: Room) -> Iterator[tuple[int, list[Point]]]:
            """Yield the corners of ways that a route can take, after how many each crosses."""
            name, source, target, _ = edges[at]
            ends = np.array([self._layout.nodes[source], self._layout.nodes[target]])
            foreign = outlines[~is_inside(ends, outlines).any(0)]
            met = self._boxes if room.is_last else np.vstack([self._boxes, foreign])
            obstacles, known = taken.obstacles(met, source, room), routes[name]
            end = (known.tip[0], known.tip[1] - flow * ARROW)
            start = known.points[0]
            search = WaySearch(start, end, flow, frames, turns[source], room, obstacles)
            for corners in search.ways(known, drawn.lines[at][:-1], boxes):
                points = [start, *corners, end]
                yield drawn.crossings(np.array([*points, known.tip]), source), points

        def way_in(at: int, room: Room, crossed: int) -> list[Point]:
            """Return the best of these ways, [] if each crosses too many."""
            if room.is_last:
                return next((way for _, way in straight_ways(at, room)), [])
            count, way = best_way(straight_ways(at, room), crossed, [])
            return way if count <= crossed + _MORE_CROSSINGS else []

        for at, (name, source, *_) in enumerate(edges):
            if name in kept:
                continue
            crossed = drawn.crossings(drawn.lines[at], source)
            points = next(filter(None, (way_in(at, room, crossed) for room in ROOMS)), None)
            if points:
                tip = routes[name].tip
                routes[name] = Route(rounded(*points), tip)
                drawn.move(at, np.array([*points, tip]))
                turns[source].append(points[1][1])
                taken.add(source, points[1:-1])

    def spread(self) -> None:
        """Make the layout higher where routes lead aside too close to one another, or to frames.

        What is in one row stays in one row.
        """
        rows = [*self._rows()]
        lines = [*(line for *_, line in rows), *self._sides()]
        levels, shifts = _needed_shifts(lines, self._boxes)
        if not shifts.any():
            return

        def moved(point: Point) -> Point:
            return point[0], point[1] + float(np.interp(point[1], levels, shifts))

        layout = self._layout
        frames = dict[str, ClusterFrame]()
        for name, frame in layout.frames.items():
            rect, (x, y) = frame.rect, frame.label
            (first, above), (last, below) = self._contents(frame, rows)
            top = moved((x, first))[1] - max(first - rect.top, above)
            bottom = moved((x, last))[1] + max(rect.bottom - last, below)
            title = (x, y + top - rect.top)
            frames[name] = ClusterFrame(rect._replace(top=top, bottom=bottom), title)
        nodes = {name: moved(centre) for name, centre in layout.nodes.items()}
        height = layout.height + float(shifts[-1])
        self._layout = replace(layout, height=height, nodes=nodes, frames=frames)
        self._place()
        for name, source, target, _ in self._edges:
            one = self.routes[name]
            # with their nodes: Graphviz ends edges a little beside the sides of these
            to_source, to_target = (
                nodes[end][1] - layout.nodes[end][1] for end in (source, target)
            )
            corners = corners_of(one)
            (x, y), *points, (end, low) = corners or one.points
            points = [(x, y + to_source), *map(moved, points), (end, low + to_target)]
            tip = one.tip[0], one.tip[1] + to_target
            self.routes[name] = Route(rounded(*points) if corners else tuple(points), tip)

    def _contents(self, frame: ClusterFrame, rows: Sequence[_Row]) -> list[tuple[float, float]]:
        """Return where the contents of a frame begin and end, and how far from its sides at least.

        Edges that only lead through it are not contents.
        """
        rect, title = frame.rect, title_rect(frame)
        inside = {name for name, one in self._rects.items() if rect.contains(one)}
        sides = [(y, 0.0) for name in inside for y in self._rects[name][1::2]]
        sides = sides or [(y, 0.0) for y in rect[1::2]]
        line = _AT_FRAME + BETWEEN / 2
        own = [
            (one.y, TITLE_HEIGHT + BETWEEN / 2 if one.left < title.right else line)
            for source, target, one in rows
            if (source in inside or target in inside)
            and rect.overlaps(Rect(one.left, one.y, one.right, one.y))
        ]
        return [min(sides + own), max(sides + [(y, line) for y, _ in own])]

    def _rows(self) -> Iterator[_Row]:
        """Yield the parts of routes that lead aside, with the ends of the edge."""
        room = BETWEEN / 2
        for name, source, target, _ in self._edges:
            for (x, y), (end, below) in pairwise(corners_of(self.routes[name])):
                if y == below and abs(x - end) > BEND:
                    line = _Line(y, min(x, end), max(x, end), room, room, source)
                    yield source, target, line

    def _sides(self) -> Iterator[_Line]:
        """Yield the upper and lower sides of boxes and frames."""
        above, below = (_AT_ARROW, _AT_LABEL) if self._flow > 0 else (_AT_LABEL, _AT_ARROW)
        for left, top, right, bottom in self._rects.values():
            yield _Line(top, left, right, above, 0)
            yield _Line(bottom, left, right, 0, below)
        for frame in self._layout.frames.values():
            left, top, right, bottom = frame.rect
            for y in (top, bottom):
                yield _Line(y, left, right, _AT_FRAME, _AT_FRAME)
            yield _Line(top, left, title_rect(frame).right, 0, TITLE_HEIGHT)

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
                    rect.left + BEND <= x <= rect.right - BEND
                    and all(abs(along - x) <= _SLANT for along, _ in (*one.points, one.tip))
                    and all(abs(at - x) >= BESIDE and (at < x) == (at < tip) for at in others)
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
        points = sampled_route(one)
        lengths = np.hypot(*np.diff(points, axis=0).T)
        far = np.concatenate([[0.0], np.cumsum(lengths)])
        steps = np.linspace(0.0, far[-1], 2 + int(far[-1] / _STEP))
        along = np.stack([np.interp(steps, far, line) for line in points.T], axis=1)
        return not is_inside(along, self._boxes).any()


class _Line(NamedTuple):
    """A part of a route from a `source` that leads aside, or the side of a box or frame.

    So many px `above` and `below` are for it alone, where a route is on one of both sides.
    """

    y: float
    left: float
    right: float
    above: float
    below: float
    source: str = ""


_Row: TypeAlias = tuple[str, str, _Line]
"""The source and the target of an edge, and a part of it that leads aside."""


def _needed_shifts(lines: list[_Line], boxes: Points) -> tuple[Points, Points]:
    """Return the y of lines from above, and how far each must move down to have its room.

    Nothing moves beside a box: what is level with one stays level with it.
    """
    lines.sort()
    y = np.array([one.y for one in lines])
    is_beside = np.any((boxes[:, 1, None] < y) & (y <= boxes[:, 3, None]), axis=0)
    shifts = np.zeros(len(lines))
    for at, line in enumerate(lines[1:], start=1):
        shifts[at] = shifts[at - 1]
        for before in () if is_beside[at] else range(at - 1, -1, -1):
            other = lines[before]
            gap = line.y - other.y
            if gap >= BETWEEN + TITLE_HEIGHT:
                break
            is_one = other.source == line.source and gap < _SAME
            if (line.source or other.source) and not is_one and _overlap(line, other):
                need = other.below + line.above
                if gap < _ENOUGH * need:
                    shifts[at] = max(shifts[at], shifts[before] + need - gap)
    return y, shifts


def _overlap(one: _Line, other: _Line) -> bool:
    return one.left < other.right and other.left < one.right


def forks(routes: Sequence[Route]) -> dict[int, list[Point]]:
    """Return where straight routes from one node part, by the number of a route.

    There one of them has a corner, and lines lead in three directions at least.
    """
    if len(routes) < 2:
        return {}
    corners = [corners_of(route) for route in routes]
    lines = np.array([line for one in corners for line in pairwise(one)]).reshape(-1, 2, 2)
    low, high = lines.min(1) - _SAME, lines.max(1) + _SAME
    found: dict[tuple[int, int], tuple[int, Point]] = {}
    for number, (x, y) in ((at, corner) for at, one in enumerate(corners) for corner in one[1:-1]):
        is_on = ((low <= (x, y)) & (high >= (x, y))).all(1)
        away = lines[is_on].reshape(-1, 2) - (x, y)
        ways = np.where(abs(away) < 2 * _SAME, 0, np.sign(away))
        if len({(0, 0), *map(tuple, ways.tolist())}) > 3:
            found.setdefault((round(x), round(y)), (number, (x, y)))
    return grouped(found.values())


BETWEEN = 10.0
"""The distance of routes that lead aside one below the other, once the layout is spread."""
_AT_LABEL, _AT_ARROW, _AT_FRAME = 0.5, 7.5, 2.5
"""How much more than half of it such a route keeps from labels, from arrows and from frames."""
_ENOUGH = 0.75
"""With this part of the room nothing is moved: it would hardly be seen."""
_SAME = 0.1
"""Up to this distance lines are one."""
_MOST_IN_LANES = 600
"""The most routes among which lanes are looked for: more take seconds."""
_STEP = 8.0
"""The distance in px of the points of a route that are looked for in boxes."""
_SLANT = 12.0
"""By how many px a line leans at most that looks badly drawn."""
_MORE_CROSSINGS = 4
"""How many edges more a straight route may cross than Graphviz's, which is harder to follow."""
_STRAIGHT = 0.35
"""The part of the way in which such a route turns; a third would be a straight line."""
# --- fallback routes ---------------------------------------------------------------------------
#
# Route the edges that Graphviz leaves out, or leads through boxes.


TURN_AT_SOURCE, _TURN_AT_TARGET = 8.0, 4.0
"""How far a backward edge extends beyond its ends."""
_ASIDE = BESIDE, 2 * BESIDE / 3
"""Its distances from boxes: the middle of a gap between two, and of that to a frame around one."""


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
    end = (tip[0], tip[1] - flow * ARROW)
    ahead = (end[1] - start[1]) * flow
    if ahead >= 0 and is_direct:
        reach = flow * max(ahead, ROW_GAP) / 2
        return Route((start, (start[0], start[1] + reach), (end[0], end[1] - reach), end), tip)
    above, below = start[1] + flow * TURN_AT_SOURCE, end[1] - flow * _TURN_AT_TARGET
    x = _way_back((start[0], above), (end[0], below), {source, target, *boxes}, frames)
    corners = (start[0], above), (x, above), (x, below), (end[0], below)
    return Route(rounded(start, *corners, end), tip)


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
        along = sum(abs(x - side) < BESIDE / 2 for side in lines)
        return along + sum(way.overlaps(box) for way in ways for box in boxes)

    lines = {x for one in frames if one.bottom > ends[0] and one.top < ends[1] for x in one[::2]}
    sides = {
        (x, BESIDE - far)
        for box in beside
        for far in _ASIDE
        for x in (box.left - far, box.right + far)
    } | {(x, 0.0) for side in lines for x in (side - BESIDE, side + BESIDE)}

    def detour(side: tuple[float, float]) -> tuple[float, float]:
        x, nearer = side
        along = sum(max(0.0, BESIDE - abs(x - one)) for one in lines)
        return round(abs(x - leaving[0]) + abs(x - entering[0]) + 3 * nearer + 12 * along, 3), -x

    nearest = [x for x, _ in sorted(sides, key=detour)]
    return best_way(((met(x), x) for x in nearest), 0, leaving[0])[1]


def rounded(*corners: Point) -> tuple[Point, ...]:
    """Return the points of a curve that follows straight lines, with round corners."""
    points = [corners[0]]
    for before, corner, after in zip(corners, corners[1:], corners[2:], strict=False):
        points += _straight_to(points[-1], _toward(corner, before))
        points += [corner, corner, _toward(corner, after)]
    return (*points, *_straight_to(points[-1], corners[-1]))


def _straight_to(start: Point, end: Point) -> list[Point]:
    """Return the further points of a curve that is a straight line."""
    (x, y), (to_x, to_y) = start, end
    return [(x + share * (to_x - x), y + share * (to_y - y)) for share in (1 / 3, 2 / 3)] + [end]


def _toward(one: Point, other: Point) -> Point:
    """Return a point near the first, on the line to the second."""
    length = math.dist(one, other)
    share = min(BEND / length, 0.5) if length else 0.0
    return (one[0] + share * (other[0] - one[0]), one[1] + share * (other[1] - one[1]))
