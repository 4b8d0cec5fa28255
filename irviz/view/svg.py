"""Graph + Layout -> SVG text, which is what the canvas and the files show."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection
from xml.etree import ElementTree

from irviz.model.graph import OUTPUT, Edge, Graph, Node, NodeId, NodeKind, Region, RegionKind
from irviz.view import label
from irviz.view.dot import VALUE_HEIGHT, Size, frame_title, output_size, shape_size
from irviz.view.layout import Frame, Layout, Point, Route
from irviz.view.outline import outline
from irviz.view.style import Theme, style_of

MARGIN = 16.0
_MONOSPACE = "Menlo, Consolas, 'DejaVu Sans Mono', monospace"
_ARROW_WIDTH = 3.2
_STUB = 3.0
_TITLE_INSET = 14.0
_EFFECT_SIZE = 9.0
_HOLDERS = (NodeKind.IF, NodeKind.GROUP)
"""What is impure only for what it holds."""


def svg(
    graph: Graph,
    layout: Layout,
    theme: Theme,
    direction: str = "up",
    openable: Collection[str] | None = None,
) -> str:
    """Draw the graph at the places of its layout; the same input gives the same bytes.

    Groups carry classes (`node call_tir`, `edge`, `block dataflow`, `value`) and the ids
    (`data-node`, `data-source`, `data-target`) that a page can restyle and select by. Where
    `openable` is given, these nodes have a sign to open them and frames one to close them
    (`toggle`, `data-toggle`); else it is a still picture.
    """
    width, height = layout.width + 2 * MARGIN, layout.height + 2 * MARGIN
    name = f"graph of {label.printable(graph.function)}"
    root = ElementTree.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "class": "irviz",
            "width": _number(width),
            "height": _number(height),
            "viewBox": f"0 0 {_number(width)} {_number(height)}",
            "role": "img",
            "aria-label": name,
            "font-family": _MONOSPACE,
        },
    )
    paper = {"class": "paper", "width": "100%", "height": "100%", "fill": theme.background}
    ElementTree.SubElement(root, "rect", paper)
    picture = ElementTree.SubElement(
        root, "g", {"transform": f"translate({_number(MARGIN)} {_number(MARGIN)})"}
    )
    frames = {int(name.removeprefix("cluster_")): one for name, one in layout.frames.items()}
    for index, frame in frames.items():
        _draw_frame(picture, frame, graph.regions[index], theme)
    ends = [*graph.edges, *(Edge(source, OUTPUT, ()) for source in graph.outputs)]
    by_id = {node.id: node for node in graph.nodes}
    for index, edge in enumerate(ends):
        _draw_edge(picture, edge, by_id[edge.source], layout.routes[f"e{index}"], theme)
    used = {edge.source for edge in ends}
    arguments = Counter(edge.target for edge in graph.edges)
    effects = _effects(graph)
    outward = -1.0 if direction == "up" else 1.0
    for index, node in enumerate(graph.nodes):
        x, y = layout.nodes[f"n{index}"]
        centre = (x, y - outward * VALUE_HEIGHT / 2)
        size = shape_size(node, arguments[node.id])
        if node.id in used:
            _draw_value(picture, node, (x, centre[1] + outward * size.height / 2), theme, outward)
        group = _draw_node(picture, node, centre, size, theme)
        if node.id in effects:
            corner = (x - size.width / 2 + 5, centre[1] - size.height / 2 + 10)
            _draw_effect(group, effects[node.id], corner, theme)
        if openable is not None and node.id in openable:
            corner = sign_place(x - size.width / 2, centre[1] - size.height / 2, size.width)
            _draw_toggle(group, node.id, corner, theme, is_open=False)
    for index, frame in frames.items():  # above the edges that cross them
        group = ElementTree.SubElement(picture, "g", {"class": "title"})
        _draw_title(group, frame, frame_title(graph, index), theme)
        if openable is not None and graph.regions[index].id:
            corner = sign_place(frame.x, frame.y, frame.width)
            _draw_toggle(group, graph.regions[index].id, corner, theme, is_open=True)
    if graph.outputs:
        _draw_output(picture, layout.nodes[OUTPUT], theme)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _effects(graph: Graph) -> dict[NodeId, int]:
    """Return a number for what may have an effect, in the order in which it happens."""
    impure = [n.id for n in graph.nodes if not n.is_pure and n.kind not in _HOLDERS]
    return {node_id: number for number, node_id in enumerate(impure, start=1)}


def _draw_effect(parent: ElementTree.Element, number: int, corner: Point, theme: Theme) -> None:
    words = f"!{number}"
    middle = (corner[0] + label.width(words, _EFFECT_SIZE) / 2, corner[1])
    mark = _text(parent, words, middle, _EFFECT_SIZE, theme.quiet_text)
    mark.set("class", "effect")
    ElementTree.SubElement(
        mark, "title"
    ).text = f"it may have an effect, number {number} of those drawn"


def sign_place(x: float, y: float, width: float) -> Point:
    """Return where the sign of a box stands that opens or closes it: at its upper right corner."""
    return (x + width, y)


def _draw_frame(parent: ElementTree.Element, frame: Frame, region: Region, theme: Theme) -> None:
    group = ElementTree.SubElement(parent, "g", {"class": f"block {region.kind.value}"})
    style = {"stroke-dasharray": "5 3"} if region.kind is RegionKind.DATAFLOW_BLOCK else {}
    ElementTree.SubElement(
        group,
        "rect",
        {
            "x": _number(frame.x),
            "y": _number(frame.y),
            "width": _number(frame.width),
            "height": _number(frame.height),
            "rx": "6",
            "fill": theme.block_fill,
            "stroke": theme.block_line,
            **style,
        },
    )


def _draw_title(parent: ElementTree.Element, frame: Frame, title: str, theme: Theme) -> None:
    place = (frame.x + _TITLE_INSET, frame.label[1] + 4)
    _text(parent, title, place, label.VALUE_SIZE, theme.quiet_text).set("text-anchor", "start")


def _draw_toggle(
    parent: ElementTree.Element, toggled: str, corner: Point, theme: Theme, *, is_open: bool
) -> None:
    """Draw the sign that opens or closes what it stands on: a plus or a minus in a circle."""
    group = ElementTree.SubElement(
        parent, "g", {"class": "toggle", "data-toggle": label.printable(toggled)}
    )
    ElementTree.SubElement(group, "title").text = "close" if is_open else "open"
    x, y = corner
    place = {"cx": _number(x), "cy": _number(y)}
    reach = {"class": "reach", "r": "16", "fill": "none", "pointer-events": "all"}
    ElementTree.SubElement(group, "circle", {**place, **reach})
    circle = {"class": "sign", "r": "8", "fill": theme.background, "stroke": theme.line}
    ElementTree.SubElement(group, "circle", {**place, **circle})
    sign = f"M{_number(x - 4)},{_number(y)}h8" + (
        "" if is_open else f"M{_number(x)},{_number(y - 4)}v8"
    )
    ElementTree.SubElement(group, "path", {"d": sign, "stroke": theme.line, "stroke-width": "1.4"})


def _draw_edge(
    parent: ElementTree.Element, edge: Edge, source: Node, route: Route, theme: Theme
) -> None:
    kind = "edge" + " carried" * edge.is_carried + " other_copy" * edge.is_other
    ends = {"class": kind, "data-source": str(edge.source), "data-target": str(edge.target)}
    group = ElementTree.SubElement(parent, "g", {k: label.printable(v) for k, v in ends.items()})
    title = f"{source.name or label.title(source)}: {source.type_label}"
    if edge.uses > 1:
        title += f"\n{edge.uses} uses"
    if edge.is_carried:
        title += "\nfrom each copy to the next"
    if edge.is_other:
        title += "\nof another copy than the one that is drawn"
    ElementTree.SubElement(group, "title").text = label.printable(title)
    start, *rest = route.points
    curve = f"M{_point(start)}C{' '.join(map(_point, rest))}"
    line = {"d": curve, "fill": "none", "stroke": theme.line, "stroke-width": "1.2"}
    if edge.is_carried or edge.is_other:
        line["stroke-dasharray"] = "2 3" if edge.is_carried else "7 4"
    ElementTree.SubElement(group, "path", line)
    ElementTree.SubElement(
        group, "path", {"class": "arrow", "d": _arrow(rest[-1], route.tip), "fill": theme.line}
    )


def _draw_node(
    parent: ElementTree.Element, node: Node, centre: Point, size: Size, theme: Theme
) -> ElementTree.Element:
    classes = ["node", node.kind.value, *([node.resolution.value] if node.resolution else [])]
    group = ElementTree.SubElement(
        parent, "g", {"class": " ".join(classes), "data-node": label.printable(node.id)}
    )
    ElementTree.SubElement(group, "title").text = _tooltip(node)
    style = style_of(node)
    fill, stroke = theme.colours[style.colour]
    for element in outline(style.shape, centre, size):
        element.attrib.update({"fill": fill, "stroke": stroke, "stroke-width": "1.4"})
        if style.colour == "unknown":
            element.set("stroke-dasharray", "4 2")
        group.append(element)
    note = label.note(node)
    x, y = centre
    place = (x, y - 2 if note else y + 4.5)
    title = _text(group, label.title(node), place, label.NAME_SIZE, theme.text)
    title.attrib.update({"class": "name", "font-weight": "600"})
    if note:
        small = _text(group, note, (x, y + 13), label.NOTE_SIZE, theme.quiet_text)
        small.set("class", "note")
    return group


def _draw_output(parent: ElementTree.Element, centre: Point, theme: Theme) -> None:
    group = ElementTree.SubElement(parent, "g", {"class": "node output"})
    x, y = centre
    size = output_size()
    ElementTree.SubElement(
        group,
        "rect",
        {
            "class": "shape",
            "x": _number(x - size.width / 2),
            "y": _number(y - size.height / 2),
            "width": _number(size.width),
            "height": _number(size.height),
            "rx": _number(size.height / 2),
            "fill": theme.background,
            "stroke": theme.line,
        },
    )
    _text(group, OUTPUT, (x, y + 3.5), label.NOTE_SIZE, theme.text).set("class", "name")


def _draw_value(
    parent: ElementTree.Element, node: Node, outlet: Point, theme: Theme, outward: float
) -> None:
    """Write the value's name and type at the outlet, as a part of the lines that leave it."""
    group = ElementTree.SubElement(
        parent, "g", {"class": "value", "data-node": label.printable(node.id)}
    )
    x, y = outlet
    stub = f"M{_point(outlet)}v{_number(outward * _STUB)}"
    ElementTree.SubElement(group, "path", {"d": stub, "stroke": theme.line, "stroke-width": "1.2"})
    middle = y + outward * (VALUE_HEIGHT + _STUB - 1) / 2
    _text(group, label.value_label(node), (x, middle + 4), label.VALUE_SIZE, theme.text)


def _text(
    parent: ElementTree.Element,
    words: str,
    place: Point,
    size: float,
    fill: str,
) -> ElementTree.Element:
    attributes = {
        "x": _number(place[0]),
        "y": _number(place[1]),
        "font-size": _number(size),
        "text-anchor": "middle",
        "fill": fill,
    }
    element = ElementTree.SubElement(parent, "text", attributes)
    element.text = words
    return element


def _tooltip(node: Node) -> str:
    lines = [f"{node.name or label.title(node)}: {node.type_label}"]
    if node.callee:
        lines.append(f"{node.kind.value} {node.callee}")
    lines += [f"{name} = {value}" for name, value in node.attributes]
    return label.printable("\n".join(lines))


def _arrow(base: Point, tip: Point) -> str:
    along = math.hypot(tip[0] - base[0], tip[1] - base[1]) or 1.0
    across = (
        -(tip[1] - base[1]) / along * _ARROW_WIDTH,
        (tip[0] - base[0]) / along * _ARROW_WIDTH,
    )
    left = (base[0] + across[0], base[1] + across[1])
    right = (base[0] - across[0], base[1] - across[1])
    return f"M{_point(left)}L{_point(tip)}L{_point(right)}Z"


def _point(point: Point) -> str:
    return f"{_number(point[0])},{_number(point[1])}"


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
