"""Draw a graph with positions as SVG, for files and for the explorer's canvas."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from xml.etree import ElementTree

from irviz.model.graph.graph import Graph, RegionKind
from irviz.view.geometry import Rect, Size
from irviz.view.graph.change_marks import SideChanges, draw_marks
from irviz.view.graph.clusters import cluster_title, draw_cluster, draw_cluster_title
from irviz.view.graph.edges import draw_edge
from irviz.view.graph.label_placement import OccupiedArea, draw_label, place_labels
from irviz.view.graph.node_markers import draw_flag, draw_toggle
from irviz.view.graph.nodes import (
    draw_effect_number,
    draw_node,
    draw_output,
    draw_value_label,
    effect_numbers,
)
from irviz.view.graph.overlay import Overlay, draw_overlay_legend, legend_size
from irviz.view.graph.scene_geometry import SceneGeometry
from irviz.view.svg_primitives import add, add_tooltip, px, svg_document, svg_text
from irviz.view.theme import Theme

MARGIN = 16.0
_DIMMED_OPACITY = "0.45"


def graph_svg(
    graph: Graph,
    scene: SceneGeometry,
    theme: Theme,
    openable: Collection[str] | None = None,
    overlay: Overlay | None = None,
    dimmed: Collection[str] = (),
    changes: SideChanges | None = None,
) -> str:
    """Draw a graph; the same input gives the same bytes.

    A page restyles and selects by the classes of groups (`node call_tir`, `edge`,
    `block dataflow`, `value`, `toggle`, `tinted`, `word`, `legend`) and by their ids (`data-node`,
    `data-source`, `data-target`, `data-toggle`).

    The arguments are those of `draw_graph`.
    """
    size, below = picture_size(scene, overlay), scene.size.height + MARGIN
    root = svg_document(size, "overlaid" if overlay else "", f"graph of {graph.function}", theme)
    picture = add(root, "g", transform=f"translate({px(MARGIN)} {px(MARGIN)})")
    if changes is None:
        draw_scene(picture, graph, scene, theme, openable, overlay, dimmed)
    else:
        pale = changes.nodes.unchanged.union(dimmed)
        draw_scene(picture, graph, scene, theme, openable, overlay, pale, changes.edges)
        draw_marks(picture, scene, changes, theme)
    if overlay:
        bounds = Rect(-MARGIN, -MARGIN, size.width - MARGIN, below)
        area = OccupiedArea(bounds, scene.obstacles(overlay, openable or ()), scene.lines())
        labels = scene.labels(overlay)
        for node_id, position in place_labels(labels, -scene.outward, area).items():
            drawn = draw_label(picture, node_id, labels[node_id][0], position, theme)
            _dim(drawn, is_pale=node_id in dimmed)
        draw_overlay_legend(picture, overlay, (0, below), theme)
    return svg_text(root)


def draw_scene(
    picture: ElementTree.Element,
    graph: Graph,
    scene: SceneGeometry,
    theme: Theme,
    openable: Collection[str] | None = None,
    overlay: Overlay | None = None,
    dimmed: Collection[str] = (),
    edge_changes: Mapping[int, str] | None = None,
) -> None:
    """Draw a graph into a picture; the arguments are those of `draw_graph`.

    Args:
        edge_changes: What became of edges by their index, with those to the output behind the
            others: a key of `Theme.changes`, or "" for an edge that is drawn pale. By default the
            edges of the values of pale nodes are.
    """
    pale = frozenset(dimmed)
    for index, frame in scene.frames.items():
        draw_cluster(picture, frame, graph.regions[index], theme)
    for number, (edge, route) in enumerate(scene.edges):
        change = (
            ("" if edge.source in pale else None)
            if edge_changes is None
            else (edge_changes.get(number))
        )
        colours = replace(theme, line=theme.changes[change]) if change else theme
        is_removed = change == "removed"
        group = draw_edge(picture, edge, graph[edge.source], route, colours, is_dashed=is_removed)
        _dim(group, is_pale=change == "")
    _draw_nodes(picture, graph, scene, theme, openable or (), overlay, pale)
    for index, frame in scene.frames.items():  # above the edges that cross the titles
        group = add(picture, "g", "title")
        is_fused = graph.regions[index].kind is RegionKind.FUSED
        colour = theme.changes["fused"] if is_fused else theme.quiet_text
        title, whole = cluster_title(graph, index), graph.regions[index].name
        draw_cluster_title(group, frame, title, colour, theme)
        if whole and title != whole:
            add_tooltip(group, whole)
        region = graph.regions[index].id
        if openable is not None and region:
            draw_toggle(group, region, scene.toggles[region], theme, is_open=True)
    if scene.output:
        draw_output(picture, scene.output, theme)


def picture_size(scene: SceneGeometry, overlay: Overlay | None = None) -> Size:
    """Return the size of a picture; a legend makes it taller, and wider if necessary."""
    width, height = scene.size.width + 2 * MARGIN, scene.size.height + 2 * MARGIN
    if overlay is None:
        return Size(width, height)
    legend = legend_size(overlay)
    return Size(max(width, legend.width + 2 * MARGIN), height + legend.height + MARGIN)


def _draw_nodes(
    picture: ElementTree.Element,
    graph: Graph,
    scene: SceneGeometry,
    theme: Theme,
    openable: Collection[str],
    overlay: Overlay | None,
    pale: Collection[str],
) -> None:
    """Draw each node below the label of its value, and with its markers."""
    effects = effect_numbers(graph)
    for node in graph.nodes:
        if node.id in scene.used:
            outlet = scene.outlet(node.id)
            value = draw_value_label(picture, node, outlet, theme, scene.outward)
            _dim(value, is_pale=node.id in pale)
        rect, mark = scene.shapes[node.id], overlay.marks.get(node.id) if overlay else None
        group = draw_node(picture, node, rect, theme, overlay)
        _dim(group, is_pale=node.id in pale)
        if node.id in effects:
            draw_effect_number(group, effects[node.id], rect, theme)
        if mark and mark.is_flagged:
            draw_flag(group, scene.flag(node.id), theme, is_first=mark.is_first)
        if node.id in openable:
            draw_toggle(group, node.id, scene.toggles[node.id], theme, is_open=False)


def _dim(group: ElementTree.Element, *, is_pale: bool) -> None:
    if is_pale:
        group.set("class", f"{group.get('class')} dimmed")
        group.set("opacity", _DIMMED_OPACITY)
