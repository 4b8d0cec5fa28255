"""Layouts of several stages in which unchanged parts have the same position."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from irviz.model.diff.aligned_stage_graphs import SideGraph, SideGraphs, side_graphs
from irviz.model.diff.diff_result import ChangeKind, FunctionDiff
from irviz.model.diff.union_graph import union_graph
from irviz.model.folding.expansion import Expansion
from irviz.model.graph.graph import OUTPUT, Edge, Graph, Node, NodeId, RegionKind
from irviz.view.graph.change_marks import ChangeMark, SideChanges, reserved_width, side_marks
from irviz.view.graph.dot import layout_input
from irviz.view.graph.edge_routes import BETWEEN, TURN_AT_SOURCE, Routing, rounded
from irviz.view.graph.graph_figure import PlacedGraph, place_graph
from irviz.view.graph.layout import LAYOUT_SECONDS, ClusterFrame, Layout, Route
from irviz.view.graph.layout_in_rows import FRAME_MARGIN
from irviz.view.graph.nodes_and_edges import (
    VALUE_HEIGHT,
    cluster_contents,
    entries,
    layout_size,
    shape_size,
    title_space,
)
from irviz.view.graph.straight_ways import ARROW
from irviz.view.svg_primitives import Point, Rect, Size

Widths = Sequence[Mapping[NodeId, float]]
"""For each stage, the width of what is written inside of nodes beside their texts, in px."""


def place_sides(
    sides: SideGraphs, direction: str = "up", seconds: float = LAYOUT_SECONDS, widths: Widths = ()
) -> tuple[PlacedGraph, list[PlacedGraph]]:
    """Lay out the union graph of all stages, and derive that of each stage, in the same size.

    A node gets the largest size that it has in any stage. A node that others were fused into, or
    that was split, fills the frame around these, and edges to it end at the frame.
    """
    shapes: dict[NodeId, Size] = {}
    sizes: dict[NodeId, Size] = {}
    counts = entries(sides.union).counts
    widths = widths or [MappingProxyType({}) for _ in sides.sides]
    for side, more in zip(sides.sides, widths, strict=True):
        for one, place in side.places.items():
            node, cells = side.graph[one], counts[place]
            shape = shape_size(node, cells, more.get(one, 0.0))
            shapes[place] = _largest(shapes.get(place), shape)
            sizes[place] = _largest(sizes.get(place), layout_size(node, cells))
    for place, shape in shapes.items():
        shapes[place] = Size(math.ceil(shape.width), shape.height)  # a table of whole pixels
        size = sizes[place]
        sizes[place] = Size(max(size.width, shapes[place].width), size.height)
    placed = place_graph(sides.union, direction, seconds, sizes)
    rects = {
        f"n{index}": _shape(placed, node.id, shapes[node.id])
        for index, node in enumerate(sides.union.nodes)
        if not node.is_input  # whose sizes are their own in each stage
    }
    placed = placed._replace(layout=replace(placed.layout, shapes=rects))
    boxes = {place: _box(placed, place, size) for place, size in sizes.items()}
    every = frame_contents(placed.graph, boxes, placed.layout.routes)
    return placed, [_side(placed, side, shapes, sizes, every) for side in sides.sides]


def _largest(known: Size | None, size: Size) -> Size:
    width, height = known or (0.0, 0.0)
    return Size(max(width, size.width), max(height, size.height))


def _side(
    placed: PlacedGraph,
    side: SideGraph,
    shapes: Mapping[NodeId, Size],
    sizes: Mapping[NodeId, Size],
    every: FrameContents,
) -> PlacedGraph:
    """Return the layout of one stage; `every` is what the frames have of all stages."""
    direction, whole = placed.direction, placed.layout
    flow = 1.0 if direction == "down" else -1.0
    nodes: dict[str, Point] = {}
    rects: dict[str, Rect] = {}
    filled, entering = _filled_frames(placed, side, shapes, flow)
    for index, node in enumerate(side.graph.nodes):
        name = f"n{index}"
        if node.id in filled:
            rects[name] = filled[node.id]
            nodes[name] = _grown(rects[name], flow, VALUE_HEIGHT).centre
            continue
        place = side.places[node.id]
        nodes[name] = whole.nodes[f"n{placed.graph.index[place]}"]
        if not node.is_input:
            rects[name] = _shape(placed, place, shapes[place])
    if side.graph.outputs:
        nodes[OUTPUT] = whole.nodes[OUTPUT]
    union = placed.graph
    along = [*side.routes, *(len(union.edges) + union.outputs.index(n) for n in side.outputs)]
    ends = [*((one.source, one.target) for one in side.graph.edges)]
    ends += [(one, OUTPUT) for one in side.graph.outputs]
    routes = {
        f"e{index}": whole.routes[f"e{number}"]
        for index, (number, pair) in enumerate(zip(along, ends, strict=True))
        if number is not None and filled.keys().isdisjoint(pair)
    }
    routes |= entering
    boxes = {one: _box(placed, place, sizes[place]) for one, place in side.places.items()}
    boxes |= {one: _grown(rect, flow, VALUE_HEIGHT) for one, rect in filled.items()}
    own = frame_contents(side.graph, boxes, routes)
    frames = fitted_frames(side.graph, own, whole.frames, every)
    layout = Layout(whole.width, whole.height, nodes, frames, routes, rects)
    if len(routes) < len(along):
        given = layout_input(side.graph, direction)
        known = {name: Size(rect.width, rect.height + VALUE_HEIGHT) for name, rect in rects.items()}
        routing = Routing(layout, given._replace(sizes={**given.sizes, **known}))
        routing.use_lanes(kept=routes.keys())
        routing.go_around_boxes()
        layout = routing.layout()
    return PlacedGraph(side.graph, direction, placed.dot, layout, placed.note)


def _box(placed: PlacedGraph, place: NodeId, size: Size) -> Rect:
    """Return the rectangle of a node with the label of its value."""
    return Rect.around(placed.layout.nodes[f"n{placed.graph.index[place]}"], size)


def _shape(placed: PlacedGraph, place: NodeId, size: Size) -> Rect:
    """Return the rectangle of a shape of this size, without the value's label, at a position."""
    x, y = placed.layout.nodes[f"n{placed.graph.index[place]}"]
    flow = 1.0 if placed.direction == "down" else -1.0
    return Rect.around((x, y - flow * VALUE_HEIGHT / 2), size)


_MOST_HEIGHT = 140.0
"""The most height of a frame for each node in it, in px: beyond it, others are between them."""


def _filled_frames(
    placed: PlacedGraph, side: SideGraph, shapes: Mapping[NodeId, Size], flow: float
) -> tuple[dict[NodeId, Rect], dict[str, Route]]:
    """Return the shape of each node in the place of a frame: the frame's, or its last node's.

    The latter stands where others are between the nodes, or where an edge would lead back. From
    nodes beside a frame edges enter it at that side; these routes are returned, too.
    """
    found: dict[NodeId, Rect] = {}
    last: dict[NodeId, Rect] = {}
    for one, region in side.frames.items():
        frame = placed.layout.frames[f"cluster_{region}"].rect
        found[one] = _grown(frame, flow, -FRAME_MARGIN - VALUE_HEIGHT)  # without the value's label
        parts = [node.id for node in placed.graph.nodes if node.region == region]
        inside = [_shape(placed, part, shapes[part]) for part in parts] or [found[one]]
        last[one] = max(inside, key=lambda rect: flow * rect.top)
        if found[one].height > _MOST_HEIGHT * len(inside):
            found[one] = last[one]

    def beside() -> Iterator[tuple[int, NodeId, Route | None]]:
        """Yield the edges that would lead back, with their targets, and routes if there are any."""
        entered = Counter[NodeId]()
        for number, edge in enumerate(side.graph.edges):
            target = found.get(edge.target)
            if target is None or edge.is_carried:
                continue
            place = side.places.get(edge.source)
            source = found[edge.source] if place is None else _shape(placed, place, shapes[place])
            if (target.side(-flow) - source.side(flow)) * flow < 0:
                source = _grown(source, flow, VALUE_HEIGHT)
                yield number, edge.target, _from_beside(source, target, flow, entered[edge.target])
                entered[edge.target] += 1

    for _, target, route in [*beside()]:
        if route is None:
            found[target] = last[target]
    return found, {f"e{number}": route for number, _, route in beside() if route is not None}


def _from_beside(source: Rect, target: Rect, flow: float, number: int) -> Route | None:
    """Return a route into the side of a shape from a node beside it, None if there is none.

    `number` is how many others have such a route to this shape.
    """
    x, start = source.centre[0], source.side(flow)
    y = start + flow * (TURN_AT_SOURCE + BETWEEN * number)
    if target.left - ARROW < x < target.right + ARROW or not target.top < y < target.bottom:
        return None
    tip = target.left if x < target.left else target.right
    base = tip - math.copysign(ARROW, tip - x)
    return Route(rounded((x, start), (x, y), (base, y)), (tip, y))


def _grown(rect: Rect, flow: float, space: float) -> Rect:
    """Return a rectangle with more space at the side where values leave, or less."""
    if flow < 0:
        return rect._replace(top=rect.top - space)
    return rect._replace(bottom=rect.bottom + space)


# --- Frames of one stage in a layout of several: each ends where the stage's own contents do ------


FrameContents = Mapping[int, Sequence[Rect | int]]
"""By region, what is directly in a frame: boxes, the extents of edges, and regions with frames."""


def frame_contents(
    graph: Graph, boxes: Mapping[NodeId, Rect], routes: Mapping[str, Route]
) -> FrameContents:
    """Return what is in each frame; an edge is in the innermost frame around both of its ends."""
    found: dict[int, list[Rect | int]] = {}
    outer: dict[int, int | None] = {}
    frame_of: dict[NodeId, int | None] = {}
    for index, items in cluster_contents(graph).items():
        for item in items:
            if isinstance(item, Node):
                frame_of[item.id] = index
            else:
                outer[item] = index
        if index is not None:
            found[index] = [boxes[one.id] if isinstance(one, Node) else one for one in items]
    for number, edge in enumerate(graph.edges):
        around, target = [frame_of[edge.source]], frame_of[edge.target]
        while around[-1] is not None:
            around.append(outer[around[-1]])
        while target not in around:
            target = outer[target]  # type: ignore[index]  # None is in `around`
        if target is not None and f"e{number}" in routes:
            xs, ys = zip(*routes[f"e{number}"].points, strict=True)
            found[target].append(Rect(min(xs), min(ys), max(xs), max(ys)))
    return found


def fitted_frames(
    graph: Graph, own: FrameContents, frames: Mapping[str, ClusterFrame], every: FrameContents
) -> dict[str, ClusterFrame]:
    """Return the frames of a stage, with the space around their contents that all stages leave.

    Args:
        graph: The stage's graph; its regions have the indices that they have in the layout.
        own: The contents of its frames.
        frames: The frames of the layout of all stages, outer ones before inner ones.
        every: What is in these.
    """
    fitted: dict[str, ClusterFrame] = {}
    for name, frame in reversed([*frames.items()]):
        index = int(name.removeprefix("cluster_"))
        if index in own:
            mine = _extent(own[index], {**frames, **fitted}, frame.rect)
            full = _extent(every[index], frames, frame.rect)
            moves = (here - there for here, there in zip(mine, full, strict=True))
            rect = Rect(*(side + move for side, move in zip(frame.rect, moves, strict=True)))
            title = min(title_space(graph, index), frame.rect.width)
            left = min(rect.left, frame.rect.right - title)
            rect = rect._replace(left=left, right=max(rect.right, left + title))
            x, y = frame.label
            fitted[name] = ClusterFrame(rect, (x, y + rect.top - frame.rect.top))
    return dict(reversed([*fitted.items()]))


def _extent(parts: Iterable[Rect | int], frames: Mapping[str, ClusterFrame], within: Rect) -> Rect:
    """Return the rectangle around contents, without what edges need beyond the frame."""
    rects = [frames[f"cluster_{one}"].rect if isinstance(one, int) else one for one in parts]
    left, top, right, bottom = zip(*rects, strict=True)
    return Rect(
        max(min(left), within.left),
        max(min(top), within.top),
        min(max(right), within.right),
        min(max(bottom), within.bottom),
    )


# --- The graphs before and after in one layout, with what became of nodes and edges ---------------


@dataclass(frozen=True, eq=False)
class PlacedDiff:
    """Both sides of a diff, positioned by their union graph; both layouts have the same size."""

    sides: SideGraphs
    union: PlacedGraph
    placed: Sequence[PlacedGraph]
    changes: Sequence[SideChanges]

    def changes_of_both(self) -> SideChanges:
        """Return the changes in the graph of both sides."""
        found: dict[NodeId, ChangeMark] = {}
        unchanged: set[NodeId] = set()
        for side, each in zip(self.sides.sides, self.changes, strict=True):
            places = side.places
            found.update({places[one]: mark for one, mark in each.marks.items() if one in places})
            unchanged.update(places[one] for one in each.unchanged if one in places)
        edges, became = self.union.graph.edges, _changed_edges(self.union.graph, self.sides)
        kinds = [became.get(number, "") for number in range(len(edges))]
        return SideChanges(found, frozenset(unchanged), _edge_changes(edges, kinds, unchanged))


def place_diff(
    diff: FunctionDiff, direction: str = "up", expansion: Expansion | None = None
) -> PlacedDiff:
    """Lay out the graphs of a function before and after; both must exist.

    If all changes are in collapsed groups, those around the first one are expanded.
    """
    before, after = diff.graphs
    assert before is not None
    assert after is not None
    both = union_graph((before, after), (diff.nodes,))
    changed = {
        leaves[one]
        for each in diff.nodes
        if each.change is not ChangeKind.SAME
        for ids, leaves in zip((each.before, each.after), both.nodes, strict=True)
        for one in ids
        if one in leaves
    }
    sides = side_graphs(both, expansion, changed)
    marks = [side_marks(one, diff.nodes, is_before=not at) for at, one in enumerate(sides.sides)]
    if not any(each.marks for each in marks):  # nothing stands out from what is pale
        marks = [each._replace(unchanged=frozenset()) for each in marks]
    widths = [{one: reserved_width(mark) for one, mark in each.marks.items()} for each in marks]
    union, placed = place_sides(sides, direction, widths=widths)
    became, inside, changes = _changed_edges(union.graph, sides), diff.frame_contents, []
    for side, each, kind in zip(sides.sides, marks, ("removed", "added"), strict=True):
        graph = side.graph
        kinds = [kind if one is None else became.get(one, "") for one in side.routes]
        edges = _edge_changes(graph.edges, kinds, each.unchanged)
        outputs = enumerate(graph.outputs, start=len(graph.edges))
        edges |= {index: "" for index, one in outputs if one in each.unchanged}
        contents = {one: inside.get(one, "") for one in side.frames}
        changes.append(each._replace(edges=edges, contents=contents))
    return PlacedDiff(sides, union, placed, changes)


def _changed_edges(union: Graph, sides: SideGraphs) -> dict[int, str]:
    """Return what became of the edges of the union graph that only one stage has."""
    before, after = ({one for one in side.routes if one is not None} for side in sides.sides)
    stays = _staying(union, before) & _staying(union, after)
    numbers = (number for number in range(len(union.edges)) if number not in stays)
    return {number: "removed" if number in before else "added" for number in numbers}


def _edge_changes(
    edges: Sequence[Edge], kinds: Sequence[str], unchanged: Collection[NodeId]
) -> dict[int, str]:
    """Return the kind of each edge that has one; others at unchanged nodes are pale, ""."""
    return {
        index: kind
        for index, (edge, kind) in enumerate(zip(edges, kinds, strict=True))
        if kind or edge.source in unchanged or edge.target in unchanged
    }


def _staying(union: Graph, numbers: Collection[int]) -> set[int]:
    """Return edges as pairs of what they connect, with a frame and its contents as one.

    Fused nodes may have used a value twice that the fused call uses once.
    """

    def ends(edge: Edge) -> tuple[object, object]:
        return _outermost_frame(union, edge.source), _outermost_frame(union, edge.target)

    known = {ends(union.edges[number]) for number in numbers}
    return set(numbers) | {
        number
        for number, edge in enumerate(union.edges)
        if (pair := ends(edge)) != (edge.source, edge.target)
        and (pair in known or pair[0] == pair[1])
    }


def _outermost_frame(graph: Graph, node: NodeId) -> NodeId | int:
    """Return the region of the outermost frame around a node, or the node itself."""
    around = graph.regions_around(graph[node].region)
    fused = [one for one in around if graph.regions[one].kind is RegionKind.FUSED]
    return fused[-1] if fused else node
