"""Divide the steps of a tall frame into columns, so that a picture fits on a screen.

A frame is divided where a single edge crosses. That edge leaves the last step of a column, runs
through the gap, and enters the first step of the next. If there is no such place, a few edges may
bypass that step, as a residual connection does.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice, pairwise, product

from irviz.model.graph.graph import INPUT_KINDS, OUTPUT, Graph, Node, NodeId
from irviz.view.geometry import Point, Rect, Size
from irviz.view.graph.graphviz_layout import Layout, Route
from irviz.view.graph.nodes_and_edges import cluster_contents

SCREENS = (Size(1002.0, 921.0), Size(1588.0, 1141.0))
"""The largest layouts that are readable without zooming on the explorer's page at 1440×900 and
1920×1080 px.

Their text is then 9 px high.
"""
MARGIN = 16.0
"""The space around the steps of a column, for the edges that lead from column to column."""
_TO_END = 2.0
"""The distance between such an edge and the end of a column."""
_ARROW, _RADIUS = 7.0, 8.0
_MAX_COLUMNS = 3
_MAX_CROSSING = 4
"""The most edges between two columns."""
_MAX_TRIES = 4
_MAX_SHARE = 0.75
"""The largest height of a column, as a fraction of what is divided."""

Item = Node | int
"""A node or the index of a cluster, as in `cluster_contents`."""


@dataclass(frozen=True)
class Columns:
    """The assignment of a frame's contents to columns.

    Attributes:
        region: The region of the frame, None for the whole graph.
        items: The nodes and clusters of each column.
        column_of: The column of each node, also of those inside of clusters.
        turns: The edge that leads from each column to the next, by its index.
        between: All edges between columns; the layout engine routes those that are not turns.
        users: The DOT names of the nodes after all columns that use values of the frame.
    """

    region: int | None
    items: Sequence[Sequence[Item]]
    column_of: Mapping[NodeId, int]
    turns: Sequence[int]
    between: Collection[int]
    users: Sequence[str]


def column_name(column: int) -> str:
    """Return the name in DOT of the cluster of a column."""
    return f"cluster_column{column}"


def scale_on_screens(layout: Layout) -> float:
    """Return the scale at which all of a layout is visible; at 1 it is readable."""
    scales = (min(one.width / layout.width, one.height / layout.height, 1.0) for one in SCREENS)
    return math.prod(scales)


def possible_columns(graph: Graph, layout: Layout, direction: str) -> Iterator[Columns]:
    """Yield a few divisions into columns that may make a tall layout fit the screen."""
    room = SCREENS[0].height
    if layout.height <= room:
        return
    contents = cluster_contents(graph)
    heights: dict[int | None, float] = {
        region: layout.frames[f"cluster_{region}"].rect.height
        for region in contents
        if region is not None
    }
    heights[None] = layout.height
    regions = sorted(contents, key=lambda one: -heights[one])
    ways = product((1, _MAX_CROSSING), regions, range(2, _MAX_COLUMNS + 1))
    possible = (
        _divide(graph, layout, region, contents, count, crossing, direction)
        for crossing, region, count in ways
        if heights[region] > room / 2
    )
    yield from islice(filter(None, possible), _MAX_TRIES)


def _divide(
    graph: Graph,
    layout: Layout,
    region: int | None,
    contents: Mapping[int | None, Sequence[Item]],
    count: int,
    most_crossing: int,
    direction: str,
) -> Columns | None:
    """Divide a frame into columns of about equal height; return None if impossible.

    At most `most_crossing` edges lie between two columns. An input is in the column that first uses
    it.
    """
    # a frame comes where its last node does: its weights may come before all other nodes
    items = sorted(contents[region], key=lambda item: _last(graph, contents, item))
    nodes = [_nodes(contents, item) for item in items]
    item_of = {node.id: at for at, inside in enumerate(nodes) for node in inside}
    first_use = [-1 if _is_input(item) else at for at, item in enumerate(items)]
    crossing: list[list[int]] = [[] for _ in items]
    users = {OUTPUT: None} if any(one in item_of for one in graph.outputs) else {}
    for number, edge in enumerate(graph.edges):
        if edge.source not in item_of or edge.is_carried:
            continue
        source, target = item_of[edge.source], item_of.get(edge.target)
        if target is None:
            users[NodeId(f"n{graph.index[edge.target]}")] = None
        elif _is_input(items[source]):
            known = first_use[source]
            first_use[source] = target if known < 0 else min(known, target)
        else:
            for at in range(source + 1, target + 1):
                crossing[at].append(number)
    cuts = {}
    for at, edges in enumerate(crossing):
        turn = [one for one in edges if item_of[graph.edges[one].source] == at - 1]
        if turn and len(edges) <= most_crossing:
            cuts[at] = min(turn, key=lambda one: item_of[graph.edges[one].target])
    height = {node: layout.nodes[f"n{graph.index[node]}"][1] for node in item_of}
    begin, end = sorted((min(height.values()), max(height.values())), reverse=direction == "up")

    def tallest(chosen: Sequence[int]) -> float:
        places = [height[graph.edges[cuts[at]].source] for at in chosen]
        return max(abs(b - a) for a, b in pairwise((begin, *places, end)))

    ends = {at: item_of[graph.edges[turn].target] for at, turn in cuts.items()}
    possible = (  # a turn ends in the next column
        one
        for one in combinations(cuts, count - 1)
        if all(ends[at] < after for at, after in pairwise(one))
    )
    chosen = min(possible, key=tallest, default=None)
    if chosen is None or tallest(chosen) > _MAX_SHARE * abs(end - begin):
        return None
    parts = [range(*bounds) for bounds in pairwise((0, *chosen, len(items)))]
    columns = [
        [at for at, first in enumerate(first_use) if max(first, 0) in part] for part in parts
    ]
    column_of = {
        node.id: column
        for column, found in enumerate(columns)
        for at in found
        for node in nodes[at]
    }
    return Columns(
        region,
        [[items[at] for at in one] for one in columns],
        column_of,
        turns=[cuts[at] for at in chosen],
        between={one for at in chosen for one in crossing[at]},
        users=list(users),
    )


def _nodes(contents: Mapping[int | None, Sequence[Item]], item: Item) -> list[Node]:
    if isinstance(item, Node):
        return [item]
    return [node for inner in contents[item] for node in _nodes(contents, inner)]


def _last(graph: Graph, contents: Mapping[int | None, Sequence[Item]], item: Item) -> int:
    return max(graph.index[node.id] for node in _nodes(contents, item))


def _is_input(item: Item) -> bool:
    return isinstance(item, Node) and item.kind in INPUT_KINDS


def with_turns(
    layout: Layout,
    columns: Columns,
    sizes: Mapping[str, Size],
    edges: Sequence[tuple[str, str, str, float]],
    direction: str,
) -> Layout | None:
    """Route the edges between columns, and remove the clusters of the columns.

    Returns None if such an edge would cross a node.
    """
    flow = 1.0 if direction == "down" else -1.0
    boxes = {name: Rect.around(centre, sizes[name]) for name, centre in layout.nodes.items()}
    frames, routes = dict(layout.frames), dict(layout.routes)
    rects = [frames.pop(column_name(column)).rect for column in range(len(columns.items))]
    for turn, (one, other) in zip(columns.turns, pairwise(rects), strict=True):
        name, source, target, entry = edges[turn]
        first, last = boxes[source], boxes[target]
        start = (first.centre[0], first.bottom if flow > 0 else first.top)
        tip = (last.left + entry * last.width, last.top if flow > 0 else last.bottom)
        leaving = (one.bottom if flow > 0 else one.top) - flow * _TO_END
        entering = (other.top if flow > 0 else other.bottom) + flow * _TO_END
        gap = (max(one.left, other.left) + min(one.right, other.right)) / 2
        corners = ((start[0], leaving), (gap, leaving), (gap, entering), (tip[0], entering))
        lines = [*pairwise((start, *corners, tip))]
        others = [box for node, box in boxes.items() if node not in (source, target)]
        if any(_around(*line).overlaps(box) for line in lines for box in others):
            return None
        base = (tip[0], tip[1] - flow * _ARROW)
        routes[name] = Route(_rounded((start, *corners, base)), tip)
    return replace(layout, frames=frames, routes=routes)


def _around(start: Point, end: Point) -> Rect:
    """Return the rectangle around a horizontal or vertical line."""
    (left, right), (top, bottom) = sorted((start[0], end[0])), sorted((start[1], end[1]))
    return Rect(left - 1, top - 1, right + 1, bottom + 1)


def _rounded(points: Sequence[Point]) -> tuple[Point, ...]:
    """Return the Bézier curve along horizontal and vertical lines with rounded corners."""
    curve = [points[0]]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        into, out = _towards(corner, before), _towards(corner, after)
        curve += [curve[-1], into, into, corner, corner, out]
    return (*curve, curve[-1], points[-1], points[-1])


def _towards(corner: Point, end: Point) -> Point:
    """Return where the rounding of a corner begins on the line to an end."""
    (x, y), length = corner, math.dist(corner, end)
    part = min(_RADIUS, length / 2) / length if length else 0.0
    return (x + (end[0] - x) * part, y + (end[1] - y) * part)
