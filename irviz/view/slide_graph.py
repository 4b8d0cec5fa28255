"""A graph in blackboard style: the chain of calls, with everything else at the sides.

Parameters of a single call are at its left, buffers at the right of the call that writes them, and
callouts, which show text, further out. The rest is laid out like any graph.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from xml.etree import ElementTree

from irviz.errors import DrawError
from irviz.model.graph.graph import INPUT_KINDS, OUTPUT, Edge, Graph, Node, NodeId
from irviz.view import svg_primitives as svg
from irviz.view.graph import node_labels
from irviz.view.graph.graph_figure import draw_scene, place_graph
from irviz.view.graph.layout import Route
from irviz.view.graph.nodes_and_edges import (
    SceneGeometry,
    add_shape,
    draw_edge,
    draw_node,
    draw_output,
    output_size,
    shape_size,
)
from irviz.view.slide import CODE_SIZE, LINE_HEIGHT, draw_code, wrapped
from irviz.view.svg_primitives import Point, Rect, Size
from irviz.view.theme import Theme, node_style

_SECONDS = 60.0
"""The time limit of a layout, long enough that a busy machine gives the same one."""
_RANK_GAP = "0.17"
_GAP = 20.0
_STACKED = 5.0
_PAD = 6.0
_WORDS_HEIGHT = 16.0
_TIP = 7.0
_SUBSCRIPT = re.compile(r"([A-Za-z]+)_?(\d+)")


@dataclass(frozen=True)
class GraphWords:
    """Texts and marks added to a graph.

    Attributes:
        callouts: The lines of TVMScript beside a node.
        notes: Short notes beside nodes.
        highlight: The nodes with a thick outline.
        width: The most characters of a line of a callout.
        has_input_types: Whether the types of the inputs at the left are written.
        has_outputs: Whether a buffer is drawn as the output of the calls that write it; otherwise
            it is drawn as one of their inputs, as which they are given it.
    """

    callouts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    highlight: Collection[str] = ()
    width: int = 42
    has_input_types: bool = True
    has_outputs: bool = True


def draw_graph_panel(
    graph: Graph, theme: Theme, direction: str = "up", words: GraphWords | None = None
) -> tuple[ElementTree.Element, Size]:
    """Return a group with the drawn graph, and its size.

    Raises:
        DrawError: A text or mark names an unknown node, or the layout took too long.
        UnknownNodeError: A named node does not exist.
    """
    words = words or GraphWords()
    for name in (*words.callouts, *words.notes, *words.highlight):
        graph[name]
    inputs = _side_inputs(graph)
    buffers = {edge.target: graph[edge.target] for edge in graph.edges if edge.is_write}
    return _Panel(graph, theme, direction, words, inputs, buffers).draw()


def _side_inputs(graph: Graph) -> dict[NodeId, list[Node]]:
    """Return the inputs placed beside each node: those after its first operand, used once."""
    found: dict[NodeId, list[Node]] = {}
    for node in graph.nodes:
        operands = graph.entering.get(node.id, ())
        for edge in operands[1:]:
            one = graph[edge.source]
            if one.kind in INPUT_KINDS and len(graph.leaving[one.id]) == 1:
                found.setdefault(node.id, []).append(one)
    return found


class _Panel:
    """The parts of the picture in the order in which they are placed."""

    def __init__(
        self,
        graph: Graph,
        theme: Theme,
        direction: str,
        words: GraphWords,
        inputs: Mapping[NodeId, list[Node]],
        buffers: Mapping[NodeId, Node],
    ) -> None:
        # the order of effects is told by numbers, which a lecture would have to explain
        pure = [node._replace(is_pure=True) for node in graph.nodes]
        self.graph, self.theme, self.direction = graph.with_nodes(pure), theme, direction
        self.words = words
        self.inputs, self.buffers = dict(inputs), buffers
        self.root = ElementTree.Element("g", {"class": "graph-panel"})
        self._place()
        while blocked := [node_id for node_id in self.inputs if self._is_blocked(node_id)]:
            for node_id in blocked:
                del self.inputs[node_id]
            self._place()
        self.extent = Rect(0.0, 0.0, *self.scene.size)
        self.shapes: dict[NodeId, Rect] = dict(self.scene.shapes)

    def _place(self) -> None:
        """Lay out everything that is not at the sides."""
        self.rest, self.hidden = _chain(self.graph, self.inputs, self.buffers)
        placed = place_graph(self.rest, self.direction, _SECONDS, rank_gap=_RANK_GAP)
        if placed.note:
            raise DrawError(f"{placed.note} Such a figure would not be the same everywhere.")
        self.scene = SceneGeometry(self.rest, placed.layout, self.direction)

    def _is_blocked(self, node_id: NodeId) -> bool:
        """Return whether another node is between a call and the left side."""
        target = self.scene.shapes[node_id]
        way = target._replace(left=-math.inf, right=target.left)
        return any(way.overlaps(rect) for rect in self.scene.shapes.values())

    def draw(self) -> tuple[ElementTree.Element, Size]:
        """Draw everything; return the group and its size."""
        scene = self.scene
        if self.hidden:
            scene.edges = [one for one in scene.edges if one[0] not in self.hidden]
            scene.used = {edge.source for edge, _ in scene.edges}
        picture = svg.add(self.root, "g")
        draw_scene(picture, self.rest, scene, self.theme)
        self._draw_alone(picture)
        self._draw_buffers(picture)
        self._draw_inputs(picture)
        self._draw_highlights(picture)
        self._draw_callouts(picture)
        for element in picture.iter("g"):
            if "param" in element.get("class", "").split():
                _write_subscript(element)
        left, top, right, bottom = self.extent
        picture.set("transform", f"translate({svg.px(-left)} {svg.px(-top)})")
        return self.root, Size(right - left, bottom - top)

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
        chosen = [rect.left for rect in rects] if side == "left" else [one.right for one in rects]
        return min(chosen) if side == "left" else max(chosen)

    def _draw_inputs(self, picture: ElementTree.Element) -> None:
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
                draw_edge(picture, edge_of[node.id], node, route, self.theme)
                draw_node(picture, node, rect, self.theme, None)
                self.shapes[node.id] = rect
                label = node.type_label if self.words.has_input_types else ""
                place = (rect.left - 6, rect.centre[1] + 4)
                if label:
                    svg.add_text(
                        picture, label, place, node_labels.VALUE_SIZE, self.theme.text, "end"
                    )
                width = svg.text_width(label, node_labels.VALUE_SIZE)
                self._grow(rect._replace(left=place[0] - width))

    def _draw_alone(self, picture: ElementTree.Element) -> None:
        """Draw calls without operands or uses at the right, where the program has them."""
        left, wanted = self._border("right") + _GAP, []
        placed = [one for one in self.graph.nodes if one.kind not in INPUT_KINDS]
        for node in _alone(self.graph):
            at = placed.index(node)
            before = [self._around(one, node) for one in placed[:at] if one.id in self.shapes]
            after = [self._around(one, node) for one in placed[at:] if one.id in self.shapes]
            if self.direction == "up":
                ends = [rect.top for rect in before[-1:]] + [rect.bottom for rect in after[:1]]
            else:
                ends = [rect.bottom for rect in before[-1:]] + [rect.top for rect in after[:1]]
            wanted.append((sum(ends) / max(len(ends), 1), node))
        wanted.sort(key=lambda one: one[0])
        sizes = [shape_size(node, 0) for _, node in wanted]
        centres = [(y, size.height) for (y, _), size in zip(wanted, sizes, strict=True)]
        for (y, node), size, top in zip(wanted, sizes, _apart(centres, -math.inf), strict=True):
            rect = Rect.at((left, top), size.width, size.height)
            line = svg.path("M", left, rect.centre[1], "L", left - 2 * _GAP, y)
            _draw_leader(picture, line, self.theme)
            draw_node(picture, node, rect, self.theme, None)
            self.shapes[node.id] = rect
            self._grow(rect)

    def _around(self, node: Node, other: Node) -> Rect:
        """Return the frame of the block of a node, or the node where another is in the block."""
        region = node.region if node.region != other.region else None
        frame = None if region is None else self.scene.frames.get(region)
        return frame.rect if frame else self.shapes[node.id]

    def _draw_buffers(self, picture: ElementTree.Element) -> None:
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
                draw_edge(picture, edge, self.graph[edge.source], _across(*ends), self.theme)
                label = self.graph[edge.source].type_label
                place = ((source.right + rect.left) / 2, source.centre[1] - 8)
                svg.add_text(picture, label, place, node_labels.VALUE_SIZE, self.theme.text)
            else:
                given = Edge(node.id, edge.source, edge.position)
                draw_edge(picture, given, node, _across(*reversed(ends)), self.theme)
            draw_node(picture, node, rect, self.theme, None)
            self._grow(rect)
        for edge in self.graph.edges:
            if edge.source in self.buffers:
                self._draw_read(picture, edge, len(self.graph.entering[edge.target]))
        for name in self.graph.outputs:
            if name in self.buffers:
                self._draw_return(picture, name)

    def _draw_read(self, picture: ElementTree.Element, edge: Edge, arguments: int) -> None:
        """Draw the edge from a buffer to a call that reads it."""
        up = self.direction == "up"
        source, target = self.shapes[edge.source], self.shapes[edge.target]
        start = (source.left + 10, source.top if up else source.bottom)
        x = target.left + target.width * (0.5 if arguments == 1 else 0.75)
        end = (x, target.bottom if up else target.top)
        before = (x, end[1] + (_TIP if up else -_TIP))
        middle = (start[1] + before[1]) / 2
        route = Route((start, (start[0], middle), (x, middle), before), end)
        node = self.graph[edge.source]
        draw_edge(picture, edge, node, route, self.theme)
        label = node_labels.value_label(node)
        place = (start[0] + 6, start[1] + (-7.0 if up else 14.0))
        svg.add_text(picture, label, place, node_labels.VALUE_SIZE, self.theme.text, "start")
        self._grow(Rect.at(place, svg.text_width(label, node_labels.VALUE_SIZE), 1.0))

    def _draw_return(self, picture: ElementTree.Element, name: NodeId) -> None:
        up, rect, size = self.direction == "up", self.shapes[name], output_size()
        x, y = rect.centre[0], rect.top - 30 if up else rect.bottom + 30
        box = Rect.around((x, y), size)
        start, end = (rect.top, box.bottom) if up else (rect.bottom, box.top)
        near = end + (_TIP if up else -_TIP)
        route = Route(((x, start), (x, start), (x, near), (x, near)), (x, end))
        draw_edge(picture, Edge(name, OUTPUT, ()), self.graph[name], route, self.theme)
        draw_output(picture, box, self.theme)
        self._grow(box)

    def _draw_highlights(self, picture: ElementTree.Element) -> None:
        colour = self.theme.changes["changed"]
        for name in self.words.highlight:
            shape = node_style(self.graph[name]).shape
            ring = svg.add(picture, "g", "highlight")
            lines = {"fill": "none", "stroke": colour}
            add_shape(ring, shape, self.shapes[NodeId(name)], **lines, stroke_width=4.0)

    def _draw_callouts(self, picture: ElementTree.Element) -> None:
        """Draw callouts at the right, each beside its node and below the one above."""
        names = [name for name in self.shapes if name in {*self.words.callouts, *self.words.notes}]
        if not names:
            return
        boxes = [_Callout.of(name, self.words) for name in names]
        boxes.sort(key=lambda one: self.shapes[NodeId(one.name)].centre[1])
        left = self._border("right") + 1.2 * _GAP
        tops = _apart(
            [(self.shapes[NodeId(one.name)].centre[1], one.size.height) for one in boxes],
            self.extent.top,
        )
        for one, top in zip(boxes, tops, strict=True):
            rect = Rect.at((left, top), one.size.width, one.size.height)
            node = self.shapes[NodeId(one.name)]
            start = (node.right, node.centre[1])
            line = svg.path("M", *start, "L", left, rect.centre[1])
            _draw_leader(picture, line, self.theme)
            one.draw(picture, rect, self.theme)
            self._grow(rect)


@dataclass(frozen=True)
class _Callout:
    """A box with lines of TVMScript, and a few words above them."""

    name: str
    lines: Sequence[str]
    words: str
    size: Size

    @classmethod
    def of(cls, name: str, given: GraphWords) -> _Callout:
        code = given.callouts.get(name, ())
        lines = [part for line in code for part in wrapped(line, given.width)]
        words = given.notes.get(name, "")
        width = max(
            [svg.text_width(words, CODE_SIZE), *(svg.text_width(one, CODE_SIZE) for one in lines)]
        )
        height = len(lines) * LINE_HEIGHT + (_WORDS_HEIGHT if words else 0.0)
        return cls(name, lines, words, Size(width + 2 * _PAD, height + 2 * _PAD))

    def draw(self, picture: ElementTree.Element, rect: Rect, theme: Theme) -> None:
        group = svg.add(picture, "g", "callout", data_node=self.name)
        style: dict[str, str | float] = {"fill": theme.background, "stroke": theme.line}
        svg.add_rect(group, rect, rx=4.0, stroke_width=1.3, stroke_dasharray="4 3", **style)
        y = rect.top + _PAD
        if self.words:
            place = (rect.left + _PAD, y + 11)
            svg.add_text(
                group, self.words, place, CODE_SIZE, theme.text, "start", font_weight="600"
            )
            y += _WORDS_HEIGHT
        draw_code(group, self.lines, (rect.left + _PAD, y), theme)


def _draw_leader(picture: ElementTree.Element, line: str, theme: Theme) -> None:
    style: dict[str, str | float] = {"fill": "none", "stroke": theme.line, "stroke_width": 1.3}
    svg.add(picture, "path", "leader", d=line, stroke_dasharray="4 3", **style)


def _alone(graph: Graph) -> list[Node]:
    """Return the calls without operands or uses, such as allocations that are only an effect."""
    used = {*graph.entering, *graph.leaving, *graph.outputs}
    return [one for one in graph.nodes if one.id not in used and one.kind not in INPUT_KINDS]


def _chain(
    graph: Graph, inputs: Mapping[NodeId, Sequence[Node]], buffers: Mapping[NodeId, Node]
) -> tuple[Graph, Collection[Edge]]:
    """Return the graph without what is at the sides, and edges that only hold it together.

    A call that reads a buffer follows the calls that write it.
    """
    beside = {node.id for nodes in inputs.values() for node in nodes} | buffers.keys()
    beside.update(node.id for node in _alone(graph))
    writers: dict[NodeId, list[NodeId]] = {}
    for edge in graph.edges:
        if edge.is_write:
            writers.setdefault(edge.target, []).append(edge.source)
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
