"""Sizes -> places in rows: the layout for a graph that takes the layout engine too long.

It keeps a layout's promises (no two boxes meet, a frame holds its nodes and nothing else), but
does not look for short edges, and an edge may cross a box. Its time grows with the graph's size.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from irviz.view.layout import Frame, Layout, Point, Route

NODE_GAP, ROW_GAP = 18.0, 36.0
FRAME_MARGIN = 12.0
FRAME_TITLE_HEIGHT = 20.0
LEAST_FRAME_WIDTH = 96.0
"""Room for a frame's title, at the upper left: edges to and from the rows keep to the middle."""
_ARROW = 7.0


class Size(Protocol):
    """Anything with a width and a height."""

    @property
    def width(self) -> float:
        """Return the width in px."""

    @property
    def height(self) -> float:
        """Return the height in px."""


@dataclass(eq=False, slots=True)
class _Box:
    """A node, a frame or the whole picture, by its corner nearest the origin.

    While it is placed, the corner is counted from its parent's and data flows downwards.
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

    def centre(self) -> Point:
        return (self.x + self.width / 2, self.y + self.height / 2)


def plain(
    sizes: Mapping[str, Size],
    edges: Sequence[tuple[str, str, str, float]],
    frames: Mapping[str, tuple[str, Sequence[str]]],
    direction: str = "up",
) -> Layout:
    """Place nodes in rows, each behind those that it takes values from, in the order of `sizes`.

    An edge is `(id, source, target, entry)`: it enters the target at that fraction of its width.
    One that leads back in the order has no say in the rows. A frame is `(parent, nodes)`: the
    name of the frame it stands in, or "", and the nodes in it that no frame inside it names.
    Frames without a node are left out, as Graphviz does. All lengths are in px.
    """
    whole = _Box()
    framed, nodes = _nest(whole, sizes, frames)
    for _, source, target, _ in edges:
        _link(nodes[source], nodes[target])
    title_above = FRAME_TITLE_HEIGHT if direction == "down" else 0.0
    for frame in reversed(framed.values()):
        _fill(frame)
        _surround(frame, title_above)
    _fill(whole)
    flow = 1.0 if direction == "down" else -1.0
    for box in [*framed.values(), *nodes.values()]:  # a parent's corner is known before
        assert box.parent is not None
        box.x += box.parent.x
        box.y += box.parent.y
    if flow < 0:
        for box in [*framed.values(), *nodes.values()]:
            box.y = whole.height - box.y - box.height
    routes = {
        name: _route(nodes[source], nodes[target], entry, flow)
        for name, source, target, entry in edges
    }
    return _at_origin(framed, nodes, routes)


def _nest(
    whole: _Box, sizes: Mapping[str, Size], frames: Mapping[str, tuple[str, Sequence[str]]]
) -> tuple[dict[str, _Box], dict[str, _Box]]:
    """Return the frames that hold a node, outer ones first, and the nodes, in their parents."""
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
            # the last node's: what the frame takes from outside usually stands before that
            box.parent.order = max(box.parent.order, box.order)
    return {name: boxes[name] for name in names if boxes[name].inside}, nodes


def _link(source: _Box, target: _Box) -> None:
    """Note an edge where it leads from one box to another in the same parent."""
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
    """Place what is inside a box, and give the box the size of that."""
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
    """Put each box into the row behind the last that it needs, and a source next to its user."""
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
    """Widen a frame around its contents: a margin, and the strip of its title."""
    width = max(LEAST_FRAME_WIDTH, frame.width + 2 * FRAME_MARGIN)
    for inner in frame.inside:
        inner.x += (width - frame.width) / 2
        inner.y += FRAME_MARGIN + title_above
    frame.width = width
    frame.height += 2 * FRAME_MARGIN + FRAME_TITLE_HEIGHT


def _route(source: _Box, target: _Box, entry: float, flow: float) -> Route:
    """Draw an edge that leaves and enters along the flow; one that leads back makes a bow."""
    start = (source.centre()[0], source.centre()[1] + flow * source.height / 2)
    tip = (target.x + entry * target.width, target.centre()[1] - flow * target.height / 2)
    end = (tip[0], tip[1] - flow * _ARROW)
    reach = flow * max((end[1] - start[1]) * flow, ROW_GAP) / 2
    return Route((start, (start[0], start[1] + reach), (end[0], end[1] - reach), end), tip)


def _at_origin(
    frames: Mapping[str, _Box], nodes: Mapping[str, _Box], routes: Mapping[str, Route]
) -> Layout:
    """Move everything so that it begins at 0, 0: edges that lead back pass outside the rows."""
    boxes = [*frames.values(), *nodes.values()]
    points = [point for route in routes.values() for point in (*route.points, route.tip)]
    points += [(box.x, box.y) for box in boxes]
    points += [(box.x + box.width, box.y + box.height) for box in boxes]
    left, right = _span(x for x, _ in points)
    top, bottom = _span(y for _, y in points)

    def move(point: Point) -> Point:
        return (point[0] - left, point[1] - top)

    return Layout(
        right - left,
        bottom - top,
        {name: move(box.centre()) for name, box in nodes.items()},
        {
            name: Frame(
                *move((box.x, box.y)),
                box.width,
                box.height,
                move((box.x + LEAST_FRAME_WIDTH / 2, box.y + FRAME_TITLE_HEIGHT / 2)),
            )
            for name, box in frames.items()
        },
        {
            name: Route(tuple(map(move, route.points)), move(route.tip))
            for name, route in routes.items()
        },
    )


def _span(values: Iterable[float]) -> tuple[float, float]:
    """Return the least and the greatest value, or zeros."""
    known = list(values)
    return min(known, default=0.0), max(known, default=0.0)
