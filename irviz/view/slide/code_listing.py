"""TVMScript and Python as a picture: lines of text in syntax colours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple
from xml.etree import ElementTree

from irviz.view.geometry import Point, Rect, Size
from irviz.view.svg_primitives import add, add_rect, add_text, printable, text_width
from irviz.view.theme import Theme, mix_colours

CODE_SIZE = 11.0
LINE_HEIGHT = 15.0
_BASELINE = 11.2
_TINT = 0.16
_HANGING = 4
_OPENING, _CLOSING = "([{", ")]}"
_OPERATORS = (" + ", " - ", " * ", " / ", " -> ")


class Span(NamedTuple):
    """A part of a line, and the name of its colour in `Theme.code`, "" for plain text."""

    text: str
    colour: str


def wrapped(line: str, width: int, depth: int = 0) -> list[str]:
    """Break a line of code into lines of at most `width` characters, as far as possible.

    It is broken after commas and before operators at the lowest bracket depth, as late as possible.
    `depth` is the number of brackets open at its start.
    """
    indent = " " * (len(line) - len(line.lstrip()))
    quote = ""
    breaks: list[tuple[int, int]] = []  # the number of brackets around, and where the rest begins
    for at, char in enumerate(line):
        if char in "\"'":
            quote = "" if quote == char else quote or char
        if quote:
            continue
        depth += (char in _OPENING) - (char in _CLOSING)
        if depth and line.startswith(", ", at):  # others are between the names of a tuple
            breaks.append((depth, at + 2))
        elif at > len(indent) and line.startswith(_OPERATORS, at):
            breaks.append((depth, at + 1))
    found = []
    start, lead = 0, ""
    while len(lead) + len(line) - start > width:
        left = [one for one in breaks if one[1] > start]
        if not left:
            break
        fitting = [one for one in left if one[1] <= start + width - len(lead) + 1]
        _, end = min(fitting, key=lambda one: (one[0], -one[1])) if fitting else left[0]
        found.append(lead + line[start:end].rstrip())
        start, lead = end, indent + " " * _HANGING
    return [*found, lead + line[start:]]


def draw_code(
    parent: ElementTree.Element,
    lines: Sequence[str],
    corner: Point,
    theme: Theme,
    marked: Mapping[int, str] | None = None,
    line_height: float = LINE_HEIGHT,
) -> Size:
    """Draw lines of code, and return their size.

    Args:
        corner: The upper left corner.
        marked: The colours of the ground behind some lines, by their indices.
        line_height: The distance of two lines.
    """
    group = add(parent, "g", "code")
    x, y = corner
    baseline = _BASELINE + (line_height - LINE_HEIGHT) / 2
    width = max((text_width(line, CODE_SIZE) for line in lines), default=0.0)
    for colour, run in groupby(range(len(lines)), (marked or {}).get):
        rows = list(run)
        if colour:
            top, height = y + rows[0] * line_height, len(rows) * line_height
            ground = mix_colours(theme.background, colour, _TINT)
            add_rect(group, Rect.at((x - 4, top), width + 8, height), fill=ground)
    for at, (text, spans) in enumerate(zip(lines, _highlighted(tuple(lines)), strict=False)):
        if not text.strip():
            continue
        indent = len(text) - len(text.lstrip())
        left = x + text_width(" " * indent, CODE_SIZE)
        element = add_text(
            group, "", (left, y + at * line_height + baseline), CODE_SIZE, theme.text, "start"
        )
        for span in spans:
            part = add(element, "tspan", fill=theme.code.get(span.colour, theme.text))
            if span.colour in ("keyword", "decorator"):
                part.set("font-weight", "600")
            part.text = printable(span.text).replace("  ", "\u00a0 ")  # SVG would join the spaces
    return Size(width, len(lines) * line_height)


@lru_cache(maxsize=256)
def _highlighted(lines: tuple[str, ...]) -> Sequence[Sequence[Span]]:
    """Return the spans of each line, without its indentation; the same lines are drawn often."""
    from pygments import lex
    from pygments.lexers import PythonLexer

    found: list[Sequence[Span]] = []
    line: list[Span] = []
    for token, text in lex("\n".join(lines), PythonLexer(stripnl=False, ensurenl=True)):
        for number, part in enumerate(text.split("\n")):
            if number:
                found.append(_merged(line))
                line = []
            if part:
                line.append(Span(part, _colour(token)))
    return found


@lru_cache
def _colour(token: object) -> str:
    """Return the name of the colour of a kind of token of Pygments."""
    from pygments.token import Token

    kinds = (
        (Token.Comment, "comment"),
        (Token.Literal.String, "string"),
        (Token.Literal.Number, "number"),
        (Token.Name.Decorator, "decorator"),
        (Token.Name.Function, "definition"),
        (Token.Name.Class, "definition"),
        (Token.Operator.Word, "keyword"),
        (Token.Keyword, "keyword"),
    )
    return next((name for kind, name in kinds if token in kind), "")


def _merged(spans: list[Span]) -> list[Span]:
    """Join neighbours of one colour, and leave out the indentation."""
    found: list[Span] = []
    for span in spans:
        if not found and not span.text.strip():
            continue
        if found and (found[-1].colour == span.colour or not span.text.strip()):
            found[-1] = Span(found[-1].text + span.text, found[-1].colour)
        else:
            found.append(span if found else Span(span.text.lstrip(), span.colour))
    return found
