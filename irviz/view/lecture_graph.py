"""A graph as lectures draw it: the chain of calls, with everything else at the sides.

Parameters of a single call are at its left, buffers at the right of the call that writes them, and
callouts, which show text, further out. The rest is laid out like any graph.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import NamedTuple
from xml.etree import ElementTree

from irviz.errors import DrawError
from irviz.model.graph.graph import OUTPUT, Edge, Graph, Node, NodeId, NodeKind, grouped
from irviz.view import svg_primitives as svg
from irviz.view.graph import node_labels
from irviz.view.graph.graph_figure import draw_scene, place_graph
from irviz.view.graph.layout import Route
from irviz.view.graph.nodes_and_edges import (
    VALUE_HEIGHT,
    SceneGeometry,
    add_shape,
    draw_edge,
    draw_node,
    draw_output,
    output_size,
    shape_size,
)
from irviz.view.graph.overlay import Overlay, draw_flag, draw_overlay_legend, legend_size
from irviz.view.lecture_slide import (
    CODE_SIZE,
    LINE_HEIGHT,
    Arrangement,
    Panel,
    draw_code,
    wrapped,
)
from irviz.view.svg_primitives import Point, Rect, Size
from irviz.view.theme import Theme, node_style

_SECONDS = 60.0
"""The time limit of a layout, long enough that a busy machine gives the same one."""
_RANK_GAP, _WIDE_RANK_GAP = "0.17", "0.35"
_GAP = 20.0
_STACKED = 5.0
_PAD = 6.0
_WORDS_HEIGHT = 16.0
_TIP = 7.0
_COLUMN_GAP, _TURN = 26.0, 12.0
"""The space between two columns, and that of an edge which turns around the end of one."""
_CUT_COST = 3
"""By how many nodes a column may be too long or short before it is broken within a frame."""
_LABEL_MIDDLE, _LINE = 14.0, VALUE_HEIGHT + 1
"""The distance of a node from the middle of the label beside its edge, and the line to the edge."""
_SUBSCRIPT = re.compile(r"([A-Za-z]+)_?(\d+)")


class Shape(NamedTuple):
    """How much of a picture is drawn, and how.

    Attributes:
        width: The most characters of a line of code.
        arrangement: Whether the panels are beside or above each other.
        is_roomy: Whether labels are beside their edges if nothing else is there, and the edges are
            longer if not all of them are straight.
        has_types: Whether the types of values are written.
        has_input_types: Whether those of the inputs at the left are written, too.
    """

    width: int
    arrangement: Arrangement = "row"
    is_roomy: bool = True
    has_types: bool = True
    has_input_types: bool = True


@dataclass(frozen=True)
class GraphWords:
    """Texts and marks added to a graph, and how much of it is drawn.

    Attributes:
        callouts: The lines of TVMScript beside a node.
        highlight: The nodes with a thick outline.
        are_below: Whether callouts and notes are below the graph, and not at its right.
        has_outputs: Whether a buffer is drawn as the output of the calls that write it; otherwise
            it is drawn as one of their inputs, as which they are given it.
        overlay: The colours and marks of nodes.
    """

    shape: Shape
    callouts: Mapping[str, Sequence[str]]
    notes: Mapping[str, str]
    highlight: Collection[str]
    are_below: bool = False
    has_outputs: bool = True
    overlay: Overlay | None = None


def draw_graph_panel(
    graph: Graph, theme: Theme, direction: str, words: GraphWords, columns: int = 1
) -> Panel:
    """Return the panel of a graph.

    Args:
        columns: The number of columns that it is broken into; a line leads from each to the next.

    Raises:
        DrawError: The graph cannot be broken so, or the layout took too long.
        UnknownNodeError: A named node does not exist.
    """
    for name in (*words.callouts, *words.notes, *words.highlight):
        graph[name]
    if not words.shape.has_types:
        graph = graph.with_nodes([node._replace(type_text="") for node in graph.nodes])
    parts = _columns(graph, columns)
    panels = [_Panel(one, theme, direction, words, leads_on=one is not parts[-1]) for one in parts]
    sizes = [panel.draw() for panel in panels]
    root = ElementTree.Element("g", {"class": "graph-panel"})
    before = [0.0, *(2 * _TURN for _ in sizes[1:])]  # for the edges that enter the columns
    height = max(size.height + space for size, space in zip(sizes, before, strict=True))
    x = 0.0
    for panel, size, space in zip(panels, sizes, before, strict=True):
        panel.move((x, height - size.height - space if direction == "up" else space))
        root.append(panel.picture)
        x += size.width + _COLUMN_GAP
    for one, two in pairwise(panels):
        _draw_to_next(root, one, two, graph, theme)
    return Panel(root, Size(x - _COLUMN_GAP, height))


def _draw_to_next(
    parent: ElementTree.Element, one: _Panel, two: _Panel, graph: Graph, theme: Theme
) -> None:
    """Draw the edge from a column to the next: around its end, and through the gap."""
    out = one.scene.outward
    (source,) = one.graph.outputs
    edge = next(edge for edge in graph.leaving[source] if edge.target in two.graph.index)
    (x, y), (end_x, end_y) = one.outlet(source), two.inlet(edge.target)
    gap = two.corner[0] - _COLUMN_GAP / 2
    turn, near = end_y - 2 * out * _TURN, end_y - out * _TIP
    _, top = one.moved(one.end)  # beyond the frame that it may be in
    corners = [(x, y), (x, top), (gap, top), (gap, turn), (end_x, turn), (end_x, near)]
    ways = [point for a, b in pairwise(corners) for point in (a, b, b)]
    route = Route((corners[0], *ways), (end_x, end_y))
    draw_edge(parent, edge, graph[source], route, theme)


def _columns(graph: Graph, count: int) -> list[Graph]:
    """Return a graph in parts of about the same number of nodes; one value leads to the next part.

    Raises:
        DrawError: There are too few places where it can be broken.
    """
    if count == 1:
        return [graph]
    calls = [node for node in graph.nodes if not node.is_input]
    place = {node.id: at for at, node in enumerate(calls)}
    passed: list[set[NodeId]] = [set() for _ in calls]  # the values that pass each place
    reached: list[set[NodeId]] = [set() for _ in calls]
    for edge in graph.edges:
        for at in range(place.get(edge.source, len(calls)) + 1, place[edge.target] + 1):
            passed[at].add(edge.source)
            reached[at].add(edge.target)
    breaks = [
        at
        for at in range(1, len(calls))
        if len(passed[at]) == 1
        and reached[at] == {calls[at].id}
        and graph.outputs
        and all(place[one] >= at for one in graph.outputs)
    ]
    wanted = [round(len(calls) * at / count) for at in range(1, count)]

    def cost(at: int, best: int) -> int:
        sides = [_frames(graph, some) for some in (calls[:at], calls[at:])]
        return abs(at - best) + _CUT_COST * len(sides[0] & sides[1])

    chosen = sorted({min(breaks, key=partial(cost, best=best)) for best in wanted if breaks})
    if len(chosen) < count - 1:
        raise DrawError(
            f"{graph.function!r} cannot be drawn in {count} columns: it has {len(breaks)} places "
            "where a single value leads on. Give fewer columns"
        )
    parts = []
    for start, end in pairwise([0, *chosen, len(calls)]):
        kept = {node.id for node in calls[start:end]}
        edges = tuple(
            edge
            for edge in graph.edges
            if edge.target in kept and (edge.source in kept or edge.source not in place)
        )
        used = {*kept, *(edge.source for edge in edges)}
        if end == len(calls):  # and inputs that nothing uses
            used |= {n.id for n in graph.nodes if n.id not in place and n.id not in graph.leaving}
        outputs = tuple(passed[end]) if end < len(calls) else graph.outputs
        nodes = tuple(node for node in graph.nodes if node.id in used)
        part = replace(graph, nodes=nodes, edges=edges, outputs=outputs)
        others = [node for node in calls if node.id not in kept]
        parts.append(without_frames(part, _frames(graph, others)))
    return parts


def _frames(graph: Graph, nodes: Iterable[Node]) -> set[int]:
    """Return the regions around nodes."""
    return {one for node in nodes for one in graph.regions_around(node.region)}


def _side_inputs(graph: Graph) -> dict[NodeId, list[Node]]:
    """Return the inputs placed beside each node: those after its first operand, used once."""
    found: dict[NodeId, list[Node]] = {}
    for node in graph.nodes:
        operands = graph.entering.get(node.id, ())
        for edge in operands[1:]:
            one = graph[edge.source]
            if one.is_input and len(graph.leaving[one.id]) == 1:
                found.setdefault(node.id, []).append(one)
    return found


def without_frames(graph: Graph, hidden: Collection[int]) -> Graph:
    """Return the graph without some regions, given by their indices: their contents stay."""

    def shown(region: int | None) -> int | None:
        return next((n for n in graph.regions_around(region) if n not in hidden), None)

    regions = tuple(one._replace(parent=shown(one.parent)) for one in graph.regions)
    nodes = [node._replace(region=shown(node.region)) for node in graph.nodes]
    return replace(graph, regions=regions).with_nodes(nodes)


class _Panel:
    """The parts of the picture in the order in which they are placed."""

    def __init__(
        self, graph: Graph, theme: Theme, direction: str, words: GraphWords, *, leads_on: bool
    ) -> None:
        # the order of effects is told by numbers, which a lecture would have to explain
        pure = [node._replace(is_pure=True) for node in graph.nodes]
        self.graph, self.theme, self.direction = graph.with_nodes(pure), theme, direction
        self.words = words
        self.inputs = _side_inputs(graph)
        self.buffers = {edge.target: graph[edge.target] for edge in graph.edges if edge.is_write}
        self.picture = ElementTree.Element("g")
        self.corner: Point = (0.0, 0.0)
        self._place()
        while blocked := [node_id for node_id in self.inputs if self._is_blocked(node_id)]:
            for node_id in blocked:
                del self.inputs[node_id]
            self._place()
        self.extent = Rect(0.0, 0.0, *self.scene.size)
        for rect in (*self.labels.values(), *(one.rect for one in self.scene.frames.values())):
            self._grow(rect)
        for node in self.rest.nodes:
            if node.kind is NodeKind.GROUP:
                rect = self.scene.shapes[node.id]
                self._grow(rect._replace(right=rect.right + _PAD))  # the boxes behind it
        self.shapes: dict[NodeId, Rect] = dict(self.scene.shapes)
        self.end = self.scene.output.centre if self.scene.output else (0.0, 0.0)
        if leads_on:  # to the next column, and not to the output
            self.scene.edges = [one for one in self.scene.edges if one[0].target != OUTPUT]
            self.scene.output = None

    def move(self, corner: Point) -> None:
        """Put the upper left corner of what is drawn at a point."""
        self.corner = corner
        x, y = self.moved((0.0, 0.0))
        self.picture.set("transform", f"translate({svg.px(x)} {svg.px(y)})")

    def moved(self, point: Point) -> Point:
        """Return a point of the layout as a point of the figure."""
        (x, y), (left, top) = self.corner, self.extent[:2]
        return x - left + point[0], y - top + point[1]

    def outlet(self, node_id: NodeId) -> Point:
        """Return where the edge to the next column begins, behind the label of the value."""
        x, y = self.scene.outlet(node_id)
        has_label = bool(node_labels.value_label(self.graph[node_id])) and not self.labels
        return self.moved((x, y + self.scene.outward * VALUE_HEIGHT * has_label))

    def inlet(self, node_id: NodeId) -> Point:
        """Return where the edge from the column before ends."""
        rect = self.shapes[node_id]
        return self.moved((rect.centre[0], rect.side(-self.scene.outward)))

    def _place(self) -> None:
        """Lay out everything that is not at the sides."""
        self.rest, self.hidden = _chain(self.graph, self.inputs, self.buffers)
        self.scene, self.labels = self._lay_out(self.rest), {}
        routes = [route for _, route in self.scene.edges]
        is_straight = all(abs(x - one.tip[0]) < 1 for one in routes for x, _ in one.points)
        if not self.words.shape.is_roomy:
            return
        if is_straight:
            narrow = [node._replace(type_text="") for node in self.rest.nodes]
            self.scene = self._lay_out(self.rest.with_nodes(narrow))
        else:
            self.scene = self._lay_out(self.rest, _WIDE_RANK_GAP)
        used = [node.id for node in self.rest.nodes if node.id in self.scene.used]
        self.labels = {one: self._beside(one, "start") for one in used}
        if not is_straight:
            for one in used:
                if self._is_hidden(one):
                    self.labels[one] = self._beside(one, "end")
            if any(map(self._is_hidden, used)):
                self.labels = {}
                return
        for index, frame in self.scene.frames.items():
            inside = [one.right + _PAD for one in self.labels.values() if one.overlaps(frame.rect)]
            wide = frame.rect._replace(right=max([frame.rect.right, *inside]))
            self.scene.frames[index] = replace(frame, rect=wide)

    def _beside(self, node_id: NodeId, anchor: str) -> Rect:
        """Return the rectangle of the label at the right of an edge's beginning, or at the left."""
        x, y = self.scene.outlet(node_id)
        place = (
            x + (_PAD if anchor == "start" else -_PAD),
            y + self.scene.outward * _LABEL_MIDDLE + 4,
        )
        return svg.text_rect(
            node_labels.value_label(self.graph[node_id]), place, node_labels.VALUE_SIZE, anchor
        )

    def _is_hidden(self, node_id: NodeId) -> bool:
        """Return whether something else is where the label of a value is."""
        drawn = [*self.scene.shapes.values(), *self.labels.values()]
        points = [one for _, route in self.scene.edges for one in (*route.points, route.tip)]
        drawn += [Rect.around(one, Size(1.0, 1.0)) for one in points]
        label = self.labels[node_id]
        return any(label.overlaps(other) for other in drawn if other is not label)

    def _lay_out(self, graph: Graph, rank_gap: str = _RANK_GAP) -> SceneGeometry:
        placed = place_graph(graph, self.direction, _SECONDS, rank_gap=rank_gap)
        if placed.note:
            raise DrawError(f"{placed.note} Such a figure would not be the same everywhere.")
        return SceneGeometry(graph, placed.layout, self.direction)

    def _move_labels(self) -> None:
        """Write the labels of values beside their edges, which then begin at the nodes."""
        for group in self.picture.iter("g"):
            name, size = NodeId(group.get("data-node", "")), node_labels.VALUE_SIZE
            if group.get("class") != "value" or name not in self.labels:
                continue
            (x, y), out = self.scene.outlet(name), self.scene.outward
            for part in list(group):
                group.remove(part)
            line = svg.path("M", x, y, "v", out * _LINE)
            svg.add(group, "path", d=line, stroke=self.theme.line, stroke_width=1.2)
            rect, base = self.labels[name], y + out * _LABEL_MIDDLE + 4
            place, anchor = (rect.left, "start") if rect.left > x else (rect.right, "end")
            label = node_labels.value_label(self.graph[name])
            svg.add_text(group, label, (place, base), size, self.theme.text, anchor)

    def _is_blocked(self, node_id: NodeId) -> bool:
        """Return whether another node is between a call and the left side."""
        target = self.scene.shapes[node_id]
        way = target._replace(left=-math.inf, right=target.left)
        return any(way.overlaps(rect) for rect in self.scene.shapes.values())

    def draw(self) -> Size:
        """Draw everything; return the size."""
        scene = self.scene
        if self.hidden:
            scene.edges = [one for one in scene.edges if one[0] not in self.hidden]
            scene.used = {edge.source for edge, _ in scene.edges}
        overlay = self.words.overlay
        if overlay:  # its warnings would cover the frames of boxes
            marks = {name: replace(one, is_flagged=False) for name, one in overlay.marks.items()}
            overlay = replace(overlay, marks=marks)
        draw_scene(self.picture, self.rest, scene, self.theme, overlay=overlay)
        self._move_labels()
        self._draw_alone()
        self._draw_buffers()
        self._draw_inputs()
        self._draw_highlights()
        self._draw_callouts()
        self._draw_overlay()
        for element in self.picture.iter("g"):
            if not {"param", "constant"}.isdisjoint(element.get("class", "").split()):
                _write_subscript(element)
        left, top, right, bottom = self.extent
        return Size(right - left, bottom - top)

    def _grow(self, rect: Rect) -> None:
        one = self.extent
        self.extent = Rect(
            min(one.left, rect.left),
            min(one.top, rect.top),
            max(one.right, rect.right),
            max(one.bottom, rect.bottom),
        )

    def _border(self, side: str) -> float:
        """Return the outermost x of what is drawn so far at a side."""
        rects = [*self.shapes.values(), *(frame.rect for frame in self.scene.frames.values())]
        rects += self.labels.values()
        return min(r.left for r in rects) if side == "left" else max(r.right for r in rects)

    def _draw_inputs(self) -> None:
        """Draw parameters at the left of their calls, in a column."""
        edge_of = {edge.source: edge for edge in self.graph.edges}
        border = self._border("left") - _GAP
        for node_id, nodes in self.inputs.items():
            target = self.shapes[node_id]
            sizes = [shape_size(one, 0) for one in nodes]
            y = target.centre[1] - (sum(s.height for s in sizes) + _STACKED * (len(nodes) - 1)) / 2
            for at, (node, size) in enumerate(zip(nodes, sizes, strict=True)):
                rect = Rect.at((border - size.width, y), size.width, size.height)
                y = rect.bottom + _STACKED
                entry = target.top + target.height * (at + 1) / (len(nodes) + 1)
                route = _across((rect.right, rect.centre[1]), (target.left, entry))
                draw_edge(self.picture, edge_of[node.id], node, route, self.theme)
                draw_node(self.picture, node, rect, self.theme, self.words.overlay)
                self.shapes[node.id] = rect
                has_type = self.words.shape.has_input_types
                label = node_labels.type_in_picture(node) if has_type else ""
                place = (rect.left - 6, rect.centre[1] + 4)
                if label:
                    svg.add_text(
                        self.picture, label, place, node_labels.VALUE_SIZE, self.theme.text, "end"
                    )
                width = svg.text_width(label, node_labels.VALUE_SIZE)
                self._grow(rect._replace(left=place[0] - width))

    def _draw_alone(self) -> None:
        """Draw calls without operands or uses at the right, where the program has them."""
        left, wanted, out = self._border("right") + _GAP, [], self.scene.outward
        frames = [one.rect.right - one.rect.width / 3 for one in self.scene.frames.values()]
        start = min(frames, default=left - _GAP)  # into the gap where it is between two of them
        placed = [one for one in self.graph.nodes if not one.is_input]
        for node in _alone(self.graph):
            at = placed.index(node)
            before = [self._around(one, node) for one in placed[:at] if one.id in self.shapes]
            after = [self._around(one, node) for one in placed[at:] if one.id in self.shapes]
            ends = [rect.side(out) for rect in before[-1:]]
            ends += [rect.side(-out) for rect in after[:1]]
            wanted.append((sum(ends) / max(len(ends), 1), node))
        wanted.sort(key=lambda one: one[0])
        sizes = [shape_size(node, 0) for _, node in wanted]
        centres = [(y, size.height) for (y, _), size in zip(wanted, sizes, strict=True)]
        for (y, node), size, top in zip(wanted, sizes, _apart(centres, -math.inf), strict=True):
            rect = Rect.at((left, top), size.width, size.height)
            line = svg.path("M", left, rect.centre[1], "L", left - _GAP, y, "L", start, y)
            _draw_leader(self.picture, line, self.theme)
            svg.add(self.picture, "circle", cx=start, cy=y, r=3, fill=self.theme.line)
            draw_node(self.picture, node, rect, self.theme, self.words.overlay)
            self.shapes[node.id] = rect
            self._grow(rect)
            if words := self.words.notes.get(node.id):  # below: there is a line at its left
                place, style = (rect.centre[0], rect.bottom + 14), {"font_weight": "600"}
                svg.add_text(self.picture, words, place, CODE_SIZE, self.theme.text, **style)
                self._grow(Rect.around(place, Size(svg.text_width(words, CODE_SIZE), 8.0)))

    def _around(self, node: Node, other: Node) -> Rect:
        """Return the frame of the block of a node, or the node where another is in the block."""
        region = node.region if node.region != other.region else None
        frame = None if region is None else self.scene.frames.get(region)
        return frame.rect if frame else self.shapes[node.id]

    def _draw_buffers(self) -> None:
        """Draw buffers at the right of the calls that write them, in a column."""
        if not self.buffers:
            return
        border = self._border("right") + 3 * _GAP
        writes = [edge for edge in self.graph.edges if edge.is_write]
        width = max(shape_size(one, 1).width for one in self.buffers.values())
        for edge in writes:
            node, source = self.graph[edge.target], self.shapes[edge.source]
            if node.id in self.shapes:
                continue
            size = shape_size(node, 1)
            rect = Rect.around((border + width / 2, source.centre[1]), Size(width, size.height))
            self.shapes[node.id] = rect
            ends = (source.right, source.centre[1]), (rect.left, source.centre[1])
            if self.words.has_outputs:
                draw_edge(self.picture, edge, self.graph[edge.source], _across(*ends), self.theme)
                label = node_labels.type_in_picture(self.graph[edge.source])
                place = ((source.right + rect.left) / 2, source.centre[1] - 8)
                svg.add_text(self.picture, label, place, node_labels.VALUE_SIZE, self.theme.text)
            else:
                given = Edge(node.id, edge.source, edge.position)
                draw_edge(self.picture, given, node, _across(*reversed(ends)), self.theme)
            draw_node(self.picture, node, rect, self.theme, self.words.overlay)
            self._grow(rect)
        for edge in self.graph.edges:
            if edge.source in self.buffers:
                self._draw_read(edge, len(self.graph.entering[edge.target]))
        for name in self.graph.outputs:
            if name in self.buffers:
                self._draw_return(name)

    def _draw_read(self, edge: Edge, arguments: int) -> None:
        """Draw the edge from a buffer to a call that reads it."""
        out = self.scene.outward
        source, target = self.shapes[edge.source], self.shapes[edge.target]
        start = (source.left + 10, source.side(out))
        x = target.left + target.width * (0.5 if arguments == 1 else 0.75)
        end = (x, target.side(-out))
        before = (x, end[1] - out * _TIP)
        middle = (start[1] + before[1]) / 2
        route = Route((start, (start[0], middle), (x, middle), before), end)
        self._draw_value(edge, route)

    def _draw_value(self, edge: Edge, route: Route) -> None:
        """Draw an edge that leaves a buffer, with the label of the value beside it."""
        node, (x, y) = self.graph[edge.source], route.points[0]
        draw_edge(self.picture, edge, node, route, self.theme)
        label = node_labels.value_label(node)
        place = (x + 6, y + (-7.0 if self.scene.outward < 0 else 14.0))
        svg.add_text(self.picture, label, place, node_labels.VALUE_SIZE, self.theme.text, "start")
        self._grow(Rect.at(place, svg.text_width(label, node_labels.VALUE_SIZE), 1.0))

    def _draw_return(self, name: NodeId) -> None:
        out, rect = self.scene.outward, self.shapes[name]
        x, start = rect.left + 10, rect.side(out)
        box = Rect.around((x, start + 30 * out), output_size())
        end = box.side(-out)
        near = end - out * _TIP
        route = Route(((x, start), (x, start), (x, near), (x, near)), (x, end))
        self._draw_value(Edge(name, OUTPUT, ()), route)
        draw_output(self.picture, box, self.theme)
        self._grow(box)

    def _draw_highlights(self) -> None:
        colour = self.theme.changes["changed"]
        for name in filter(self.shapes.__contains__, self.words.highlight):
            shape = node_style(self.graph[name]).shape
            ring = svg.add(self.picture, "g", "highlight")
            lines = {"fill": "none", "stroke": colour}
            add_shape(ring, shape, self.shapes[NodeId(name)], **lines, stroke_width=4.0)

    def _draw_overlay(self) -> None:
        """Draw the labels and warnings of an overlay at the right of nodes, and its legend."""
        overlay = self.words.overlay
        if overlay is None:
            return
        for name, mark in overlay.marks.items():
            if name not in self.scene.shapes or not mark.text:  # the edges of others leave there
                continue
            rect = self.scene.shapes[name]
            frames = [one.rect for one in self.scene.frames.values() if one.rect.overlaps(rect)]
            x, y = max(one.right for one in (rect, *frames)) + _PAD, rect.centre[1]
            if mark.is_flagged:
                draw_flag(self.picture, (x + 2 * _PAD, y), self.theme, is_first=mark.is_first)
                x += 5 * _PAD
            group = svg.add(self.picture, "g", "word", data_node=name)
            at, style = (x, y + 4), {"font_weight": "600"}
            svg.add_text(group, mark.text, at, CODE_SIZE, self.theme.text, "start", **style)
            self._grow(Rect.at(at, svg.text_width(mark.text, CODE_SIZE), 1.0))
        size = legend_size(overlay)
        corner = self.extent.right + _GAP, self.extent.bottom - size.height
        draw_overlay_legend(self.picture, overlay, corner, self.theme)
        self._grow(Rect.at(corner, *size))

    def _draw_callouts(self) -> None:
        """Draw callouts at the right, each beside its node, or below the graph."""
        most = self.words.shape.width
        beside = self.words.notes.keys() - {node.id for node in _alone(self.graph)}
        names = [name for name in self.shapes if name in {*self.words.callouts, *beside}]
        if not names:
            return
        names.sort(key=lambda name: self.shapes[name].centre[1])
        code = [
            [part for line in self.words.callouts.get(name, ()) for part in wrapped(line, most)]
            for name in names
        ]
        sizes = [self._callout_size(*one) for one in zip(names, code, strict=True)]
        right, is_below = self._border("right"), self.words.are_below
        tops = _apart(
            [
                (self.shapes[one].centre[1], size.height)
                for one, size in zip(names, sizes, strict=True)
            ],
            self.extent.bottom + _GAP if is_below else self.extent.top,
        )
        for name, lines, size, top in zip(names, code, sizes, tops, strict=True):
            left = max(self.extent.left, right + _GAP - size.width)
            rect = Rect.at((left if is_below else right + 1.2 * _GAP, top), *size)
            node = self.shapes[name]
            start, turn = (node.right, node.centre[1]), right + _GAP / 2
            end = (rect.left, rect.centre[1])
            ways = [(turn, start[1]), (turn, rect.top)] if is_below else [end]
            line = svg.path("M", *start, *(part for way in ways for part in ("L", *way)))
            _draw_leader(self.picture, line, self.theme)
            self._draw_callout(name, lines, rect)
            self._grow(rect)

    def _callout_size(self, name: NodeId, lines: Sequence[str]) -> Size:
        words = self.words.notes.get(name, "")
        width = max(svg.text_width(line, CODE_SIZE) for line in (words, *lines))
        height = len(lines) * LINE_HEIGHT + (_WORDS_HEIGHT if words else 0.0)
        return Size(width + 2 * _PAD, height + 2 * _PAD)

    def _draw_callout(self, name: NodeId, lines: Sequence[str], rect: Rect) -> None:
        """Draw a box with lines of TVMScript, and a few words above them."""
        group, theme = svg.add(self.picture, "g", "callout", data_node=name), self.theme
        style: dict[str, str | float] = {"fill": theme.background, "stroke": theme.line}
        svg.add_rect(group, rect, rx=4.0, stroke_width=1.3, stroke_dasharray="4 3", **style)
        x, y = rect.left + _PAD, rect.top + _PAD
        if words := self.words.notes.get(name):
            bold = {"font_weight": "600"}
            svg.add_text(group, words, (x, y + 11), CODE_SIZE, theme.text, "start", **bold)
            y += _WORDS_HEIGHT
        draw_code(group, lines, (x, y), theme)


def _draw_leader(picture: ElementTree.Element, line: str, theme: Theme) -> None:
    style: dict[str, str | float] = {"fill": "none", "stroke": theme.line, "stroke_width": 1.3}
    svg.add(picture, "path", "leader", d=line, stroke_dasharray="4 3", **style)


def _alone(graph: Graph) -> list[Node]:
    """Return the calls without operands or uses, such as allocations that are only an effect."""
    used = {*graph.entering, *graph.leaving, *graph.outputs}
    return [one for one in graph.nodes if one.id not in used and not one.is_input]


def _chain(
    graph: Graph, inputs: Mapping[NodeId, Sequence[Node]], buffers: Mapping[NodeId, Node]
) -> tuple[Graph, Collection[Edge]]:
    """Return the graph without what is at the sides, and edges that only hold it together.

    A call that reads a buffer follows the calls that write it.
    """
    beside = {node.id for nodes in inputs.values() for node in nodes} | buffers.keys()
    beside.update(node.id for node in _alone(graph))
    writers = grouped((edge.target, edge.source) for edge in graph.edges if edge.is_write)
    hidden = {
        Edge(writer, edge.target, edge.position)
        for edge in graph.edges
        if edge.source in buffers
        for writer in writers.get(edge.source, ())
        if writer != edge.target
    }
    kept = [edge for edge in graph.edges if edge.source not in beside and edge.target not in beside]
    index = graph.index
    edges = sorted(
        {*kept, *hidden}, key=lambda edge: (index[edge.target], edge.position, index[edge.source])
    )
    nodes = [node for node in graph.nodes if node.id not in beside]
    outputs = [one for one in graph.outputs if one not in beside]
    rest = replace(graph, nodes=tuple(nodes), edges=tuple(edges), outputs=tuple(outputs))
    return rest, hidden


def _across(start: Point, end: Point) -> Route:
    """Return a route that leaves a node and enters the next one horizontally."""
    near = (end[0] - _TIP if end[0] > start[0] else end[0] + _TIP, end[1])
    middle = (start[0] + near[0]) / 2
    return Route((start, (middle, start[1]), (middle, end[1]), near), end)


def _apart(wanted: Sequence[tuple[float, float]], top: float) -> list[float]:
    """Return the tops of boxes of these centres and heights, at least 8 px apart."""
    tops: list[float] = []
    for centre, height in wanted:
        tops.append(max(centre - height / 2, top))
        top = tops[-1] + height + 8
    return tops


def _write_subscript(group: ElementTree.Element) -> None:
    """Write the number at the end of a parameter's name as a subscript."""
    for text in group.iter("text"):
        found = _SUBSCRIPT.fullmatch(text.text or "")
        if text.get("class") == "name" and found:
            text.text = found[1]
            number = svg.add(text, "tspan", dy=3.5, font_size=node_labels.NOTE_SIZE)
            number.text = found[2]
