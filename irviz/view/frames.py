"""Frames: what stands in one part of a function, and its words."""

from __future__ import annotations

from xml.etree import ElementTree

from irviz.model.graph import Region, RegionKind
from irviz.view import label
from irviz.view.box import Box
from irviz.view.element import number, text
from irviz.view.layout import Frame
from irviz.view.style import Theme

_TITLE_INSET = 14.0


def draw_frame(parent: ElementTree.Element, frame: Frame, region: Region, theme: Theme) -> None:
    """Draw the frame of a region."""
    group = ElementTree.SubElement(parent, "g", {"class": f"block {region.kind.value}"})
    style = {"stroke-dasharray": "5 3"} if region.kind is RegionKind.DATAFLOW_BLOCK else {}
    ElementTree.SubElement(
        group,
        "rect",
        {
            "x": number(frame.x),
            "y": number(frame.y),
            "width": number(frame.width),
            "height": number(frame.height),
            "rx": "6",
            "fill": theme.block_fill,
            "stroke": theme.block_line,
            **style,
        },
    )


def draw_title(parent: ElementTree.Element, frame: Frame, title: str, theme: Theme) -> None:
    """Write the words of a frame into its corner."""
    place = (frame.x + _TITLE_INSET, frame.label[1] + 4)
    text(parent, title, place, label.VALUE_SIZE, theme.quiet_text).set("text-anchor", "start")


def title_box(frame: Frame, title: str) -> Box:
    """Return the room that the words of a frame take."""
    left, baseline = frame.x + _TITLE_INSET, frame.label[1] + 4
    right = left + label.width(title, label.VALUE_SIZE)
    return Box(left, baseline - 0.75 * label.VALUE_SIZE, right, baseline + 0.22 * label.VALUE_SIZE)
