"""Nodes, edges and clusters: their sizes, their shapes and texts, and where they are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from irviz.model.graph.graph import (
    OUTPUT,
    Edge,
    Graph,
    Node,
    NodeId,
    NodeKind,
    Region,
    RegionKind,
    grouped,
    lone_calls,
)
from irviz.units import beginning, short_floats
from irviz.view import svg_primitives as svg
from irviz.view.graph import node_labels
from irviz.view.graph.edge_routes import forks
from irviz.view.graph.layout import ClusterFrame, Layout, Route
from irviz.view.graph.overlay import TOGGLE_RADIUS, Overlay, flag_rect, tint
from irviz.view.svg_primitives import Point, Rect, Size
from irviz.view.theme import NodeShape, Theme, node_style

VALUE_HEIGHT = 20.0
"""The height of the space at a node's outlet for the label of its value."""
_LINE_ENDS = "4 12"
"""The dashes of the line through that space, which is free where the label is."""
_VALUE_MARGIN = 10.0
_TEXT_MARGIN = 14.0
_MIN_CELL_WIDTH = 5
_CELL_WIDTH = 28
"""The distance between two edges that enter a node, where the node is wide enough."""
_BAR = 7.0
_STEP = 2.5
_CUT = 8.0
_LID = 3.0
_RADII = {NodeShape.ROUND_BOX: 9.0, NodeShape.STACK: 2.0}


class Entries(NamedTuple):
    """Where edges enter their targets, which have a cell for each argument, side by side.

    Attributes:
        cells: The cell of each edge.
        counts: The cells of each target.
        middles: The cell in the middle of a target, where a chain leads on; else all are around it.
    """

    cells: list[int]
    counts: Counter[NodeId]
    middles: Mapping[NodeId, int]

    def widths(self, target: NodeId, width: float) -> tuple[int, int]:
        """Return the width of the space before the cells of a target, and that of a cell; in px."""
        whole, count = math.ceil(width), self.counts[target]
        cell = min(_CELL_WIDTH, whole // count)
        middle = self.middles.get(target, (count - 1) / 2)
        before = math.floor(whole / 2 - cell * (middle + 0.5))
        return min(max(before, 0), whole - count * cell), cell


def entries(graph: Graph) -> Entries:
    """Return where edges enter their targets.

    Each argument has one cell, also if another copy of a repeat or another stage gives it another
    value.
    """
    known: dict[NodeId, dict[object, int]] = {}
    chains: dict[NodeId, dict[int, bool]] = {}
    cells = []
    users = Counter(edge.source for edge in graph.edges if not edge.is_carried)
    for edge in graph.edges:
        places = known.setdefault(edge.target, {})
        cells.append(places.setdefault(edge.position or edge.source, len(places)))
        if not edge.is_carried and not graph[edge.source].is_input:
            chains.setdefault(edge.target, {})[cells[-1]] = users[edge.source] == 1
    counts = Counter({target: len(places) for target, places in known.items()})
    middles = {}
    for target, of in chains.items():
        leads_on = [cell for cell, is_only in of.items() if is_only] or list(of)
        if len(leads_on) == 1:
            middles[target] = leads_on[0]
    return Entries(cells, counts, middles)


def shape_size(node: Node, cells: int, beside: float = 0.0) -> Size:
    """Return the size of a node's shape, wide enough for its edges to enter side by side.

    `beside` is the width of what is drawn at the left of its texts.
    """
    title_width = svg.text_width(node_labels.title(node), node_labels.NAME_SIZE)
    if node_style(node).shape is NodeShape.CIRCLE and title_width <= 44:
        side = max(34.0, title_width + 14)
        return Size(side, side)
    if node.is_input:
        return Size(max(34.0, title_width + 20), 28.0)
    spare = 2 * _TEXT_MARGIN if node.is_pure else 48  # with the number of an effect
    lines = node_labels.lines(node)
    width = max(72.0, beside + _text_width(title_width, lines) + spare, value_width(node))
    width = max(math.ceil(width) if cells else width, cells * _MIN_CELL_WIDTH)
    return Size(width, 30.0 + 12.0 * len(lines))


def _text_width(title_width: float, lines: Sequence[str]) -> float:
    """Return the width of a title with the lines below it."""
    return max(title_width, *(svg.text_width(one, node_labels.NOTE_SIZE) for one in lines), 0.0)


def layout_size(node: Node, cells: int) -> Size:
    """Return the size that the layout reserves: the shape, and the label of its value."""
    size = shape_size(node, cells)
    return Size(max(size.width, value_width(node)), size.height + VALUE_HEIGHT)


def bar_width(node: Node) -> float:
    """Return how much of a node a bar takes at each side."""
    return _BAR if node_style(node).shape is NodeShape.BARRED_BOX else 0.0


def output_size() -> Size:
    """Return the size of the node that stands for the function's result."""
    return Size(svg.text_width(OUTPUT, node_labels.NOTE_SIZE) + 16, 20.0)


def value_width(node: Node) -> float:
    """Return the width that the label of a node's value takes, beside the button of a group."""
    has_button = node.kind is NodeKind.GROUP or bool(node.group)
    margin = _VALUE_MARGIN + 2 * TOGGLE_RADIUS * has_button
    return svg.text_width(node_labels.value_label(node), node_labels.VALUE_SIZE) + margin


def add_shape(
    parent: ElementTree.Element, shape: NodeShape, rect: Rect, **style: str | float
) -> None:
    """Draw a shape; `style` are attributes of all its elements."""
    width, height = rect.width, rect.height
    if shape is NodeShape.CIRCLE and math.isclose(width, height):
        cx, cy = rect.centre
        svg.add(parent, "circle", "shape", cx=cx, cy=cy, r=width / 2, **style)
    elif outline := _outline(shape, rect):
        svg.add(parent, "path", "shape", d=outline, **style)
    else:
        radii = {"rx": {NodeShape.CIRCLE: height / 2, **_RADII}.get(shape, 0.0)}
        if shape is NodeShape.DRUM:
            radii = {"rx": width / 2, "ry": _LID}
        svg.add_rect(parent, rect, "shape", **radii, **style)
    if lines := _lines(shape, rect):
        svg.add(parent, "path", "bars", d=lines, **style)


def _outline(shape: NodeShape, rect: Rect) -> str:
    """Return the outline of a shape, "" for boxes and circles."""
    x, y, width, height = rect.left, rect.top, rect.width, rect.height
    if shape is NodeShape.SLANTED_BOX:
        top = width - 2 * _CUT
        sides = ("l", _CUT, height / 2, "l", -_CUT, height / 2, "h", -top, "Z")
        return svg.path("M", x, y + height / 2, "L", x + _CUT, y, "h", top, *sides)
    if shape is NodeShape.CUT_BOX:
        corner = ("l", _CUT, _CUT)
        return svg.path("M", x, y, "h", width - _CUT, *corner, "v", height - _CUT, "h", -width, "Z")
    return ""


def _lines(shape: NodeShape, rect: Rect) -> str:
    """Return the lines that a shape has in addition to its outline, "" for none."""
    (x, y, right, _), height = rect, rect.height
    if shape is NodeShape.BARRED_BOX:
        return svg.path("M", x + _BAR, y, "v", height, "M", right - _BAR, y, "v", height)
    if shape is NodeShape.STACK:
        steps = (_STEP, 2 * _STEP)
        return "".join(svg.path("M", right + n, y + n, "v", height - 2 * n) for n in steps)
    if shape is NodeShape.DRUM:
        return svg.path("M", x, y + _LID, "a", rect.width / 2, _LID, 0, 0, 0, rect.width, 0)
    return ""


# --- Nodes ----------------------------------------------------------------------------------------


_LINE_INSET = 5.0
_IMPURE_CONTAINERS = (NodeKind.IF, NodeKind.GROUP)
"""Nodes that are impure only because of their contents."""


def draw_node(
    parent: ElementTree.Element,
    node: Node,
    rect: Rect,
    theme: Theme,
    overlay: Overlay | None,
    beside: float = 0.0,
) -> ElementTree.Element:
    """Draw a node's shape, title and note; return the group.

    The texts are in the middle, or farther right for what is `beside` them. An overlay replaces the
    colour of the shape, so that colour has only one meaning.
    """
    classes = ["node", node.kind.value, *([node.resolution.value] if node.resolution else [])]
    mark = overlay.marks.get(node.id) if overlay else None
    group = svg.add(parent, "g", " ".join(classes), data_node=node.id)
    style = node_style(node)
    fill, stroke = theme.colours[style.colour]
    note_colour = theme.quiet_text
    tooltip = _tooltip(node)
    if overlay:
        fill = theme.background
    if overlay and mark:
        tooltip += f"\n{overlay.title}: {mark.text}"
        fill, note_colour = tint(group, mark, theme), theme.text
    svg.add_tooltip(group, tooltip)
    lines: dict[str, str | float] = {"fill": fill, "stroke": stroke, "stroke_width": theme.outline}
    if style.colour == "unknown":
        lines["stroke_dasharray"] = "4 2"
    if mark and mark.is_first:
        lines |= {"stroke": theme.flag, "stroke_width": 3}
    add_shape(group, style.shape, rect, **lines)
    notes = node_labels.lines(node)
    x, y = rect.centre
    title, size = node_labels.title(node), node_labels.NAME_SIZE
    if beside and not node.is_input:
        width = _text_width(svg.text_width(title, size), notes)
        x = max(x, rect.left + beside + _TEXT_MARGIN + width / 2)
    position = (x, y + 4 - 6 * len(notes) if notes else y + 4.5)
    svg.add_text(group, title, position, size, theme.text, css_class="name", font_weight="600")
    weights = node_labels.weights(node)
    first = len(notes) - len(weights) - (len(weights) < len(node.weights))
    of_lines = dict(enumerate(weights, start=first))
    for number, note in enumerate(notes):
        place = (x, position[1] + 15 + 12 * number)
        into = group
        if number in of_lines:
            top = place[1] - 9.5
            line = Rect(rect.left + _LINE_INSET, top, rect.right - _LINE_INSET, top + 12)
            into = _weight_line(group, of_lines[number], line)
        svg.add_text(into, note, place, node_labels.NOTE_SIZE, note_colour, css_class="note")
    return group


def texts_span(node: Node, rect: Rect) -> tuple[float, float]:
    """Return where the texts of a node begin, and the baseline of the last of them."""
    y, notes = rect.centre[1], len(node_labels.lines(node))
    return y - 6 * notes - 7, y + (7 + 6 * notes if notes else 4.5)


def _weight_line(parent: ElementTree.Element, weight: Node, rect: Rect) -> ElementTree.Element:
    """Add a group for the line of a weight, which is pointed at and selected like a node."""
    group = svg.add(parent, "g", "weight", data_node=weight.id)
    svg.add_tooltip(group, _tooltip(weight))
    svg.add_rect(group, rect, "shape", rx=3, fill="none", pointer_events="all")
    return group


def draw_output(parent: ElementTree.Element, rect: Rect, theme: Theme) -> None:
    """Draw the node that stands for the function's result."""
    group = svg.add(parent, "g", "node output")
    colours = {"fill": theme.background, "stroke": theme.line}
    svg.add_rect(group, rect, "shape", rx=rect.height / 2, **colours)
    x, y = rect.centre
    svg.add_text(group, OUTPUT, (x, y + 3.5), node_labels.NOTE_SIZE, theme.text, css_class="name")


def draw_value_label(
    parent: ElementTree.Element, node: Node, outlet: Point, theme: Theme, outward: float
) -> ElementTree.Element:
    """Write the value's name and type between the node and the edges that leave it.

    `outward` is 1 where edges leave downwards, -1 where they leave upwards.
    """
    group = svg.add(parent, "g", "value", data_node=node.id)
    position, (x, y) = _value_label_position(outlet, outward), outlet
    line = {"d": svg.path("M", x, y, "V", y + outward * VALUE_HEIGHT), "stroke": theme.line}
    svg.add(group, "path", "line", **line, stroke_width=1.2, stroke_dasharray=_LINE_ENDS)
    svg.add_text(group, node_labels.value_label(node), position, node_labels.VALUE_SIZE, theme.text)
    return group


def effect_numbers(graph: Graph) -> dict[NodeId, int]:
    """Return the numbers of the nodes that may have an effect, in execution order."""
    impure = [n.id for n in graph.nodes if not n.is_pure and n.kind not in _IMPURE_CONTAINERS]
    return {node_id: number for number, node_id in enumerate(impure, start=1)}


def draw_effect_number(parent: ElementTree.Element, number: int, rect: Rect, theme: Theme) -> None:
    """Write the number of a node's effect into its lower right corner; marks take the others."""
    text = f"!{number}"
    middle = (rect.right - 5 - svg.text_width(text, node_labels.NOTE_SIZE) / 2, rect.bottom - 4)
    mark = svg.add_text(
        parent, text, middle, node_labels.NOTE_SIZE, theme.quiet_text, css_class="effect"
    )
    svg.add_tooltip(mark, f"it may have an effect, number {number} of those drawn")


def _value_label_position(outlet: Point, outward: float) -> Point:
    return (outlet[0], outlet[1] + outward * (VALUE_HEIGHT / 2 + 1) + 4)


def _tooltip(node: Node) -> str:
    lines = [f"{node.name or node_labels.title(node)}: {node.type_label}"]
    if node.callee:
        lines.append(f"{node.kind.value} {node.callee}")
    lines += [f"{name} = {short_floats(value)}" for name, value in node.attributes]
    if node.kind is not NodeKind.GROUP and (layers := node_labels.layers_label(node)):
        lines.append(f"layer = {layers}")
    return "\n".join(lines)


# --- edges -------------------------------------------------------------------------------------
#
# Edges: the curve and the arrow of each use of a value.


_ARROW_WIDTH = 3.2


def draw_edge(
    parent: ElementTree.Element,
    edge: Edge,
    source: Node,
    route: Route,
    theme: Theme,
    *,
    is_dashed: bool = False,
) -> ElementTree.Element:
    """Draw an edge along its route; return the group.

    Args:
        is_dashed: Whether it is dashed, like the outline of a removed node.
    """
    kinds = " carried" * edge.is_carried + " other_copy" * edge.is_other + " write" * edge.is_write
    group = svg.add(parent, "g", f"edge{kinds}", data_source=edge.source, data_target=edge.target)
    title = f"{source.name or node_labels.title(source)}: {source.type_label}"
    if edge.uses > 1:
        title += f"\n{edge.uses} uses"
    if edge.is_carried:
        title += "\nfrom each copy to the next"
    if edge.is_other:
        title += "\nof another copy than the one that is drawn"
    svg.add_tooltip(group, title)
    start, *rest = route.points
    line = {"d": svg.path("M", *start, "C", *chain.from_iterable(rest)), "fill": "none"}
    dashes = {"stroke_dasharray": "6 3"} if is_dashed else {}
    if edge.is_other:
        dashes = {"stroke_dasharray": "7 4"}
    width = 4.2 if edge.is_write else 1.2
    if edge.is_carried:  # round dots: short dashes make a loop look like a frame
        dashes, width = {"stroke_dasharray": "0 4.5", "stroke_linecap": "round"}, 1.6
    svg.add(group, "path", **line, stroke=theme.line, stroke_width=width, **dashes)
    if edge.is_write:  # a double line
        svg.add(
            group, "path", "inside", **line, stroke=theme.background, stroke_width=1.8, **dashes
        )
    svg.add(group, "path", "arrow", d=_arrow(rest[-1], route.tip, edge), fill=theme.line)
    return group


def arrow_rect(route: Route) -> Rect:
    """Return the rectangle that the arrow at the end of a route covers."""
    (x, y), (tip_x, tip_y) = route.points[-1], route.tip
    return Rect(
        min(x, tip_x) - _ARROW_WIDTH,
        min(y, tip_y) - 1,
        max(x, tip_x) + _ARROW_WIDTH,
        max(y, tip_y) + 1,
    )


def points_along(routes: Iterable[Route], step: float) -> NDArray[np.float64]:
    """Return points (n, 2) of the curves of routes, about `step` px apart."""
    lines = (route.points for route in routes)
    parts = np.array([line[at : at + 4] for line in lines for at in range(0, len(line) - 3, 3)])
    a, b, c, d = parts.reshape(-1, 4, 2).swapaxes(0, 1)
    lengths = sum(np.hypot(*(end - start).T) for start, end in pairwise((a, b, c, d)))
    counts = np.maximum(1, np.ceil(lengths / step)).astype(int)
    first, total = np.cumsum(counts) - counts, int(counts.sum())
    t = ((np.arange(total) - np.repeat(first, counts)) / np.repeat(counts, counts))[:, None]
    found = np.zeros((total, 2))
    for power in (d - 3 * c + 3 * b - a, 3 * (c - 2 * b + a), 3 * (b - a), a):
        found *= t
        found += np.repeat(power, counts, axis=0)
    return found


def _arrow(base: Point, tip: Point, edge: Edge) -> str:
    width = _ARROW_WIDTH * (1.8 if edge.is_write else 1)
    along = math.hypot(tip[0] - base[0], tip[1] - base[1]) or 1.0
    x, y = -(tip[1] - base[1]) / along * width, (tip[0] - base[0]) / along * width
    sides = ("L", *tip, "L", base[0] - x, base[1] - y, "Z")
    return svg.path("M", base[0] + x, base[1] + y, *sides)


# --- clusters ----------------------------------------------------------------------------------
#
# Clusters: the frames around the nodes of a region, and their titles.


_TITLE_INSET = 9.0


def cluster_contents(graph: Graph) -> dict[int | None, list[Node | int]]:
    """Return the nodes and the clusters that are directly inside each cluster.

    A cluster is named by the index of its region; None stands for the whole graph. Binding blocks
    and layers of a single call have no cluster: their contents belong to the region around them.
    Empty regions are left out.
    """
    found: dict[int | None, list[Node | int]] = {}
    placed: set[int] = set()
    lone = lone_calls(graph)

    def cluster_of(region: int | None) -> int | None:
        while region is not None and (
            region in lone or graph.regions[region].kind is RegionKind.BINDING_BLOCK
        ):
            region = graph.regions[region].parent
        return region

    for node in graph.nodes:
        region = cluster_of(node.region)
        found.setdefault(region, []).append(node)
        while region is not None and region not in placed:
            placed.add(region)
            outer = cluster_of(graph.regions[region].parent)
            found.setdefault(outer, []).append(region)
            region = outer
    return found


def cluster_title(graph: Graph, index: int) -> str:
    """Return the title of the cluster of a region."""
    region = graph.regions[index]
    is_block = region.kind is RegionKind.DATAFLOW_BLOCK
    return node_labels.group_title(region.name or "dataflow" * is_block)


def title_space(graph: Graph, index: int) -> float:
    """Return the least width of the frame of a region.

    The title of a dataflow block has room at the left of an edge that leaves from the middle.
    """
    width = svg.text_width(cluster_title(graph, index), node_labels.VALUE_SIZE)
    is_block = graph.regions[index].kind is RegionKind.DATAFLOW_BLOCK
    return 2 * (width + _TITLE_INSET + 4) if is_block else width + 30


def draw_cluster(
    parent: ElementTree.Element, frame: ClusterFrame, region: Region, theme: Theme
) -> None:
    """Draw the frame of a cluster."""
    group = svg.add(parent, "g", f"block {region.kind.value}")
    dashes = {"stroke_dasharray": "5 3"} if region.kind is RegionKind.DATAFLOW_BLOCK else {}
    lines: dict[str, str | float] = {"fill": theme.block_fill, "stroke": theme.block_line}
    if region.kind is RegionKind.FUSED:
        lines = {"fill": "none", "stroke": theme.changes["fused"], "stroke_width": 2.4}
        dashes = {"stroke_dasharray": "2 4"}
    svg.add_rect(group, frame.rect, rx=6, **lines, **dashes)


def draw_cluster_title(
    parent: ElementTree.Element, title: str, place: Point, colour: str, theme: Theme
) -> None:
    """Write the title of a frame; an edge that crosses it is interrupted."""
    svg.add_rect(parent, cluster_title_rect(title, place), fill=theme.block_fill)
    halo = {"paint_order": "stroke", "stroke": theme.block_fill, "stroke_width": "3"}
    svg.add_text(  # also enlarged
        parent, title, place, node_labels.VALUE_SIZE, colour, "start", **halo
    )


def cluster_title_rect(title: str, place: Point) -> Rect:
    """Return the rectangle that a title covers."""
    return svg.text_rect(title, place, node_labels.VALUE_SIZE, "start")


# --- Where the parts of a drawn graph are ---------------------------------------------------------


_POINT_DISTANCE = 6.0
"""The distance between the points that stand for a line, in px."""
_CHANGE_MARKER = Size(14.0, 14.0)
"""The marker that a page puts on a changed node, at its upper left corner."""
_BESIDE_TITLE, _LEAST_TITLE = 4.0, 6
"""The space in px between a title and an edge, and the fewest characters of one that is cut."""
_TOGGLE = Size(2 * TOGGLE_RADIUS, 2 * TOGGLE_RADIUS)
_CLEAR = TOGGLE_RADIUS + 4.0  # from a button to edges


class SceneGeometry:
    """The positions of nodes, values, markers, edges and clusters.

    Attributes:
        graph: What is drawn.
        outward: The direction in which values leave their nodes: -1 upwards, 1 downwards.
        shapes: The rectangle of each node's shape.
        frames: The frames of clusters by the index of their region.
        edges: The graph's edges and those to its output, with their routes.
        output: The rectangle of the output, None if there is none.
        used: The nodes that an edge leaves.
        toggles: Where the button of each node is or would be, and of each cluster that can be
            collapsed, by their ids.
    """

    def __init__(self, graph: Graph, layout: Layout, direction: str) -> None:
        self.graph = graph
        self.size = Size(layout.width, layout.height)
        self.outward = -1.0 if direction == "up" else 1.0
        self.shapes: dict[NodeId, Rect] = {}
        cells = entries(graph).counts
        for index, node in enumerate(graph.nodes):
            if given := layout.shapes.get(f"n{index}"):
                self.shapes[node.id] = given
                continue
            x, y = layout.nodes[f"n{index}"]
            middle = (x, y - self.outward * VALUE_HEIGHT / 2)  # the layout includes the value
            self.shapes[node.id] = Rect.around(middle, shape_size(node, cells[node.id]))
        self.frames: dict[int, ClusterFrame] = {
            int(name.removeprefix("cluster_")): frame for name, frame in layout.frames.items()
        }
        edges = [*graph.edges, *(Edge(source, OUTPUT, ()) for source in graph.outputs)]
        self.edges = [(edge, layout.routes[f"e{index}"]) for index, edge in enumerate(edges)]
        self.output = Rect.around(layout.nodes[OUTPUT], output_size()) if graph.outputs else None
        self.used = {edge.source for edge in edges}
        self._starts = {edge.source: route.points[0] for edge, route in reversed(self.edges)}
        self._on_edges = points_along((route for _, route in self.edges), _POINT_DISTANCE)
        self.toggles = {str(name): (rect.right, rect.top) for name, rect in self.shapes.items()}
        for index, frame in self.frames.items():
            if graph.regions[index].id:
                self.toggles[graph.regions[index].id] = self._free_corner(frame.rect)

    def _free_corner(self, frame: Rect) -> Point:
        """Return the place of a frame's button: its upper right corner, or a place near it.

        That is on one of the two sides that meet there, with no edge beside it.
        """
        corner = np.array([frame.right, frame.top])
        most = min(frame.width, frame.height) / 2
        far = np.arange(0.0, most, _POINT_DISTANCE)
        places = (corner + far[:, None, None] * [(-1, 0), (0, 1)]).reshape(-1, 2)
        near = self._on_edges[(abs(self._on_edges - corner) < most + _CLEAR).all(1)]
        gaps = abs(places[:, None] - near).max(2).min(1, initial=math.inf)
        x, y = next(iter(places[gaps >= _CLEAR]), corner)
        return float(x), float(y)

    def _passing(self, height: float, near: float) -> list[float]:
        """Return where edges are that pass a height, also a little above and below it."""
        routes = (route for _, route in self.edges)
        passing = (r for r in routes if (r.points[0][1] - height) * (r.tip[1] - height) < 0)
        x, y = points_along(passing, _POINT_DISTANCE).T
        return list[float](x[abs(y - height) < near].tolist())

    def forks(self) -> dict[int, list[Point]]:
        """Return where straight edges from one node part, by the number of one of them."""
        found: dict[int, list[Point]] = {}
        numbered = enumerate(self.edges)
        for same in grouped((edge.source, (n, route)) for n, (edge, route) in numbered).values():
            numbers, routes = zip(*same, strict=True)
            found |= {numbers[at]: points for at, points in forks(routes).items()}
        return found

    def title(self, index: int) -> tuple[str, Point]:
        """Return the title of a cluster, and where it begins: where edges leave room for all of it.

        This is as far left as there is such room. A layer's title is cut to the widest room else.
        """
        frame, title = self.frames[index], cluster_title(self.graph, index)
        region = self.graph.regions[index]
        left, baseline = frame.rect.left + _TITLE_INSET, frame.label[1] + 4
        if not title:
            return title, (left, baseline)
        rect = cluster_title_rect(title, (left, baseline))
        near = self._passing(rect.centre[1], rect.height / 2)
        if region.id:
            button = self.toggles[region.id][0]
            near += [button - TOGGLE_RADIUS, button + TOGGLE_RADIUS]
        passing = sorted(x for x in near if left < x < frame.rect.right)
        starts = [left, *(x + _BESIDE_TITLE for x in passing)]
        ends = [x - _BESIDE_TITLE for x in (*passing, frame.rect.right)]
        rooms = [end - start for start, end in zip(starts, ends, strict=True)]
        enough = (at for at, room in enumerate(rooms) if room >= rect.width)
        if (at := next(enough, None)) is not None:
            return title, (starts[at], baseline)
        at = rooms.index(max(rooms))
        fitting = math.floor(len(title) * rooms[at] / rect.width)
        if region.kind is RegionKind.LAYER and _LEAST_TITLE <= fitting < len(title):
            return beginning(title, fitting), (starts[at], baseline)
        return title, (left, baseline)

    def outlet(self, node_id: NodeId) -> Point:
        """Return the point where edges leave a node."""
        rect = self.shapes[node_id]
        x, _ = self._starts.get(node_id, rect.centre)
        spare = (rect.width - value_width(self.graph[node_id])) / 2
        x = min(max(x, rect.centre[0] - spare), rect.centre[0] + spare) if spare > 0 else x
        return (x, rect.side(self.outward))

    def flag(self, node_id: NodeId) -> Point:
        """Return the centre of a node's warning: at its left side, clear of its texts."""
        rect = self.shapes[node_id]
        return (rect.left - 7, rect.centre[1])

    def obstacles(self, overlay: Overlay, expandable: Collection[str]) -> Iterator[Rect]:
        """Yield the rectangles that the labels of an overlay must not overlap."""
        for node in self.graph.nodes:
            rect = self.shapes[node.id]
            yield rect
            yield Rect.around((rect.left, rect.top), _CHANGE_MARKER)
            if node.id in self.used:
                position = _value_label_position(self.outlet(node.id), self.outward)
                label = node_labels.value_label(node)
                yield svg.text_rect(label, position, node_labels.VALUE_SIZE)
            mark = overlay.marks.get(node.id)
            if mark and mark.is_flagged:
                yield flag_rect(self.flag(node.id), is_first=mark.is_first)
        for name, corner in self.toggles.items():
            if name in expandable or name not in self.graph.index:
                yield Rect.around(corner, _TOGGLE)
        for index in self.frames:
            yield cluster_title_rect(*self.title(index))
        for _, route in self.edges:
            yield arrow_rect(route)
        if self.output:
            yield self.output

    def lines(self) -> Iterator[Point]:
        """Yield points of the edges and frames, which labels should not cover."""
        routes = (route for _, route in self.edges)
        yield from map(tuple, points_along(routes, _POINT_DISTANCE).tolist())
        for frame in self.frames.values():
            left, top, right, bottom = frame.rect
            for step in range(int(frame.rect.width / _POINT_DISTANCE)):
                yield from ((left + step * _POINT_DISTANCE, y) for y in (top, bottom))
            for step in range(int(frame.rect.height / _POINT_DISTANCE)):
                yield from ((x, top + step * _POINT_DISTANCE) for x in (left, right))

    def labels(self, overlay: Overlay) -> dict[NodeId, tuple[str, Rect]]:
        """Return the labels of an overlay, with the rectangle of each node and its warning."""
        labels = {}
        for node_id, rect in self.shapes.items():
            mark = overlay.marks.get(node_id)
            if mark and mark.text:
                if mark.is_flagged:
                    left = flag_rect(self.flag(node_id), is_first=mark.is_first).left
                    rect = rect._replace(left=left)
                labels[node_id] = (mark.text, rect)
        return labels
