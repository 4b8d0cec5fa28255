"""Edges: the curve and the arrow of each use of a value."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import numpy as np

from irviz.model.graph.graph import Edge, Node
from irviz.view.geometry import Point, Rect
from irviz.view.graph import label
from irviz.view.graph.layout import Route
from irviz.view.svg_primitives import add_tooltip, path_point, printable
from irviz.view.theme import Theme

_ARROW_WIDTH = 3.2


def draw_edge(
    parent: ElementTree.Element, edge: Edge, source: Node, route: Route, theme: Theme
) -> ElementTree.Element:
    """Draw an edge along its route; return the group."""
    kind = "edge" + " carried" * edge.is_carried + " other_copy" * edge.is_other
    kind += " write" * edge.is_write
    ends = {"class": kind, "data-source": str(edge.source), "data-target": str(edge.target)}
    group = ElementTree.SubElement(parent, "g", {k: printable(v) for k, v in ends.items()})
    title = f"{source.name or label.title(source)}: {source.type_label}"
    if edge.uses > 1:
        title += f"\n{edge.uses} uses"
    if edge.is_carried:
        title += "\nfrom each copy to the next"
    if edge.is_other:
        title += "\nof another copy than the one that is drawn"
    add_tooltip(group, title)
    start, *rest = route.points
    curve = f"M{path_point(start)}C{' '.join(map(path_point, rest))}"
    line = {"d": curve, "fill": "none", "stroke": theme.line, "stroke-width": "1.2"}
    if edge.is_carried or edge.is_other:
        line["stroke-dasharray"] = "2 3" if edge.is_carried else "7 4"
    if edge.is_write:
        line["stroke-width"] = "4.2"
    ElementTree.SubElement(group, "path", line)
    if edge.is_write:  # a double line
        inside = {**line, "class": "inside", "stroke": theme.background, "stroke-width": "1.8"}
        ElementTree.SubElement(group, "path", inside)
    arrow = {"class": "arrow", "d": _arrow(rest[-1], route.tip, edge), "fill": theme.line}
    ElementTree.SubElement(group, "path", arrow)
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
    across = (
        -(tip[1] - base[1]) / along * width,
        (tip[0] - base[0]) / along * width,
    )
    left = (base[0] + across[0], base[1] + across[1])
    right = (base[0] - across[0], base[1] - across[1])
    return f"M{path_point(left)}L{path_point(tip)}L{path_point(right)}Z"
