"""Where the parts of a drawn graph are."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from irviz.model.graph.graph import OUTPUT, Edge, Graph, NodeId
from irviz.view.geometry import Point, Rect, Size
from irviz.view.graph.graphviz_layout import ClusterFrame, Layout
from irviz.view.graph.nodes_and_edges import (
    VALUE_HEIGHT,
    arrow_rect,
    cluster_title,
    cluster_title_rect,
    output_size,
    points_along,
    shape_size,
    value_label_rect,
    value_width,
)
from irviz.view.graph.overlay import TOGGLE_RADIUS, Overlay, flag_rect

_STEP = 6.0
"""The distance between the points that stand for a line, in px."""
_CHANGE_MARKER = Size(14.0, 14.0)
"""The marker that a page puts on a changed node, at its upper left corner."""
_TOGGLE = Size(2 * TOGGLE_RADIUS, 2 * TOGGLE_RADIUS)


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
        for index, node in enumerate(graph.nodes):
            if given := layout.shapes.get(f"n{index}"):
                self.shapes[node.id] = given
                continue
            x, y = layout.nodes[f"n{index}"]
            middle = (x, y - self.outward * VALUE_HEIGHT / 2)  # the layout includes the value
            arguments = len(graph.entering.get(node.id, ()))
            self.shapes[node.id] = Rect.around(middle, shape_size(node, arguments))
        self.frames: dict[int, ClusterFrame] = {
            int(name.removeprefix("cluster_")): frame for name, frame in layout.frames.items()
        }
        edges = [*graph.edges, *(Edge(source, OUTPUT, ()) for source in graph.outputs)]
        self.edges = [(edge, layout.routes[f"e{index}"]) for index, edge in enumerate(edges)]
        self.output = Rect.around(layout.nodes[OUTPUT], output_size()) if graph.outputs else None
        self.used = {edge.source for edge in edges}
        self._starts = {edge.source: route.points[0] for edge, route in reversed(self.edges)}
        self.toggles = {str(name): (rect.right, rect.top) for name, rect in self.shapes.items()}
        for index, frame in self.frames.items():
            if graph.regions[index].id:
                self.toggles[graph.regions[index].id] = (frame.rect.right, frame.rect.top)

    def outlet(self, node_id: NodeId) -> Point:
        """Return the point where edges leave a node."""
        rect = self.shapes[node_id]
        x, _ = self._starts.get(node_id, rect.centre)
        spare = (rect.width - value_width(self.graph[node_id])) / 2
        x = min(max(x, rect.centre[0] - spare), rect.centre[0] + spare) if spare > 0 else x
        return (x, rect.top if self.outward < 0 else rect.bottom)

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
                yield value_label_rect(node, self.outlet(node.id), self.outward)
            mark = overlay.marks.get(node.id)
            if mark and mark.is_flagged:
                yield flag_rect(self.flag(node.id), is_first=mark.is_first)
        for name, corner in self.toggles.items():
            if name in expandable or name not in self.graph.index:
                yield Rect.around(corner, _TOGGLE)
        for index, frame in self.frames.items():
            yield cluster_title_rect(frame, cluster_title(self.graph, index))
        for _, route in self.edges:
            yield arrow_rect(route)
        if self.output:
            yield self.output

    def lines(self) -> Iterator[Point]:
        """Yield points of the edges and frames, which labels should not cover."""
        for _, route in self.edges:
            yield from points_along(route, _STEP)
        for frame in self.frames.values():
            left, top, right, bottom = frame.rect
            for step in range(int(frame.rect.width / _STEP)):
                yield from ((left + step * _STEP, y) for y in (top, bottom))
            for step in range(int(frame.rect.height / _STEP)):
                yield from ((x, top + step * _STEP) for x in (left, right))

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
