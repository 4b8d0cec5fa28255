"""A layout in rows, for graphs that Graphviz cannot lay out in time.

Nodes do not overlap, and a frame contains its own nodes only. Edges are not shortened and may cross
nodes. Its time grows with the nodes and edges, each times the frames around it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from irviz.model.graph.graph import grouped
from irviz.view.graph.edge_routes import route
from irviz.view.graph.layout import ClusterFrame, Layout, LayoutInput, Route
from irviz.view.graph.straight_ways import NODE_GAP, ROW_GAP
from irviz.view.svg_primitives import Point, Rect, Size

FRAME_MARGIN = 12.0
FRAME_TITLE_HEIGHT = 20.0
MIN_FRAME_WIDTH = 96.0
"""Wide enough for a title at the upper left, beside the edges to and from the middle."""

Box = str | tuple[str]
"""A node by its name, or a frame by its name in a tuple; that of the whole picture is ""."""
_WHOLE = ("",)


def layered_layout(given: LayoutInput) -> Layout:
    """Place nodes in rows, each after the nodes that it uses.

    The nodes are in the order of the text; edges against this order do not affect the rows.
    Clusters without a node are left out, as in Graphviz.
    """
    flow, sizes = given.flow, dict[Box, Size](given.sizes.items())
    frames = {(name,): ((outer,), nodes) for name, (outer, nodes) in given.frames.items()}
    parents: dict[Box, Box] = {
        node: frame for frame, (_, nodes) in frames.items() for node in nodes
    }
    parents |= {frame: outer for frame, (outer, _) in frames.items()}
    around: dict[str, list[Box]] = {}  # each node, after the frames around it
    order: dict[Box, int] = {}  # that of the last node: operands from outside come before it
    for number, name in enumerate(given.sizes):
        chain: list[Box] = [name]
        while chain[-1] != _WHOLE:
            chain.append(parents.get(chain[-1], _WHOLE))
        around[name] = chain[::-1]
        order.update(dict.fromkeys(chain, number))
    pairs = {pair for chain in around.values() for pair in pairwise(chain)}
    inside = grouped(sorted(pairs, key=lambda pair: order[pair[1]]))
    before: dict[Box, list[Box]] = {}
    for _, source, target, _ in given.edges:
        siblings = zip(around[source], around[target], strict=False)
        one, other = next((pair for pair in siblings if pair[0] != pair[1]), (source, source))
        if order[one] < order[other]:
            before.setdefault(other, []).append(one)
    children = grouped((outer, frame) for frame, (outer, _) in frames.items())
    framed = [_WHOLE]
    for frame in framed:  # grows while it is read
        framed += [one for one in children.get(frame, ()) if one in inside]
    places: dict[Box, Point] = {}  # upper left corners in the box around, where data flows down
    for frame in reversed(framed):
        rows = _rows(inside.get(frame, ()), before)
        is_framed = frame != _WHOLE
        sizes[frame] = _fill(rows, sizes, places, is_framed=is_framed, is_down=flow > 0)
    corners: dict[Box, Point] = {_WHOLE: (0.0, 0.0)}
    rects: dict[Box, Rect] = {}
    drawn: list[Box] = [*framed[1:], *given.sizes]
    for box in drawn:  # frames come before their contents
        (x, y), (left, top), size = places[box], corners[parents.get(box, _WHOLE)], sizes[box]
        x, y = corners[box] = (x + left, y + top)
        y = y if flow > 0 else sizes[_WHOLE].height - y - size.height
        rects[box] = Rect.at((x, y), *size)
    nodes = {name: rects[name] for name in given.sizes}
    outlines = {frame[0]: rects[frame] for frame in framed[1:]}
    routes = {
        name: route(nodes[source], nodes[target], entry, flow, nodes.values(), outlines.values())
        for name, source, target, entry in given.edges
    }
    return _at_origin(outlines, nodes, routes)


def _rows(boxes: Sequence[Box], before: Mapping[Box, Sequence[Box]]) -> list[list[Box]]:
    """Put each box into the row after its operands, and an input right before its first user."""
    rows: dict[Box, int] = {}
    users: dict[Box, int] = {}
    for box in boxes:
        rows[box] = 1 + max((rows[needed] for needed in before.get(box, ())), default=-1)
        for needed in before.get(box, ()):
            users[needed] = min(users.get(needed, rows[box]), rows[box])
    rows |= {box: users[box] - 1 for box in boxes if box in users and box not in before}
    return [row for _, row in sorted(grouped((rows[box], box) for box in boxes).items())]


def _fill(
    rows: Sequence[Sequence[Box]],
    sizes: Mapping[Box, Size],
    places: dict[Box, Point],
    *,
    is_framed: bool,
    is_down: bool,
) -> Size:
    """Place rows of boxes in the box around them, and return its size."""
    widths = [sum(sizes[one].width for one in row) + NODE_GAP * (len(row) - 1) for row in rows]
    heights = [max(sizes[one].height for one in row) for row in rows]
    content = max(widths, default=0.0)
    width = max(MIN_FRAME_WIDTH, content + 2 * FRAME_MARGIN) if is_framed else content
    above = FRAME_MARGIN * is_framed + FRAME_TITLE_HEIGHT * (is_framed and is_down)
    y = 0.0
    for row, row_width, height in zip(rows, widths, heights, strict=True):
        x = (content - row_width) / 2
        for one in row:
            down = y + (height - sizes[one].height) / 2
            places[one] = (x + (width - content) / 2, down + above)
            x += sizes[one].width + NODE_GAP
        y += height + ROW_GAP
    return Size(
        width,
        max(0.0, y - ROW_GAP) + (2 * FRAME_MARGIN + FRAME_TITLE_HEIGHT) * is_framed,
    )


def _at_origin(
    frames: Mapping[str, Rect], nodes: Mapping[str, Rect], routes: Mapping[str, Route]
) -> Layout:
    """Move everything to the origin: edges that lead back are outside the rows."""
    points = [point for route in routes.values() for point in (*route.points, route.tip)]
    for left, top, right, bottom in (*frames.values(), *nodes.values()):
        points += [(left, top), (right, bottom)]
    left, top = (min((point[axis] for point in points), default=0.0) for axis in (0, 1))
    right, bottom = (max((point[axis] for point in points), default=0.0) for axis in (0, 1))

    def move(point: Point) -> Point:
        return (point[0] - left, point[1] - top)

    def framed(rect: Rect) -> ClusterFrame:
        x, y = move((rect.left, rect.top))
        title = (x + MIN_FRAME_WIDTH / 2, y + FRAME_TITLE_HEIGHT / 2)
        return ClusterFrame(Rect.at((x, y), rect.width, rect.height), title)

    return Layout(
        right - left,
        bottom - top,
        {name: move(rect.centre) for name, rect in nodes.items()},
        {name: framed(rect) for name, rect in frames.items()},
        {name: Route(tuple(map(move, one.points)), move(one.tip)) for name, one in routes.items()},
    )
