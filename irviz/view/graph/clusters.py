"""Clusters: the frames around the nodes of a region, and their titles."""

from __future__ import annotations

from xml.etree import ElementTree

from irviz.model.graph.graph import Graph, Node, Region, RegionKind
from irviz.view.geometry import Point, Rect
from irviz.view.graph import labels
from irviz.view.graph.graphviz_layout import ClusterFrame
from irviz.view.svg_primitives import add, add_rect, add_text, text_rect, text_width
from irviz.view.theme import Theme

_TITLE_INSET = 14.0


def cluster_contents(graph: Graph) -> dict[int | None, list[Node | int]]:
    """Return the nodes and the clusters that are directly inside each cluster.

    A cluster is named by the index of its region; None stands for the whole graph. Binding blocks
    have no cluster: their contents belong to the region around them. Empty regions are left out.
    """
    found: dict[int | None, list[Node | int]] = {}
    placed: set[int] = set()
    for node in graph.nodes:
        region = _cluster_of(graph, node.region)
        found.setdefault(region, []).append(node)
        while region is not None and region not in placed:
            placed.add(region)
            outer = _cluster_of(graph, graph.regions[region].parent)
            found.setdefault(outer, []).append(region)
            region = outer
    return found


def _cluster_of(graph: Graph, region: int | None) -> int | None:
    while region is not None and graph.regions[region].kind is RegionKind.BINDING_BLOCK:
        region = graph.regions[region].parent
    return region


def cluster_title(graph: Graph, index: int) -> str:
    """Return the title of the cluster of a region."""
    region = graph.regions[index]
    if region.kind is RegionKind.DATAFLOW_BLOCK:
        return "dataflow"
    return labels.group_title(region.name)


def title_space(title: str) -> float:
    """Return the least width of a frame with a title."""
    return text_width(title, labels.VALUE_SIZE) + 30


def draw_cluster(
    parent: ElementTree.Element, frame: ClusterFrame, region: Region, theme: Theme
) -> None:
    """Draw the frame of a cluster."""
    group = add(parent, "g", f"block {region.kind.value}")
    dashes = {"stroke_dasharray": "5 3"} if region.kind is RegionKind.DATAFLOW_BLOCK else {}
    lines: dict[str, str | float] = {"fill": theme.block_fill, "stroke": theme.block_line}
    if region.kind is RegionKind.FUSED:
        lines = {"fill": "none", "stroke": theme.changes["fused"], "stroke_width": 2.4}
        dashes = {"stroke_dasharray": "2 4"}
    add_rect(group, frame.rect, rx=6, **lines, **dashes)


def draw_cluster_title(
    parent: ElementTree.Element, frame: ClusterFrame, title: str, colour: str, theme: Theme
) -> None:
    """Write the title into the corner of a frame; an edge that crosses it is interrupted."""
    halo = {"stroke": theme.block_fill, "stroke_width": "4", "paint_order": "stroke"}
    add_text(parent, title, _position(frame), labels.VALUE_SIZE, colour, "start", **halo)


def cluster_title_rect(frame: ClusterFrame, title: str) -> Rect:
    """Return the rectangle that a title covers."""
    return text_rect(title, _position(frame), labels.VALUE_SIZE, "start")


def _position(frame: ClusterFrame) -> Point:
    return (frame.rect.left + _TITLE_INSET, frame.label[1] + 4)
