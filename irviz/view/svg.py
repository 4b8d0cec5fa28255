"""Graph + Layout -> SVG text, which is what the canvas and the files show."""

from __future__ import annotations

from collections.abc import Collection
from xml.etree import ElementTree

from irviz.model.graph import OUTPUT, Graph
from irviz.view import label
from irviz.view.beside import Ground, draw_word, placed
from irviz.view.box import Box
from irviz.view.dot import Size, frame_title
from irviz.view.edges import draw_edge
from irviz.view.element import number
from irviz.view.frames import draw_frame, draw_title
from irviz.view.layout import Layout
from irviz.view.nodes import draw_effect, draw_node, draw_output, draw_value, effects_in_order
from irviz.view.overlay import Overlay
from irviz.view.overlay_legend import draw_legend, legend_size
from irviz.view.places import Places
from irviz.view.sign import draw_flag, draw_toggle, sign_place
from irviz.view.style import Theme

MARGIN = 16.0
_MONOSPACE = "Menlo, Consolas, 'DejaVu Sans Mono', monospace"
_PALE = "0.35"


def svg(
    graph: Graph,
    layout: Layout,
    theme: Theme,
    direction: str = "up",
    openable: Collection[str] | None = None,
    *,
    overlay: Overlay | None = None,
    dimmed: Collection[str] = (),
) -> str:
    """Draw the graph at the places of its layout; the same input gives the same bytes.

    Groups carry classes (`node call_tir`, `edge`, `block dataflow`, `value`) and the ids
    (`data-node`, `data-source`, `data-target`) that a page can restyle and select by. Where
    `openable` is given, these nodes have a sign to open them and frames one to close them
    (`toggle`, `data-toggle`); else it is a still picture.

    An overlay tints nodes (`tinted`, with the `--share` of the ramp), puts a `word` beside each,
    adds a `legend` below, and moves nothing. `dimmed` nodes are pale, and their values' edges.
    """
    places = Places(graph, layout, direction)
    size = paper_size(layout, overlay)
    name = f"graph of {label.printable(graph.function)}"
    root = ElementTree.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "class": "irviz overlaid" if overlay else "irviz",
            "width": number(size.width),
            "height": number(size.height),
            "viewBox": f"0 0 {number(size.width)} {number(size.height)}",
            "role": "img",
            "aria-label": name,
            "font-family": _MONOSPACE,
        },
    )
    paper = {"class": "paper", "width": "100%", "height": "100%", "fill": theme.background}
    ElementTree.SubElement(root, "rect", paper)
    picture = ElementTree.SubElement(
        root, "g", {"transform": f"translate({number(MARGIN)} {number(MARGIN)})"}
    )
    pale = frozenset(dimmed)
    for index, frame in places.frames.items():
        draw_frame(picture, frame, graph.regions[index], theme)
    _draw_edges(picture, graph, layout, places, theme, pale)
    _draw_nodes(picture, graph, places, theme, openable or (), overlay, pale)
    for index, frame in places.frames.items():  # above the edges that cross them
        group = ElementTree.SubElement(picture, "g", {"class": "title"})
        draw_title(group, frame, frame_title(graph, index), theme)
        if openable is not None and graph.regions[index].id:
            corner = sign_place(frame.x, frame.y, frame.width)
            draw_toggle(group, graph.regions[index].id, corner, theme, is_open=True)
    if graph.outputs:
        draw_output(picture, layout.nodes[OUTPUT], theme)
    if overlay:
        sheet = Box(-MARGIN, -MARGIN, size.width - MARGIN, layout.height + MARGIN)
        ground = Ground(sheet, places.taken(overlay, openable or ()), places.crossed())
        words = places.words(overlay)
        for node_id, place in placed(words, -places.outward, ground).items():
            word = draw_word(picture, node_id, words[node_id][0], place, theme)
            _dim(word, node_id, pale)
        draw_legend(picture, overlay, (0, layout.height + MARGIN), theme)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def paper_size(layout: Layout, overlay: Overlay | None = None) -> Size:
    """Return the size of a picture in px: with a legend it is higher, and wider if need be."""
    width, height = layout.width + 2 * MARGIN, layout.height + 2 * MARGIN
    if overlay is None:
        return Size(width, height)
    legend = legend_size(overlay)
    return Size(max(width, legend.width + 2 * MARGIN), height + legend.height + MARGIN)


def _draw_edges(
    picture: ElementTree.Element,
    graph: Graph,
    layout: Layout,
    places: Places,
    theme: Theme,
    pale: Collection[str],
) -> None:
    by_id = {node.id: node for node in graph.nodes}
    for index, edge in enumerate(places.ends):
        route = layout.routes[f"e{index}"]
        _dim(draw_edge(picture, edge, by_id[edge.source], route, theme), edge.source, pale)


def _draw_nodes(
    picture: ElementTree.Element,
    graph: Graph,
    places: Places,
    theme: Theme,
    openable: Collection[str],
    overlay: Overlay | None,
    pale: Collection[str],
) -> None:
    """Draw each node, before it its value's label and on it its signs."""
    effects = effects_in_order(graph)
    for index, node in enumerate(graph.nodes):
        if node.id in places.used:
            value = draw_value(picture, node, places.outlet(index), theme, places.outward)
            _dim(value, node.id, pale)
        size, mark = places.sizes[index], overlay.marks.get(node.id) if overlay else None
        group = draw_node(picture, node, places.centre(index), size, theme, overlay)
        _dim(group, node.id, pale)
        if node.id in effects:
            box = places.box(index)
            draw_effect(group, effects[node.id], (box.left + 5, box.top + 10), theme)
        if mark and mark.is_flagged:
            draw_flag(group, places.flag(index), theme, is_first=mark.is_first)
        if node.id in openable:
            draw_toggle(group, node.id, places.toggle(index), theme, is_open=False)


def _dim(group: ElementTree.Element, node_id: str, pale: Collection[str]) -> None:
    if node_id in pale:
        group.set("class", f"{group.get('class')} dimmed")
        group.set("opacity", _PALE)
