"""The fat arrow between two pictures, which stands for a transform."""

from __future__ import annotations

from typing import Literal
from xml.etree import ElementTree

from irviz.view.geometry import Point, Size
from irviz.view.svg_primitives import add, path

ARROW = Size(56.0, 30.0)
"""The length and the width of an arrow."""


def draw_fat_arrow(
    parent: ElementTree.Element, centre: Point, colour: str, towards: Literal["right", "below"]
) -> None:
    """Draw an arrow around its centre."""
    x, y = centre
    half, high = ARROW.width / 2, ARROW.height / 2
    if towards == "right":
        outline = path(
            "M", x - half, y - high / 2, "h", half * 1.1, "v", -high / 2, "L", x + half, y,
            "L", x - half + half * 1.1, y + high, "v", -high / 2, "h", -half * 1.1, "Z",
        )  # fmt: skip
    else:
        outline = path(
            "M", x - high / 2, y - half * 0.8, "v", half * 0.8, "h", -high / 2, "L", x,
            y + half * 0.8, "L", x + high, y, "h", -high / 2, "v", -half * 0.8, "Z",
        )  # fmt: skip
    add(parent, "path", d=outline, fill=colour)
