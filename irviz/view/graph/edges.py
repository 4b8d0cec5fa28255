"""Edges: the curve and the arrow of each use of a value."""

from __future__ import annotations

import math
from itertools import chain
from xml.etree import ElementTree

import numpy as np

from irviz.model.graph.graph import Edge, Node
from irviz.view.geometry import Point, Rect
from irviz.view.graph import labels
from irviz.view.graph.graphviz_layout import Route
from irviz.view.svg_primitives import add, add_tooltip, path
from irviz.view.theme import Theme

_ARROW_WIDTH = 3.2


def draw_edge(
    parent: ElementTree.Element,
    edge: Edge,
    source: Node,
    route: Route,
    theme: Theme,
    *,
    is_dashed: bool = False,
) -> ElementTree.Element:
    """Draw an edge along its route; return the group.

    Args:
        is_dashed: Whether it is dashed, like the outline of a removed node.
    """
    kinds = " carried" * edge.is_carried + " other_copy" * edge.is_other + " write" * edge.is_write
    group = add(parent, "g", f"edge{kinds}", data_source=edge.source, data_target=edge.target)
    title = f"{source.name or labels.title(source)}: {source.type_label}"
    if edge.uses > 1:
        title += f"\n{edge.uses} uses"
    if edge.is_carried:
        title += "\nfrom each copy to the next"
    if edge.is_other:
        title += "\nof another copy than the one that is drawn"
    add_tooltip(group, title)
    start, *rest = route.points
    line = {"d": path("M", *start, "C", *chain.from_iterable(rest)), "fill": "none"}
    dashes = {"stroke_dasharray": "6 3"} if is_dashed else {}
    if edge.is_carried or edge.is_other:
        dashes = {"stroke_dasharray": "2 3" if edge.is_carried else "7 4"}
    width = 4.2 if edge.is_write else 1.2
    add(group, "path", **line, stroke=theme.line, stroke_width=width, **dashes)
    if edge.is_write:  # a double line
        add(group, "path", "inside", **line, stroke=theme.background, stroke_width=1.8, **dashes)
    add(group, "path", "arrow", d=_arrow(rest[-1], route.tip, edge), fill=theme.line)
    return group


def arrow_rect(route: Route) -> Rect:
    """Return the rectangle that the arrow at the end of a route covers."""
    (x, y), (tip_x, tip_y) = route.points[-1], route.tip
    return Rect(
        min(x, tip_x) - _ARROW_WIDTH,
        min(y, tip_y) - 1,
        max(x, tip_x) + _ARROW_WIDTH,
        max(y, tip_y) + 1,
    )


def points_along(route: Route, step: float) -> list[Point]:
    """Return points of a route's curve, about `step` px apart."""
    found: list[Point] = []
    points = route.points
    for index in range(0, len(points) - 3, 3):
        a, b, c, d = points[index : index + 4]
        count = max(1, math.ceil((math.dist(a, b) + math.dist(b, c) + math.dist(c, d)) / step))
        t = np.arange(count) / count
        u = 1 - t
        weights = np.stack((u**3, 3 * u * u * t, 3 * u * t * t, t**3), axis=1)
        found += map(tuple, (weights @ np.array((a, b, c, d))).tolist())
    return found


def _arrow(base: Point, tip: Point, edge: Edge) -> str:
    width = _ARROW_WIDTH * (1.8 if edge.is_write else 1)
    along = math.hypot(tip[0] - base[0], tip[1] - base[1]) or 1.0
    x, y = -(tip[1] - base[1]) / along * width, (tip[0] - base[0]) / along * width
    sides = ("L", *tip, "L", base[0] - x, base[1] - y, "Z")
    return path("M", base[0] + x, base[1] + y, *sides)
