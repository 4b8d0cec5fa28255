"""Frames of one stage in a layout of several: each ends where the stage's own contents do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from irviz.model.graph.graph import Graph, Node, NodeId
from irviz.view.geometry import Rect
from irviz.view.graph.clusters import cluster_contents, cluster_title, title_space
from irviz.view.graph.graphviz_layout import ClusterFrame, Route

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
        own: What is in its frames.
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
            title = min(title_space(cluster_title(graph, index)), frame.rect.width)
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
