"""Nodes: the outline, the words in it, and the value's label at its outlet."""

from __future__ import annotations

from xml.etree import ElementTree

from irviz.model.graph import OUTPUT, Graph, Node, NodeId, NodeKind
from irviz.view import label
from irviz.view.box import Box, text_box
from irviz.view.dot import VALUE_HEIGHT, Size, output_size
from irviz.view.element import number, point, text
from irviz.view.layout import Point
from irviz.view.outline import outline
from irviz.view.overlay import Mark, Overlay
from irviz.view.ramp import mixed
from irviz.view.style import Theme, style_of

_STUB = 3.0
_EFFECT_SIZE = 9.0
_HOLDERS = (NodeKind.IF, NodeKind.GROUP)
"""What is impure only for what it holds."""


def draw_node(
    parent: ElementTree.Element,
    node: Node,
    centre: Point,
    size: Size,
    theme: Theme,
    overlay: Overlay | None = None,
) -> ElementTree.Element:
    """Draw a node's outline and words; return the group.

    Under an overlay it is filled with its tint, or not at all: one colour has one meaning.
    """
    classes = ["node", node.kind.value, *([node.resolution.value] if node.resolution else [])]
    mark = overlay.marks.get(node.id) if overlay else None
    group = ElementTree.SubElement(
        parent, "g", {"class": " ".join(classes), "data-node": label.printable(node.id)}
    )
    style = style_of(node)
    fill, stroke = theme.colours[style.colour]
    small_text = theme.quiet_text
    tooltip = _tooltip(node)
    if overlay:
        fill = theme.background
    if overlay and mark:
        tooltip += f"\n{overlay.title}: {mark.text}"
        fill, small_text = tint(group, mark, theme), theme.text
    ElementTree.SubElement(group, "title").text = label.printable(tooltip)
    for element in outline(style.shape, centre, size):
        element.attrib.update({"fill": fill, "stroke": stroke, "stroke-width": "1.4"})
        if style.colour == "unknown":
            element.set("stroke-dasharray", "4 2")
        if mark and mark.is_first:
            element.attrib.update({"stroke": theme.flag, "stroke-width": "3"})
        group.append(element)
    note = label.note(node)
    x, y = centre
    place = (x, y - 2 if note else y + 4.5)
    title = text(group, label.title(node), place, label.NAME_SIZE, theme.text)
    title.attrib.update({"class": "name", "font-weight": "600"})
    if note:
        small = text(group, note, (x, y + 13), label.NOTE_SIZE, small_text)
        small.set("class", "note")
    return group


def tint(group: ElementTree.Element, mark: Mark, theme: Theme) -> str:
    """Return the colour of a mark; a page can mix its own by the group's `--share`."""
    first = " first" * mark.is_first
    group.set("class", f"{group.get('class')} tinted{first}")
    group.set("style", f"--share:{number(100 * mark.share)}%")
    return mixed(*theme.ramp, mark.share)


def draw_output(parent: ElementTree.Element, centre: Point, theme: Theme) -> None:
    """Draw the mark that stands for what the function returns."""
    group = ElementTree.SubElement(parent, "g", {"class": "node output"})
    x, y = centre
    size = output_size()
    ElementTree.SubElement(
        group,
        "rect",
        {
            "class": "shape",
            "x": number(x - size.width / 2),
            "y": number(y - size.height / 2),
            "width": number(size.width),
            "height": number(size.height),
            "rx": number(size.height / 2),
            "fill": theme.background,
            "stroke": theme.line,
        },
    )
    text(group, OUTPUT, (x, y + 3.5), label.NOTE_SIZE, theme.text).set("class", "name")


def draw_value(
    parent: ElementTree.Element, node: Node, outlet: Point, theme: Theme, outward: float
) -> ElementTree.Element:
    """Write the value's name and type at the outlet, as a part of the lines that leave it."""
    group = ElementTree.SubElement(
        parent, "g", {"class": "value", "data-node": label.printable(node.id)}
    )
    stub = f"M{point(outlet)}v{number(outward * _STUB)}"
    ElementTree.SubElement(group, "path", {"d": stub, "stroke": theme.line, "stroke-width": "1.2"})
    words = label.value_label(node)
    text(group, words, _value_place(outlet, outward), label.VALUE_SIZE, theme.text)
    return group


def value_box(node: Node, outlet: Point, outward: float) -> Box:
    """Return the room that a value's label takes."""
    return text_box(label.value_label(node), _value_place(outlet, outward), label.VALUE_SIZE)


def effects_in_order(graph: Graph) -> dict[NodeId, int]:
    """Return a number for what may have an effect, in the order in which it happens."""
    impure = [n.id for n in graph.nodes if not n.is_pure and n.kind not in _HOLDERS]
    return {node_id: number for number, node_id in enumerate(impure, start=1)}


def draw_effect(parent: ElementTree.Element, number: int, corner: Point, theme: Theme) -> None:
    """Write into a node's corner which effect it may have."""
    words = f"!{number}"
    middle = (corner[0] + label.width(words, _EFFECT_SIZE) / 2, corner[1])
    mark = text(parent, words, middle, _EFFECT_SIZE, theme.quiet_text)
    mark.set("class", "effect")
    ElementTree.SubElement(
        mark, "title"
    ).text = f"it may have an effect, number {number} of those drawn"


def _value_place(outlet: Point, outward: float) -> Point:
    return (outlet[0], outlet[1] + outward * (VALUE_HEIGHT + _STUB - 1) / 2 + 4)


def _tooltip(node: Node) -> str:
    lines = [f"{node.name or label.title(node)}: {node.type_label}"]
    if node.callee:
        lines.append(f"{node.kind.value} {node.callee}")
    lines += [f"{name} = {value}" for name, value in node.attributes]
    return "\n".join(lines)
