"""What a picture of a graph must not say falsely, read from its SVG alone.

The boxes, frames and edges are those of the file; which node belongs into which frame, and which
edges there are, is told by the graph. Nothing of irviz's layout or drawing is used.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import combinations
from typing import NamedTuple
from xml.etree import ElementTree

from irviz.model.graph.graph import NodeKind, RegionKind, Resolution

_TOLERANCE = 1.5
_VALUE = 24.0
"""The height of the label between a box and the edges that leave it."""
_MOST_SLACK = 56.0
"""How far a frame may reach past its contents: its margin, its title and the label of a value."""
_MOST_EMPTY = 0.3
"""How much of a page may be empty at a side, for what another stage has there."""
_CHARACTER = 6.7
"""The width of a character of a title."""
_NUMBERS = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
_COMMAND = re.compile(r"([MLCHVhvlaZz])([^MLCHVhvlaZz]*)")


class Box(NamedTuple):
    """A rectangle, with y downwards."""

    left: float
    top: float
    right: float
    bottom: float

    def contains(self, other: Box) -> bool:
        t = _TOLERANCE
        across = self.left - t <= other.left and other.right <= self.right + t
        return across and self.top - t <= other.top and other.bottom <= self.bottom + t

    def overlaps(self, other: Box) -> bool:
        t = _TOLERANCE
        across = self.left + t < other.right and other.left + t < self.right
        return across and self.top + t < other.bottom and other.top + t < self.bottom

    def distance_to_border(self, point: tuple[float, float]) -> float:
        """Return how far a point is from the nearest side, inside or outside."""
        x, y = point
        outside = math.hypot(
            max(self.left - x, 0, x - self.right), max(self.top - y, 0, y - self.bottom)
        )
        inside = min(abs(x - self.left), abs(x - self.right), abs(y - self.top))
        return outside or min(inside, abs(y - self.bottom))


class DrawnEdge(NamedTuple):
    """An edge of a picture: its ends by name, and its line with the arrow."""

    source: str
    target: str
    points: list[tuple[float, float]]
    tip: tuple[float, float]


class Picture(NamedTuple):
    """What a picture shows, in one system of coordinates."""

    page: Box
    nodes: list[tuple[str, Box]]
    frames: list[tuple[str, Box]]
    titles: list[tuple[str, float, float]]
    labels: list[tuple[str, Box]]
    edges: list[DrawnEdge]


def read_picture(svg: str) -> Picture:
    """Read the boxes, frames, titles and edges of an SVG file."""
    root = ElementTree.fromstring(svg)
    left, top, width, height = map(float, root.get("viewBox").split())
    found = Picture(Box(left, top, left + width, top + height), [], [], [], [], [])
    _read(root, (0.0, 0.0), found)
    return found


def _read(parent, shift, found):
    for group in parent:
        if group.tag.rpartition("}")[2] != "g":
            continue
        kind, *rest = group.get("class", "").split() or [""]
        moved = [float(one) for one in _NUMBERS.findall(group.get("transform", "0 0"))]
        here = (shift[0] + moved[0], shift[1] + moved[1])
        parts = {part.get("class", ""): part for part in group}
        if kind == "node":
            name = group.get("data-node", "return")
            found.nodes.append((name, _box(parts["shape"], here)))
        elif kind == "block":
            found.frames.append((rest[0], _box(group[0], here)))
        elif kind == "value":
            found.labels.append((group.get("data-node"), _text_box(_first(group, "text"), here)))
        elif kind == "title":
            text = _first(group, "text")
            x, y = float(text.get("x")) + here[0], float(text.get("y")) + here[1]
            found.titles.append((text.text, x, y))
        elif kind == "edge":
            line = _points(_first(group, "path").get("d"), here)
            tip = _points(parts["arrow"].get("d"), here)[1]
            ends = group.get("data-source"), group.get("data-target")
            found.edges.append(DrawnEdge(*ends, line, tip))
        else:
            _read(group, here, found)


def _first(group, tag):
    return next(part for part in group if part.tag.rpartition("}")[2] == tag)


def _text_box(text, shift):
    x, y = float(text.get("x")) + shift[0], float(text.get("y")) + shift[1]
    half = _CHARACTER * len(text.text) / 2
    return Box(x - half, y - 9, x + half, y)


def _box(shape, shift):
    if shape.tag.endswith("circle"):
        x, y, r = (float(shape.get(key)) for key in ("cx", "cy", "r"))
        box = (x - r, y - r, x + r, y + r)
    elif shape.tag.endswith("path"):
        points = _points(shape.get("d"), (0.0, 0.0))
        xs, ys = zip(*points, strict=True)
        box = (min(xs), min(ys), max(xs), max(ys))
    else:
        x, y, width, height = (float(shape.get(key)) for key in ("x", "y", "width", "height"))
        box = (x, y, x + width, y + height)
    return Box(box[0] + shift[0], box[1] + shift[1], box[2] + shift[0], box[3] + shift[1])


def _points(text, shift):
    """Return the points that a path names, control points included."""
    x, y = shift
    found = []
    for command, rest in _COMMAND.findall(text):
        numbers = [float(one) for one in _NUMBERS.findall(rest)]
        if command in "MLC":
            for index in range(0, len(numbers), 2):
                x, y = numbers[index] + shift[0], numbers[index + 1] + shift[1]
                found.append((x, y))
            continue
        if command == "h":
            x += numbers[0]
        elif command == "v":
            y += numbers[0]
        elif command == "l":
            x, y = x + numbers[0], y + numbers[1]
        found.append((x, y))
    return found


def violations(svg: str, graph, beside: str = "") -> list[tuple[str, ...]]:
    """Return what is false in the picture of a graph whose data flows upwards, by kind.

    `beside` is the picture that it is compared with. Both have their common parts in the same
    places, so that a place where one has nothing tells that only the other has something there:
    only what both leave empty is empty.
    """
    picture = read_picture(svg)
    parts = _parts(picture)
    other = _parts(read_picture(beside)) if beside else []
    found = [*_boxes(picture, graph), *_frames(picture, graph), *_edges(picture, graph)]
    found += [*_crossings(picture), *_flow(picture, graph)]
    return [*found, *_cut_off(picture, parts), *_empty_sides(picture, [*parts, *other])]


def _boxes(picture, graph):
    """Yield nodes without a box of their own, boxes without a node, and boxes that overlap."""
    drawn = Counter(name for name, _ in picture.nodes)
    wanted = Counter([*(str(node.id) for node in graph.nodes), *["return"] * bool(graph.outputs)])
    for name in drawn.keys() | wanted.keys():
        if drawn[name] != wanted[name]:
            yield "box missing or double", name
    for (one, box), (two, other) in combinations(picture.nodes, 2):
        if box.overlaps(other):
            yield "boxes overlap", one, two


def _around(graph, region):
    while region is not None:
        yield region
        region = graph.regions[region].parent


def _members(graph):
    """Return the nodes inside of each region that has any and a frame, by its index."""
    found = {}
    for node in graph.nodes:
        for region in _around(graph, node.region):
            if graph.regions[region].kind is not RegionKind.BINDING_BLOCK:
                found.setdefault(region, set()).add(str(node.id))
    return {at: inside for at, inside in found.items() if not _is_one_call(graph, at, inside)}


def _is_one_call(graph, region, inside):
    """Tell whether a region is a layer that is drawn as the only call in it."""
    if graph.regions[region].kind is not RegionKind.LAYER or len(inside) != 1:
        return False
    (only,) = (node for node in graph.nodes if str(node.id) in inside)
    is_call = bool(only.callee) and only.kind is not NodeKind.GROUP
    return is_call and only.region == region and only.resolution is not Resolution.FUNCTION


def _frames(picture, graph):
    """Yield frames that hold other nodes than they should, or cut one, or reach past them.

    No block binds a constant, so it may stand outside, but not in a frame that it is not in.
    """
    boxes, members = dict(picture.nodes), _members(graph)
    constants = {str(node.id) for node in graph.nodes if node.kind is NodeKind.CONSTANT}
    left = [(graph.regions[at].kind.value, inside) for at, inside in members.items()]
    left = [(kind, inside) for kind, inside in left if inside - constants]
    for kind, frame in picture.frames:
        inside = {name for name, box in boxes.items() if frame.contains(box)}
        for name, box in boxes.items():
            if frame.overlaps(box) and not frame.contains(box) and not box.contains(frame):
                yield "frame cuts a box", kind, name
        yield from _slack(picture, kind, frame, inside)
        alike = ((kind, all_of) for all_of in _of_kind(members, graph, kind))
        fitting = [one for one in alike if inside <= one[1] and one[1] - constants <= inside]
        if not fitting:
            yield "frame with other nodes", kind, *sorted(inside)[:3]
        elif fitting[0] in left:
            left.remove(fitting[0])
    for kind, inside in left:
        yield "frame without its members", kind, *sorted(inside)[:3]
    for (_, one), (_, two) in combinations(picture.frames, 2):
        if one.overlaps(two) and not one.contains(two) and not two.contains(one):
            yield "frames cross", str(one), str(two)
    if len(picture.titles) != len(picture.frames):
        yield "titles", f"{len(picture.titles)} of {len(picture.frames)} frames"


def _of_kind(members, graph, kind):
    """Return what is inside of each region of a kind."""
    return [inside for at, inside in members.items() if graph.regions[at].kind.value == kind]


def _slack(picture, kind, frame, inside):
    """Yield how far a frame reaches past its boxes, edges and title.

    A frame that is no wider than its title needs has no space to spare, wherever below the title
    its boxes stand.
    """
    parts = [box for name, box in (*picture.nodes, *picture.labels) if name in inside]
    parts += [one for _, one in picture.frames if one != frame and frame.contains(one)]
    xs = [x for box in parts for x in (box.left, box.right)]
    ys = [y for box in parts for y in (box.top, box.bottom)]
    for edge in picture.edges:
        if edge.source in inside or edge.target in inside:
            xs += [x for x, _ in edge.points if frame.left <= x <= frame.right]
            ys += [y for _, y in edge.points if frame.top <= y <= frame.bottom]
    spare = frame.right - frame.left
    for text, x, y in picture.titles:
        if abs(x - frame.left - 9) < 1 and frame.top < y < frame.bottom:
            xs.append(x + _CHARACTER * len(text))
            spare = min(spare, frame.right - frame.left - _CHARACTER * len(text))
    if not xs:
        yield "empty frame", kind
        return
    past = (
        min(spare, max(min(xs) - frame.left, frame.right - max(xs))),
        *(min(ys) - frame.top, frame.bottom - max(ys)),
    )
    if max(past) > _MOST_SLACK + _TOLERANCE:
        yield "frame reaches past its members", kind, f"{max(past):.0f} px"


def _edges(picture, graph):
    """Yield edges that are not there, or do not lead from their source to their target."""
    boxes = dict(picture.nodes)
    wanted = Counter((str(edge.source), str(edge.target)) for edge in graph.edges)
    wanted += Counter((str(one), "return") for one in graph.outputs)
    drawn = Counter((edge.source, edge.target) for edge in picture.edges)
    for ends in drawn.keys() | wanted.keys():
        if drawn[ends] != wanted[ends]:
            yield "edge missing or double", *ends
    for edge in picture.edges:
        if edge.source not in boxes or edge.target not in boxes:
            continue
        source, target = boxes[edge.source], boxes[edge.target]
        x, y = edge.points[0]
        outlet = source._replace(top=source.top - _VALUE, bottom=source.top + 1)
        if not outlet.contains(Box(x, y, x, y)):
            yield "edge does not begin at its source", edge.source, edge.target
        if target.distance_to_border(edge.tip) > 2:
            yield "edge does not end at its target", edge.source, edge.target
        if math.dist(edge.points[-1], edge.tip) > 10:
            yield "arrow apart from its line", edge.source, edge.target


def _flow(picture, graph):
    """Yield edges that lead against the flow, though the graph has no cycle there."""
    boxes = dict(picture.nodes)
    back = {
        (edge.source, edge.target)
        for edge in graph.edges
        if edge.is_carried or graph.index[edge.source] >= graph.index[edge.target]
    }
    for edge in picture.edges:
        if (edge.source, edge.target) in back or not {edge.source, edge.target} <= boxes.keys():
            continue
        if boxes[edge.source].top + _TOLERANCE < edge.tip[1]:
            yield "edge against the flow", edge.source, edge.target


def _crossings(picture):
    """Yield edges whose line leads through the box of a node that is neither of their ends."""
    for edge in picture.edges:
        for name, box in picture.nodes:
            inner = Box(box.left + 3, box.top + 3, box.right - 3, box.bottom - 3)
            if name not in (edge.source, edge.target) and any(
                inner.contains(Box(x, y, x, y)) for x, y in _along(edge.points)
            ):
                yield "edge crosses a box", edge.source, edge.target, name


def _parts(picture):
    """Return the extents of everything that a picture shows."""
    parts = [box for _, box in (*picture.nodes, *picture.frames, *picture.labels)]
    return parts + [
        Box(x, y, x, y) for edge in picture.edges for x, y in (*_along(edge.points), edge.tip)
    ]


def _cut_off(picture, parts):
    """Yield what is drawn beyond the page."""
    beyond = sum(not picture.page.contains(one) for one in parts)
    if beyond:
        yield "cut off", f"{beyond} parts"


def _empty_sides(picture, parts):
    """Yield the sides at which a page is empty."""
    page = picture.page
    spare = (
        *(min(one.left for one in parts) - page.left, page.right - max(one.right for one in parts)),
        *(min(one.top for one in parts) - page.top, page.bottom - max(one.bottom for one in parts)),
    )
    sizes = page.right - page.left, page.bottom - page.top
    for at, space in enumerate(spare):
        if space > max(_MOST_SLACK, _MOST_EMPTY * sizes[at // 2]):
            yield "page empty at a side", f"{space:.0f} of {sizes[at // 2]:.0f} px"


def _along(points):
    """Yield points on a line of cubic curves."""
    for index in range(0, len(points) - 3, 3):
        a, b, c, d = points[index : index + 4]
        for step in range(9):
            t = step / 8
            weights = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
            parts = list(zip(weights, (a, b, c, d), strict=True))
            yield tuple(sum(w * point[axis] for w, point in parts) for axis in (0, 1))
