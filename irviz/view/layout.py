"""DOT -> places, within a time: runs the layout engine and reads its answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from irviz.view.engine import run_dot

BUDGET = 3.0
"""How long a layout may take, in seconds: 2,000 nodes take about half of it."""
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame by its corner nearest the origin and the centre of its label, in px, y downwards."""

    x: float
    y: float
    width: float
    height: float
    label: Point


@dataclass(frozen=True, slots=True)
class Route:
    """An edge's cubic Bézier curve (3n + 1 points) and the tip of its arrow."""

    points: tuple[Point, ...]
    tip: Point


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything is: nodes by their centres, frames by name, edges by their ids in DOT.

    A frame comes behind those that it stands in, as it has to be drawn over them.
    """

    width: float
    height: float
    nodes: dict[str, Point]
    frames: dict[str, Frame]
    routes: dict[str, Route]


def lay_out(dot: str, seconds: float = BUDGET) -> Layout | None:
    """Place the nodes and edges of a DOT text with Graphviz's dot engine.

    Returns None when that takes longer than `seconds`, or ends the engine; the text is then to
    be laid out in a plainer way. Raises ValueError for a text that is no DOT.
    """
    answer = run_dot(dot, seconds)
    if answer is None:
        return None
    placed = json.loads(answer)
    _, _, width, height = _numbers(placed["bb"])
    nodes: dict[str, Point] = {}
    frames: dict[str, Frame] = {}
    for item in placed.get("objects", ()):  # Graphviz writes a cluster before those inside it
        if "bb" in item:
            frames[item["name"]] = _frame(item, height)
        elif "pos" in item:
            x, y = _numbers(item["pos"])
            nodes[item["name"]] = (x, height - y)
    routes = {edge["id"]: _route(edge["pos"], height) for edge in placed.get("edges", ())}
    return Layout(width, height, nodes, frames, routes)


def _frame(item: Mapping[str, str], height: float) -> Frame:
    """Read a cluster; one without a label gets the middle of its upper edge for its centre."""
    left, bottom, right, top = _numbers(item["bb"])
    x, y = _numbers(item["lp"]) if "lp" in item else ((left + right) / 2, top)
    return Frame(left, height - top, right - left, top - bottom, (x, height - y))


def _route(text: str, height: float) -> Route:
    """Read Graphviz's `e,x,y x,y …` (the tip first, then the curve)."""
    tip: Point | None = None
    points: list[Point] = []
    for word in text.split():
        mark, _, rest = word.partition(",")
        x, y = _numbers(rest if mark == "e" else word)
        if mark == "e":
            tip = (x, height - y)
        else:
            points.append((x, height - y))
    return Route(tuple(points), tip or points[-1])


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(number) for number in text.split(","))
