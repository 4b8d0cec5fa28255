"""The parts of a function: its TVMScript with a labelled frame around each part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from xml.etree import ElementTree

from irviz.view.geometry import Rect, Size
from irviz.view.slide.code_listing import CODE_SIZE, draw_code
from irviz.view.svg_primitives import add, add_rect, add_text, text_width
from irviz.view.theme import Theme

LABEL_SIZE = 11.0
_LINE_HEIGHT = 19.0
_INSET = 7.0


class Part(NamedTuple):
    """A frame around rows of code.

    Attributes:
        first: The first row.
        last: The last row, without that of the label.
        start: The column that it begins at.
        end: The column that it ends at, None for the right end of the frame around it.
        label: Its name, "" for none.
        label_row: The row of the label; one of a frame with an `end` is at its left.
        depth: The number of frames around it.
        colour: Its name in `Theme.colours`.
    """

    first: int
    last: int
    start: int
    end: int | None
    label: str
    label_row: int
    depth: int
    colour: str


def draw_function_parts(
    lines: Sequence[str], parts: Sequence[Part], theme: Theme
) -> tuple[ElementTree.Element, Size]:
    """Return a group with the drawn code and its frames, outer ones first, and its size."""
    root = ElementTree.Element("g", {"class": "function-parts"})
    frames, code, words = (add(root, "g", name) for name in ("frames", "lines", "labels"))
    deepest = max((part.depth for part in parts), default=0)
    left = _INSET * (deepest + 1)
    size = draw_code(code, lines, (left, _INSET), theme, line_height=_LINE_HEIGHT)
    right = left + max(size.width, *(_needed(part, lines) for part in parts)) + left
    for part in parts:
        fill, stroke = theme.colours[part.colour]
        inset = _INSET * (deepest - part.depth)
        top = _INSET + part.first * _LINE_HEIGHT
        bottom = _INSET + (max(part.last, part.label_row) + 1) * _LINE_HEIGHT
        if part.end is None:
            x = left + text_width(" " * part.start, CODE_SIZE) - 5
            rect = Rect(x, top + 1, right - _INSET * (part.depth + 0.5), bottom - 1)
        else:
            x = left + text_width(" " * part.start, CODE_SIZE) - 2
            end = left + text_width(" " * part.end, CODE_SIZE) + 2
            rect = Rect(x, top + 3, end, _INSET + (part.last + 1) * _LINE_HEIGHT - 2)
        if part.depth == 0:
            rect = rect._replace(left=left - inset - 1, top=1.0, bottom=bottom + _INSET - 1)
        group = add(frames, "g", "part")
        add_rect(group, rect, fill=fill, stroke=stroke, stroke_width=1.5, rx=3.0)
        if part.label:
            y = _INSET + part.label_row * _LINE_HEIGHT + 13
            place = (rect.right - 6, y) if part.end is None else (rect.left + 1, y)
            anchor = "end" if part.end is None else "start"
            style = {"font_weight": "600"}
            add_text(words, part.label, place, LABEL_SIZE, stroke, anchor, **style)
    return root, Size(right, _INSET * 2 + len(lines) * _LINE_HEIGHT)


def _needed(part: Part, lines: Sequence[str]) -> float:
    """Return the width that a label's row needs for the label to follow its code."""
    if not part.label:
        return 0.0
    label = text_width(part.label, LABEL_SIZE) + 8
    if part.end is not None:
        return text_width(" " * part.start, CODE_SIZE) + label
    return text_width(lines[part.label_row], CODE_SIZE) + label + 2 * _INSET * part.depth + 14
