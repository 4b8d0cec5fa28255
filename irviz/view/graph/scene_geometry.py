"""Where the parts of a drawn graph are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from irviz.model.graph.graph import OUTPUT, Edge, Graph, NodeId
from irviz.view.geometry import Point, Rect, Size
from irviz.view.graph.clusters import cluster_title, cluster_title_rect
from irviz.view.graph.edges import arrow_rect, points_along
from irviz.view.graph.layout import ClusterFrame, Layout
from irviz.view.graph.markers import TOGGLE_RADIUS, flag_rect, toggle_position
from irviz.view.graph.node_shapes import VALUE_HEIGHT, output_size, shape_size
from irviz.view.graph.nodes import value_label_rect
from irviz.view.graph.overlay import Overlay

_STEP = 6.0
"""The distance between the points that stand for a line, in px."""
_CHANGE_MARKER = Size(14.0, 14.0)
"""The marker that a page puts on a changed node, at its upper left corner."""
_TOGGLE = Size(2 * TOGGLE_RADIUS, 2 * TOGGLE_RADIUS)


class SceneGeometry:
    """The positions of nodes (by index), values, markers, edges and clusters.

    Attributes:
        outward: The direction in which values leave their nodes: -1 upwards, 1 downwards.
        frames: The frames of clusters by the index of their region.
        edges: The graph's edges and those to its output; the route of the third is `e2`.
        sizes: The size of each node's shape.
        used: The nodes that an edge leaves.
    """

    def __init__(self, graph: Graph, layout: Layout, direction: str) -> None:
        self._graph, self._layout = graph, layout
        self.outward = -1.0 if direction == "up" else 1.0
        self.frames: dict[int, ClusterFrame] = {
            int(name.removeprefix("cluster_")): frame for name, frame in layout.frames.items()
        }
        self.edges = [*graph.edges, *(Edge(source, OUTPUT, ()) for source in graph.outputs)]
        arguments = Counter(edge.target for edge in graph.edges)
        self.sizes = [shape_size(node, arguments[node.id]) for node in graph.nodes]
        self.used = {edge.source for edge in self.edges}

    def centre(self, index: int) -> Point:
        """Return the centre of a node's shape: the layout's node includes the value's label."""
        x, y = self._layout.nodes[f"n{index}"]
        return (x, y - self.outward * VALUE_HEIGHT / 2)

    def rect(self, index: int) -> Rect:
        """Return the rectangle of a node's shape."""
        return Rect.around(self.centre(index), self.sizes[index])

    def outlet(self, index: int) -> Point:
        """Return the point where edges leave a node."""
        x, y = self.centre(index)
        return (x, y + self.outward * self.sizes[index].height / 2)

    def toggle(self, index: int) -> Point:
        """Return the centre of a node's button."""
        rect = self.rect(index)
        return toggle_position(rect.left, rect.top, rect.right - rect.left)

    def flag(self, index: int) -> Point:
        """Return the centre of a node's warning: at its left side, clear of its texts."""
        rect = self.rect(index)
        return (rect.left - 7, (rect.top + rect.bottom) / 2)

    def obstacles(self, overlay: Overlay, expandable: Collection[str]) -> Iterator[Rect]:
        """Yield the rectangles that the labels of an overlay must not overlap."""
        for index, node in enumerate(self._graph.nodes):
            rect = self.rect(index)
            yield rect
            yield Rect.around((rect.left, rect.top), _CHANGE_MARKER)
            if node.id in self.used:
                yield value_label_rect(node, self.outlet(index), self.outward)
            if node.id in expandable:
                yield Rect.around(self.toggle(index), _TOGGLE)
            mark = overlay.marks.get(node.id)
            if mark and mark.is_flagged:
                yield flag_rect(self.flag(index), is_first=mark.is_first)
        for index, frame in self.frames.items():
            yield cluster_title_rect(frame, cluster_title(self._graph, index))
            if self._graph.regions[index].id:
                yield Rect.around(toggle_position(frame.x, frame.y, frame.width), _TOGGLE)
        for index in range(len(self.edges)):
            yield arrow_rect(self._layout.routes[f"e{index}"])
        if self._graph.outputs:
            yield Rect.around(self._layout.nodes[OUTPUT], output_size())

    def lines(self) -> Iterator[Point]:
        """Yield points of the edges and frames, which labels should not cover."""
        for index in range(len(self.edges)):
            yield from points_along(self._layout.routes[f"e{index}"], _STEP)
        for frame in self.frames.values():
            steps = int(frame.width / _STEP), int(frame.height / _STEP)
            for step in range(steps[0]):
                yield (frame.x + step * _STEP, frame.y)
                yield (frame.x + step * _STEP, frame.y + frame.height)
            for step in range(steps[1]):
                yield (frame.x, frame.y + step * _STEP)
                yield (frame.x + frame.width, frame.y + step * _STEP)

    def labels(self, overlay: Overlay) -> dict[NodeId, tuple[str, Rect]]:
        """Return the labels of an overlay, with the rectangle of each node and its warning."""
        labels = {}
        for index, node in enumerate(self._graph.nodes):
            mark = overlay.marks.get(node.id)
            if mark and mark.text:
                rect = self.rect(index)
                if mark.is_flagged:
                    left = flag_rect(self.flag(index), is_first=mark.is_first).left
                    rect = rect._replace(left=left)
                labels[node.id] = (mark.text, rect)
        return labels
