"""Layouts: the positions of nodes, edges and clusters, computed by Graphviz from DOT.

The layout engine runs in its own worker, because a call cannot be interrupted.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import math
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from irviz.view.svg_primitives import Point, Rect
from irviz.worker.captured_output import captured_stderr
from irviz.worker.supervisor import Worker, WorkerError

_MAX_SECONDS = 86_400.0  # every timer accepts this
_TRIAL = 'digraph { a [label=<<TABLE><TR><TD PORT="p"></TD></TR></TABLE>>] b -> a:p }'


def run_dot(dot: str, seconds: float) -> str | None:
    """Lay out a DOT text with Graphviz's dot.

    Calls are serialised; the time limit of one starts when the engine is free.

    Returns:
        Graphviz's JSON, None if the time limit is exceeded, which stops the process, or if it
        crashes.

    Raises:
        ValueError: The text is not DOT; the message is Graphviz's.
        ImportError: pygraphviz cannot be loaded.
    """
    if not seconds > 0:
        return None
    limit = min(seconds, _MAX_SECONDS)
    try:
        return ENGINE.call(_draw, dot, limit, seconds=limit).decode()
    except WorkerError:
        return None


def _draw(dot: str, seconds: float) -> bytes:
    """Lay out a DOT text in the worker, which exits when the time is up.

    The limit also works if the parent is gone, and while C code holds the GIL.
    """
    try:
        import pygraphviz
    except ImportError as failure:
        raise ImportError(
            f"the layout engine cannot be loaded: {failure}; install pygraphviz again"
        ) from None
    faulthandler.dump_traceback_later(seconds, exit=True, file=2)
    try:
        with captured_stderr() as printed:
            graph = pygraphviz.AGraph(string=dot)
            try:
                return bytes(graph.draw(format="json", prog="dot"))
            finally:
                graph.close()
    except ValueError as failure:
        raise ValueError(
            f"Graphviz cannot lay out this DOT text: {printed.text or failure}"
        ) from None
    finally:
        faulthandler.cancel_dump_traceback_later()


def _load() -> None:
    """Load everything that the first layout needs, and leave Ctrl-C to the parent process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(ImportError):  # a layout raises it
        _draw(_TRIAL, _MAX_SECONDS)


# the parser may be in a bad state after an error
ENGINE = Worker(_load, start_seconds=30.0, ends_on_error=True)


# --- Layouts --------------------------------------------------------------------------------------


LAYOUT_SECONDS = 3.0
"""The default time limit of a layout; 2,000 nodes take about half of it."""


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


def lay_out(dot: str, seconds: float = LAYOUT_SECONDS) -> Layout | None:
    """Place the parts of a DOT text, which has an id for every edge, with Graphviz's dot.

    Returns None and raises as `run_dot` does, and raises ValueError as `read_layout` does. Layouts
    are cached, because many passes change no sizes and so give the same DOT text.
    """
    try:
        return _laid_out(dot, seconds)
    except _NoAnswerError:
        return None


class _NoAnswerError(Exception):
    """The engine gave no answer. It may the next time, and an exception is not cached."""


@lru_cache(maxsize=16)
def _laid_out(dot: str, seconds: float) -> Layout:
    answer = run_dot(dot, seconds)
    if answer is None:
        raise _NoAnswerError
    return read_layout(answer)


def without_mirrored_routes(
    layout: Layout,
    edges: Sequence[tuple[str, str, str, float]],
    direction: str = "up",
) -> Layout:
    """Remove routes that start at the side of a node where its operands enter.

    Where data flows upwards, Graphviz exchanges the sides of an edge between nodes of one rank.
    """
    routes = dict(layout.routes)
    for name, source, _, _ in edges:
        if name in routes:
            above = routes[name].points[0][1] < layout.nodes[source][1]
            if above == (direction == "down"):
                del routes[name]
    return replace(layout, routes=routes)


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
        elif "pos" in item:
            x, y = _numbers(item["pos"], 2)
            nodes[item["name"]] = (x, height - y)
    routes = {
        edge["id"]: route
        for edge in placed.get("edges", ())
        if (route := _route(edge.get("pos"), height)) is not None
    }
    return Layout(width, height, nodes, frames, routes)


def _frame(item: Mapping[str, str], height: float) -> ClusterFrame:
    """Read a cluster; if it has no label, use the middle of its upper side."""
    left, bottom, right, top = _numbers(item["bb"], 4)
    x, y = _numbers(item["lp"], 2) if "lp" in item else ((left + right) / 2, top)
    return ClusterFrame(Rect(left, height - top, right, height - bottom), (x, height - y))


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
