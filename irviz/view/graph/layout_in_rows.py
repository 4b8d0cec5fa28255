"""A layout in rows, for graphs that Graphviz cannot lay out in time.

Nodes do not overlap, and a frame contains its own nodes only. Edges are not shortened and may cross
nodes. It takes linear time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from irviz.view.graph.layout import (
    NODE_GAP,
    ROW_GAP,
    ClusterFrame,
    Layout,
    LayoutInput,
    Route,
    route,
)
from irviz.view.svg_primitives import Point, Rect, Size

FRAME_MARGIN = 12.0
FRAME_TITLE_HEIGHT = 20.0
MIN_FRAME_WIDTH = 96.0
"""Wide enough for a title at the upper left, beside the edges to and from the middle."""


@dataclass(eq=False, slots=True)
class _Box:
    """A node, a cluster or the whole picture, by its upper left corner.

    Until everything is placed, the corner is relative to the parent's, and data flows downwards.
    """

    parent: _Box | None = None
    width: float = 0.0
    height: float = 0.0
    x: float = 0.0
    y: float = 0.0
    depth: int = 0
    order: int = -1
    row: int = 0
    inside: list[_Box] = field(default_factory=list)
    before: list[_Box] = field(default_factory=list)

    def rect(self, turned_at: float | None) -> Rect:
        """Return the box's rectangle in a picture of this height, flipped vertically."""
        top = self.y if turned_at is None else turned_at - self.y - self.height
        return Rect.at((self.x, top), self.width, self.height)


def layered_layout(given: LayoutInput) -> Layout:
    """Place nodes in rows, each after the nodes that it uses.

    The nodes are in the order of the text; edges against this order do not affect the rows.
    Clusters without a node are left out, as in Graphviz.
    """
    sizes, edges, frames, flow = given
    whole = _Box()
    framed, nodes = _nest(whole, sizes, frames)
    for _, source, target, _ in edges:
        _link(nodes[source], nodes[target])
    title_above = FRAME_TITLE_HEIGHT if flow > 0 else 0.0
    for frame in reversed(framed.values()):
        _fill(frame)
        _surround(frame, title_above)
    _fill(whole)
    for box in [*framed.values(), *nodes.values()]:  # parents come before their contents
        assert box.parent is not None
        box.x += box.parent.x
        box.y += box.parent.y
    turned_at = whole.height if flow < 0 else None
    rects = {name: box.rect(turned_at) for name, box in nodes.items()}
    routes = {
        name: route(rects[source], rects[target], entry, flow, rects.values())
        for name, source, target, entry in edges
    }
    return _at_origin({n: box.rect(turned_at) for n, box in framed.items()}, rects, routes)


def _nest(
    whole: _Box, sizes: Mapping[str, Size], frames: Mapping[str, tuple[str, Sequence[str]]]
) -> tuple[dict[str, _Box], dict[str, _Box]]:
    """Return the clusters that contain a node, outer ones first, and the nodes."""
    children: dict[str, list[str]] = {"": []}
    for name, (parent, _) in frames.items():
        children.setdefault(parent, []).append(name)
    boxes = {"": whole}
    names = list(children[""])
    for name in names:  # grows while it is read
        outer = boxes[frames[name][0]]
        boxes[name] = _Box(outer, depth=outer.depth + 1)
        names += children.get(name, ())
    owners = {node: boxes[name] for name in names for node in frames[name][1]}
    nodes: dict[str, _Box] = {}
    for order, (name, size) in enumerate(sizes.items()):
        owner = owners.get(name, whole)
        nodes[name] = _Box(owner, size.width, size.height, depth=owner.depth + 1, order=order)
        owner.inside.append(nodes[name])
        owner.order = order
    for name in reversed(names):
        box = boxes[name]
        if box.inside and box.parent is not None:
            box.parent.inside.append(box)
            # the last node's order: the operands from outside usually come before it
            box.parent.order = max(box.parent.order, box.order)
    return {name: boxes[name] for name in names if boxes[name].inside}, nodes


def _link(source: _Box, target: _Box) -> None:
    """Record an edge between the boxes around its ends that have the same parent."""
    while source.parent is not target.parent:
        deeper = max(source.depth, target.depth)
        if source.depth == deeper:
            assert source.parent is not None
            source = source.parent
        if target.depth == deeper:
            assert target.parent is not None
            target = target.parent
    if source.order < target.order:
        target.before.append(source)


def _fill(box: _Box) -> None:
    """Place the contents of a box in rows, and set its size."""
    rows = _rows(sorted(box.inside, key=lambda inner: inner.order))
    widths = [sum(inner.width for inner in row) + NODE_GAP * (len(row) - 1) for row in rows]
    box.width = max(widths, default=0.0)
    y = 0.0
    for row, width in zip(rows, widths, strict=True):
        x = (box.width - width) / 2
        height = max(inner.height for inner in row)
        for inner in row:
            inner.x, inner.y = x, y + (height - inner.height) / 2
            x += inner.width + NODE_GAP
        y += height + ROW_GAP
    box.height = max(0.0, y - ROW_GAP)


def _rows(boxes: Sequence[_Box]) -> list[list[_Box]]:
    """Put each box into the row after its operands, and an input right before its first user."""
    users: dict[_Box, int] = {}
    for box in boxes:
        box.row = 1 + max((needed.row for needed in box.before), default=-1)
        for needed in box.before:
            users[needed] = min(users.get(needed, box.row), box.row)
    for box in boxes:
        if not box.before and box in users:
            box.row = users[box] - 1
    rows: list[list[_Box]] = [[] for _ in range(1 + max((box.row for box in boxes), default=-1))]
    for box in boxes:
        rows[box.row].append(box)
    return rows


def _surround(frame: _Box, title_above: float) -> None:
    """Add the margin and the title to the size of a cluster."""
    width = max(MIN_FRAME_WIDTH, frame.width + 2 * FRAME_MARGIN)
    for inner in frame.inside:
        inner.x += (width - frame.width) / 2
        inner.y += FRAME_MARGIN + title_above
    frame.width = width
    frame.height += 2 * FRAME_MARGIN + FRAME_TITLE_HEIGHT


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
