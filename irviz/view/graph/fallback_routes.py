"""Route the edges that Graphviz leaves out; the routes may cross nodes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from irviz.view.geometry import Point, Rect, Size
from irviz.view.graph.graphviz_layout import Layout, Route

NODE_GAP, ROW_GAP = 18.0, 36.0
_ARROW = 7.0
_TURN_AT_SOURCE, _TURN_AT_TARGET, _BEND = 18.0, 12.0, 6.0
"""How far a backward edge extends beyond its ends: around their corners, within the margin."""


def add_missing_routes(
    layout: Layout,
    sizes: Mapping[str, Size],
    edges: Sequence[tuple[str, str, str, float]],
    direction: str = "up",
) -> Layout:
    """Add a route for each edge of a layout that has none; it may cross nodes."""
    flow = 1.0 if direction == "down" else -1.0
    rects = {name: Rect.around(centre, sizes[name]) for name, centre in layout.nodes.items()}
    added = {
        name: route(rects[source], rects[target], entry, flow)
        for name, source, target, entry in edges
        if name not in layout.routes
    }
    return replace(layout, routes={**layout.routes, **added}) if added else layout


def route(source: Rect, target: Rect, entry: float, flow: float) -> Route:
    """Return a curve along the flow; an edge that leads back goes around both boxes."""
    start = (source.centre[0], source.bottom if flow > 0 else source.top)
    tip = (target.left + entry * target.width, target.top if flow > 0 else target.bottom)
    end = (tip[0], tip[1] - flow * _ARROW)
    ahead = (end[1] - start[1]) * flow
    if ahead >= 0:
        reach = flow * max(ahead, ROW_GAP) / 2
        return Route((start, (start[0], start[1] + reach), (end[0], end[1] - reach), end), tip)
    leaving, entering = _detour(source, target)
    above, below = start[1] + flow * _TURN_AT_SOURCE, end[1] - flow * _TURN_AT_TARGET
    turned = (start, (start[0], above), (leaving[0], above), leaving)
    if abs(leaving[1] - entering[1]) < (source.height + target.height) / 2:
        return Route((*turned, *_along_row(leaving, end, source, flow), end), tip)
    middle = (leaving[1] + entering[1]) / 2
    back = ((leaving[0], middle), (entering[0], middle), entering)
    return Route((*turned, *back, (entering[0], below), (end[0], below), end), tip)


def _along_row(leaving: Point, end: Point, source: Rect, flow: float) -> tuple[Point, ...]:
    """Return the points of a line in the gap before a row, past the boxes in the row."""
    inlets = end[1], source.centre[1] - flow * (source.height / 2 + _ARROW)
    line = min(inlets, key=lambda y: y * flow) - flow * _BEND
    along = math.copysign(_BEND, end[0] - leaving[0])
    corners = (leaving[0], line), (end[0], line)
    bends = (leaving[0] + along, line), (end[0] - along, line)
    return (corners[0],) * 2 + (bends[0],) * 2 + (bends[1],) * 2 + (corners[1],) * 2


def _detour(source: Rect, target: Rect) -> tuple[Point, Point]:
    """Return the points where an edge that leads back passes its source and its target."""
    gap = NODE_GAP / 2
    right, left = source.right + gap, source.left - gap
    if target.left > right:  # through the gap between the two
        sides = right, target.left - gap
    elif target.right < left:
        sides = left, target.right + gap
    else:
        sides = (max(right, target.right + gap),) * 2
    return (sides[0], source.centre[1]), (sides[1], target.centre[1])
