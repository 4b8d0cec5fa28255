"""Nodes: the shape with its texts, the label of the value, and the number of an effect."""

from __future__ import annotations

from xml.etree import ElementTree

from irviz.model.graph.graph import OUTPUT, Graph, Node, NodeId, NodeKind
from irviz.view.geometry import Point, Rect, Size
from irviz.view.graph import label
from irviz.view.graph.node_shapes import VALUE_HEIGHT, output_size, shape_elements
from irviz.view.graph.overlay import Overlay, tint
from irviz.view.svg_primitives import (
    add_text,
    add_tooltip,
    path_point,
    printable,
    px,
    text_rect,
    text_width,
)
from irviz.view.theme import Theme, node_style

_STUB = 3.0
_EFFECT_SIZE = 9.0
_IMPURE_CONTAINERS = (NodeKind.IF, NodeKind.GROUP)
"""Nodes that are impure only because of their contents."""


def draw_node(
    parent: ElementTree.Element,
    node: Node,
    centre: Point,
    size: Size,
    theme: Theme,
    overlay: Overlay | None = None,
) -> ElementTree.Element:
    """Draw a node's shape, title and note; return the group.

    An overlay replaces the colour of the shape, so that a colour has only one meaning.
    """
    classes = ["node", node.kind.value, *([node.resolution.value] if node.resolution else [])]
    mark = overlay.marks.get(node.id) if overlay else None
    group = ElementTree.SubElement(
        parent, "g", {"class": " ".join(classes), "data-node": printable(node.id)}
    )
    style = node_style(node)
    fill, stroke = theme.colours[style.colour]
    note_colour = theme.quiet_text
    tooltip = _tooltip(node)
    if overlay:
        fill = theme.background
    if overlay and mark:
        tooltip += f"\n{overlay.title}: {mark.text}"
        fill, note_colour = tint(group, mark, theme), theme.text
    add_tooltip(group, tooltip)
    for element in shape_elements(style.shape, centre, size):
        element.attrib.update({"fill": fill, "stroke": stroke, "stroke-width": "1.4"})
        if style.colour == "unknown":
            element.set("stroke-dasharray", "4 2")
        if mark and mark.is_first:
            element.attrib.update({"stroke": theme.flag, "stroke-width": "3"})
        group.append(element)
    note = label.note(node)
    x, y = centre
    position = (x, y - 2 if note else y + 4.5)
    title = add_text(group, label.title(node), position, label.NAME_SIZE, theme.text)
    title.attrib.update({"class": "name", "font-weight": "600"})
    if note:
        add_text(group, note, (x, y + 13), label.NOTE_SIZE, note_colour).set("class", "note")
    return group


def draw_output(parent: ElementTree.Element, centre: Point, theme: Theme) -> None:
    """Draw the node that stands for the function's result."""
    group = ElementTree.SubElement(parent, "g", {"class": "node output"})
    x, y = centre
    size = output_size()
    ElementTree.SubElement(
        group,
        "rect",
        {
            "class": "shape",
            "x": px(x - size.width / 2),
            "y": px(y - size.height / 2),
            "width": px(size.width),
            "height": px(size.height),
            "rx": px(size.height / 2),
            "fill": theme.background,
            "stroke": theme.line,
        },
    )
    add_text(group, OUTPUT, (x, y + 3.5), label.NOTE_SIZE, theme.text).set("class", "name")


def draw_value_label(
    parent: ElementTree.Element, node: Node, outlet: Point, theme: Theme, outward: float
) -> ElementTree.Element:
    """Write the value's name and type on the first part of the edges that leave the node.

    `outward` is 1 where edges leave downwards, -1 where they leave upwards.
    """
    group = ElementTree.SubElement(parent, "g", {"class": "value", "data-node": printable(node.id)})
    stub = f"M{path_point(outlet)}v{px(outward * _STUB)}"
    ElementTree.SubElement(group, "path", {"d": stub, "stroke": theme.line, "stroke-width": "1.2"})
    position = _value_label_position(outlet, outward)
    add_text(group, label.value_label(node), position, label.VALUE_SIZE, theme.text)
    return group


def value_label_rect(node: Node, outlet: Point, outward: float) -> Rect:
    """Return the rectangle that the label of a value covers."""
    position = _value_label_position(outlet, outward)
    return text_rect(label.value_label(node), position, label.VALUE_SIZE)


def effect_numbers(graph: Graph) -> dict[NodeId, int]:
    """Return the numbers of the nodes that may have an effect, in the order in which they run."""
    impure = [n.id for n in graph.nodes if not n.is_pure and n.kind not in _IMPURE_CONTAINERS]
    return {node_id: number for number, node_id in enumerate(impure, start=1)}


def draw_effect_number(
    parent: ElementTree.Element, number: int, corner: Point, theme: Theme
) -> None:
    """Write the number of a node's effect into its corner."""
    text = f"!{number}"
    middle = (corner[0] + text_width(text, _EFFECT_SIZE) / 2, corner[1])
    mark = add_text(parent, text, middle, _EFFECT_SIZE, theme.quiet_text)
    mark.set("class", "effect")
    add_tooltip(mark, f"it may have an effect, number {number} of those drawn")


def _value_label_position(outlet: Point, outward: float) -> Point:
    return (outlet[0], outlet[1] + outward * (VALUE_HEIGHT + _STUB - 1) / 2 + 4)


def _tooltip(node: Node) -> str:
    lines = [f"{node.name or label.title(node)}: {node.type_label}"]
    if node.callee:
        lines.append(f"{node.kind.value} {node.callee}")
    lines += [f"{name} = {value}" for name, value in node.attributes]
    return "\n".join(lines)
