"""Layouts: the positions of nodes, edges and clusters by Graphviz, and better routes of edges."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
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
