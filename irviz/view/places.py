"""Where in a picture everything is that is drawn of a graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from irviz.model.graph import OUTPUT, Edge, Graph, NodeId
from irviz.view.box import Box, around
from irviz.view.dot import VALUE_HEIGHT, Size, frame_title, output_size, shape_size
from irviz.view.edges import along, arrow_box
from irviz.view.frames import title_box
from irviz.view.layout import Frame, Layout, Point
from irviz.view.nodes import value_box
from irviz.view.overlay import Overlay
from irviz.view.sign import TOGGLE_RADIUS, flag_box, sign_place

_STEP = 6.0
"""How far the points of a line are from each other that words had better not cover, in px."""
_CHANGE = Size(14.0, 14.0)
"""What a page marks a changed node with, at its upper left corner."""


class Places:
    """Where the nodes, values and signs of a graph are, by the index of each node."""

    def __init__(self, graph: Graph, layout: Layout, direction: str) -> None:
        self._graph, self._layout = graph, layout
        self.outward = -1.0 if direction == "up" else 1.0
        """Where values leave their nodes: upwards or downwards."""
        self.frames: dict[int, Frame] = {
            int(name.removeprefix("cluster_")): frame for name, frame in layout.frames.items()
        }
        self.ends = [*graph.edges, *(Edge(source, OUTPUT, ()) for source in graph.outputs)]
        """The edges, and those that lead to what is returned: each has its route by its index."""
        arguments = Counter(edge.target for edge in graph.edges)
        self.sizes = [shape_size(node, arguments[node.id]) for node in graph.nodes]
        self.used = {edge.source for edge in self.ends}

    def centre(self, index: int) -> Point:
        """Return the middle of a node's outline."""
        x, y = self._layout.nodes[f"n{index}"]
        return (x, y - self.outward * VALUE_HEIGHT / 2)

    def box(self, index: int) -> Box:
        """Return the room of a node's outline."""
        return around(self.centre(index), self.sizes[index])

    def outlet(self, index: int) -> Point:
        """Return where a node's value leaves it."""
        x, y = self.centre(index)
        return (x, y + self.outward * self.sizes[index].height / 2)

    def toggle(self, index: int) -> Point:
        """Return where the sign of a node stands that opens it."""
        x, y = self.centre(index)
        size = self.sizes[index]
        return sign_place(x - size.width / 2, y - size.height / 2, size.width)

    def flag(self, index: int) -> Point:
        """Return where a warning on a node stands: on its left side, clear of its words."""
        box = self.box(index)
        return (box.left - 7, (box.top + box.bottom) / 2)

    def taken(self, overlay: Overlay, openable: Collection[str]) -> Iterator[Box]:
        """Yield the room of all that words must not cover."""
        toggle = Size(2 * TOGGLE_RADIUS, 2 * TOGGLE_RADIUS)
        for index, node in enumerate(self._graph.nodes):
            box = self.box(index)
            yield box
            yield around((box.left, box.top), _CHANGE)
            if node.id in self.used:
                yield value_box(node, self.outlet(index), self.outward)
            if node.id in openable:
                yield around(self.toggle(index), toggle)
            mark = overlay.marks.get(node.id)
            if mark and mark.is_flagged:
                yield flag_box(self.flag(index), is_first=mark.is_first)
        for index, frame in self.frames.items():
            yield title_box(frame, frame_title(self._graph, index))
            if self._graph.regions[index].id:
                yield around(sign_place(frame.x, frame.y, frame.width), toggle)
        for index in range(len(self.ends)):
            yield arrow_box(self._layout.routes[f"e{index}"])
        if self._graph.outputs:
            yield around(self._layout.nodes[OUTPUT], output_size())

    def crossed(self) -> Iterator[Point]:
        """Yield points of the lines that words may cover, but had better not."""
        for index in range(len(self.ends)):
            yield from along(self._layout.routes[f"e{index}"], _STEP)
        for frame in self.frames.values():
            steps = int(frame.width / _STEP), int(frame.height / _STEP)
            for step in range(steps[0]):
                yield (frame.x + step * _STEP, frame.y)
                yield (frame.x + step * _STEP, frame.y + frame.height)
            for step in range(steps[1]):
                yield (frame.x, frame.y + step * _STEP)
                yield (frame.x + frame.width, frame.y + step * _STEP)

    def words(self, overlay: Overlay) -> dict[NodeId, tuple[str, Box]]:
        """Return the words of an overlay, each with the box that they stand beside."""
        return {
            node.id: (overlay.marks[node.id].text, self._with_flag(index, overlay))
            for index, node in enumerate(self._graph.nodes)
            if node.id in overlay.marks and overlay.marks[node.id].text
        }

    def _with_flag(self, index: int, overlay: Overlay) -> Box:
        box, mark = self.box(index), overlay.marks[self._graph.nodes[index].id]
        if not mark.is_flagged:
            return box
        return box._replace(left=flag_box(self.flag(index), is_first=mark.is_first).left)
