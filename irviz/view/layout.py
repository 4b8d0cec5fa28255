"""DOT -> places: the only module that runs the layout engine."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pygraphviz

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
    """Where everything is: nodes by their centres, frames by name, edges by their ids in DOT."""

    width: float
    height: float
    nodes: dict[str, Point]
    frames: dict[str, Frame]
    routes: dict[str, Route]


def lay_out(dot: str) -> Layout:
    """Place the nodes and edges of a DOT text with Graphviz's dot engine, in this process."""
    graph = pygraphviz.AGraph(string=dot)
    try:
        placed = json.loads(graph.draw(format="json", prog="dot"))
    finally:
        graph.close()
    _, _, width, height = _numbers(placed["bb"])
    nodes: dict[str, Point] = {}
    frames: dict[str, Frame] = {}
    for item in placed.get("objects", ()):
        if "bb" in item:
            left, bottom, right, top = _numbers(item["bb"])
            label_x, label_y = _numbers(item["lp"])
            frames[item["name"]] = Frame(
                left, height - top, right - left, top - bottom, (label_x, height - label_y)
            )
        elif "pos" in item:
            x, y = _numbers(item["pos"])
            nodes[item["name"]] = (x, height - y)
    routes = {edge["id"]: _route(edge["pos"], height) for edge in placed.get("edges", ())}
    return Layout(width, height, nodes, frames, routes)


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
