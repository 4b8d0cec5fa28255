"""Nodes: the shape with its texts, the label of the value, and the number of an effect."""

from __future__ import annotations

from xml.etree import ElementTree

from irviz.model.graph.graph import OUTPUT, Graph, Node, NodeId, NodeKind
from irviz.view.geometry import Point, Rect
from irviz.view.graph import labels
from irviz.view.graph.node_shapes import VALUE_HEIGHT, add_shape
from irviz.view.graph.overlay import Overlay, tint
from irviz.view.svg_primitives import (
    add,
    add_rect,
    add_text,
    add_tooltip,
    path,
    text_rect,
    text_width,
)
from irviz.view.theme import Theme, node_style

_STUB = 3.0
_IMPURE_CONTAINERS = (NodeKind.IF, NodeKind.GROUP)
"""Nodes that are impure only because of their contents."""


def draw_node(
    parent: ElementTree.Element, node: Node, rect: Rect, theme: Theme, overlay: Overlay | None
) -> ElementTree.Element:
    """Draw a node's shape, title and note; return the group.

    An overlay replaces the colour of the shape, so that colour has only one meaning.
    """
    classes = ["node", node.kind.value, *([node.resolution.value] if node.resolution else [])]
    mark = overlay.marks.get(node.id) if overlay else None
    group = add(parent, "g", " ".join(classes), data_node=node.id)
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
    lines: dict[str, str | float] = {"fill": fill, "stroke": stroke, "stroke_width": theme.outline}
    if style.colour == "unknown":
        lines["stroke_dasharray"] = "4 2"
    if mark and mark.is_first:
        lines |= {"stroke": theme.flag, "stroke_width": 3}
    add_shape(group, style.shape, rect, **lines)
    notes = list(filter(None, [labels.note(node), labels.threads(node)]))
    x, y = rect.centre
    position = (x, y + 4 - 6 * len(notes) if notes else y + 4.5)
    title, size = labels.title(node), labels.NAME_SIZE
    add_text(group, title, position, size, theme.text, css_class="name", font_weight="600")
    for number, note in enumerate(notes):
        place = (x, position[1] + 15 + 12 * number)
        add_text(group, note, place, labels.NOTE_SIZE, note_colour, css_class="note")
    return group


def draw_output(parent: ElementTree.Element, rect: Rect, theme: Theme) -> None:
    """Draw the node that stands for the function's result."""
    group = add(parent, "g", "node output")
    colours = {"fill": theme.background, "stroke": theme.line}
    add_rect(group, rect, "shape", rx=rect.height / 2, **colours)
    x, y = rect.centre
    add_text(group, OUTPUT, (x, y + 3.5), labels.NOTE_SIZE, theme.text, css_class="name")


def draw_value_label(
    parent: ElementTree.Element, node: Node, outlet: Point, theme: Theme, outward: float
) -> ElementTree.Element:
    """Write the value's name and type on the first part of the edges that leave the node.

    `outward` is 1 where edges leave downwards, -1 where they leave upwards.
    """
    group = add(parent, "g", "value", data_node=node.id)
    stub = path("M", *outlet, "v", outward * _STUB)
    add(group, "path", d=stub, stroke=theme.line, stroke_width=1.2)
    position = _value_label_position(outlet, outward)
    add_text(group, labels.value_label(node), position, labels.VALUE_SIZE, theme.text)
    return group


def value_label_rect(node: Node, outlet: Point, outward: float) -> Rect:
    """Return the rectangle that the label of a value covers."""
    position = _value_label_position(outlet, outward)
    return text_rect(labels.value_label(node), position, labels.VALUE_SIZE)


def effect_numbers(graph: Graph) -> dict[NodeId, int]:
    """Return the numbers of the nodes that may have an effect, in execution order."""
    impure = [n.id for n in graph.nodes if not n.is_pure and n.kind not in _IMPURE_CONTAINERS]
    return {node_id: number for number, node_id in enumerate(impure, start=1)}


def draw_effect_number(parent: ElementTree.Element, number: int, rect: Rect, theme: Theme) -> None:
    """Write the number of a node's effect into its lower right corner; marks take the others."""
    text = f"!{number}"
    middle = (rect.right - 5 - text_width(text, labels.NOTE_SIZE) / 2, rect.bottom - 4)
    mark = add_text(parent, text, middle, labels.NOTE_SIZE, theme.quiet_text, css_class="effect")
    add_tooltip(mark, f"it may have an effect, number {number} of those drawn")


def _value_label_position(outlet: Point, outward: float) -> Point:
    return (outlet[0], outlet[1] + outward * (VALUE_HEIGHT + _STUB - 1) / 2 + 4)


def _tooltip(node: Node) -> str:
    lines = [f"{node.name or labels.title(node)}: {node.type_label}"]
    if node.callee:
        lines.append(f"{node.kind.value} {node.callee}")
    lines += [f"{name} = {value}" for name, value in node.attributes]
    if node.kind is not NodeKind.GROUP and (layers := labels.layers_label(node)):
        lines.append(f"layer = {layers}")
    return "\n".join(lines)
