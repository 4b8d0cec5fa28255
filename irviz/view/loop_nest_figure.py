"""Draw a loop nest as a listing, or its diff: before and after, side by side."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import accumulate, groupby
from operator import contains
from typing import NamedTuple
from xml.etree import ElementTree

from irviz.model.diff.align_loop_nests import (
    Link,
    Row,
    RowKind,
    RowMark,
    Side,
    SideBySide,
    side_by_side,
)
from irviz.model.diff.diff_result import LoopNestDiff
from irviz.model.loop_nest import LoopNest
from irviz.units import beginning
from irviz.view import svg_primitives as svg
from irviz.view.figure import Figure
from irviz.view.mix_colours import mix_colours
from irviz.view.svg_primitives import Point, Rect, Size
from irviz.view.theme import Theme, get_theme

_SIZE, _SIGN_SIZE = 11.0, 12.5
_ADVANCE = svg.text_width("0", _SIZE)
_LINE_HEIGHT, _BASELINE = 16.0, 11.7
_INDENT, _HANGING, _MAX_INDENT = 14.0, 24.0, 224.0
_PAD, _WORD_GAP, _MARGIN = 7.0, 12.0, 8.0
_LINKS_WIDTH = 76.0
MAX_WIDTH, _ALONE_WIDTH, _MIN_WIDTH = 460.0, 660.0, 190.0
"""The widths of a row's text, its indentation included, beside others and alone; and without it."""
_MAX_CHARACTERS, _MAX_TOOLTIP = 240, 2000
_MAX_ROWS = 1000
TINT = 0.08
"""The share of a change's colour in the ground of its rows."""
_BAND_OPACITY = "0.3"
_PART = re.compile(r"\w+|\s+|[^\w\s]")

_UNCHANGED = "unchanged"
_ONE_SIDED = ("added", "removed")


class Folding(NamedTuple):
    """How many rows are shown at both ends of a long run, and the longest run shown in full.

    Rows that begin with one of `hide` are left out.
    """

    context: int
    unchanged: int
    changed: int = 24
    hide: tuple[str, ...] = ()


USUAL = Folding(2, 12)
FOLDINGS = Folding(2, _MAX_ROWS), Folding(2, 8), Folding(1, 5), Folding(1, 3)
"""Those of a slide: from all rows to few."""


class Slot(NamedTuple):
    """A row on each side, by their numbers, or the first of `folded` rows that are `word`."""

    before: int | None
    after: int | None
    folded: int = 0
    word: str = ""


_Parts = list[tuple[str, bool]]
"""Parts of a text, and whether each differs."""


class DrawnSize(NamedTuple):
    """The size of the picture; `after` is where the nest after begins."""

    width: float
    height: float
    after: float


def draw_loop_nest_diff(
    parent: ElementTree.Element,
    nests: tuple[LoopNest | None, LoopNest | None],
    diff: LoopNestDiff | None,
    theme: Theme,
    max_width: float = MAX_WIDTH,
    folding: Folding = USUAL,
    say: Callable[[str], str] = str,
) -> DrawnSize:
    """Draw two loop nests at (0, 0) as listings, and return the size.

    Rows that correspond have the same height where the order allows it; a sign before a row says
    what became of it, and bands lead from loops to those that they were split into or fused to.
    Unchanged rows are pale, and long runs of them are folded.

    Args:
        nests: The loop nests before and after; None for a function that is only on one side,
            which is drawn alone.
        diff: What became of the loop nest; None if one of the two is missing.
        max_width: The width at which rows are broken, their indentation included.
        folding: Which rows are only counted.
        say: Translates the words about rows.
    """
    sides = side_by_side(nests, diff)
    for side in (sides.before, sides.after):
        side.marks = {at: one._replace(word=say(one.word)) for at, one in side.marks.items()}
    return _Picture(sides, theme, max_width, folding, say).draw(parent)


def draw_loops(
    nests: tuple[LoopNest | None, LoopNest | None],
    diff: LoopNestDiff | None,
    node_ids: tuple[Mapping[str, str], Mapping[str, str]],
    theme: str = "course",
    *,
    choosable: Collection[str] = (),
    is_compared: bool,
) -> tuple[Figure, float]:
    """Draw the loops of a PrimFunc for the explorer: before and after, or the latter as they are.

    Args:
        diff: What became of the loop nest; None if one of the two is missing.
        node_ids: The graph's node for the id of each loop, block, statement and buffer, before and
            after. The rows have it as `data-node`.
        theme: The name of the theme; "page" for the page's own.
        choosable: The ids of the loops and blocks after that can be chosen. The rows have theirs
            as `data-loop`.
        is_compared: Whether before and after are drawn side by side.

    Returns:
        The picture, and where the nest after begins in it, in px.
    """
    colours = get_theme(theme)
    picture = ElementTree.Element("g", transform=f"translate({svg.px(_MARGIN)} {svg.px(_MARGIN)})")
    sides = side_by_side(nests if is_compared else (None, nests[1]), diff)
    if not is_compared:
        sides.after.marks.clear()
    width = MAX_WIDTH if is_compared else _ALONE_WIDTH
    drawn = _Picture(sides, colours, width, is_page=True).draw(picture)
    for row in picture.iterfind("g/g"):
        kind, side, *_ = row.get("class", "").split()
        if kind == "row":
            own = row.get("data-node", "")
            row.set("data-node", node_ids[side == "after"].get(own, ""))
            if side == "after" and own in choosable:
                row.set("data-loop", own)
    size = Size(drawn.width + 2 * _MARGIN, drawn.height + 2 * _MARGIN)
    root = svg.svg_document(size, "loops", "loops", colours)
    root.append(picture)
    return Figure(svg.svg_text(root), *size), drawn.after + _MARGIN


class _Cell(NamedTuple):
    """A row as drawn: its lines, where it is, and what became of it."""

    row: Row
    lines: Sequence[_Parts]
    mark: RowMark | None


class _Column(NamedTuple):
    """One side of the picture: its rows by their numbers, its gutter and its right end."""

    left: float
    gutter: float
    right: float
    cells: Mapping[int, _Cell]
    name: str


class _Picture:
    """The parts of the picture; the rows have their heights when the columns are known."""

    def __init__(
        self,
        sides: SideBySide,
        theme: Theme,
        max_width: float,
        folding: Folding = USUAL,
        say: Callable[[str], str] = str,
        *,
        is_page: bool = False,
    ) -> None:
        self._theme, self._say, self._is_page = theme, say, is_page
        self._picture = ElementTree.Element("g", {"class": "loop-nest-diff"})
        self._grounds = {
            change: mix_colours(theme.background, colour, TINT)
            for change, colour in theme.changes.items()
        }
        self._links = sides.links
        self._rows = sides.before.rows, sides.after.rows
        slots = list(folded(sides, folding))
        self._slots, self._left_out = slots[:_MAX_ROWS], len(slots) - _MAX_ROWS
        before = [slot.before for slot in self._slots]
        after = [slot.after for slot in self._slots]
        left = _column("before", 0.0, sides.before, before, sides.after.rows, max_width)
        start = left.right + _LINKS_WIDTH if left.cells else 0.0
        right = _column("after", start, sides.after, after, sides.before.rows, max_width)
        self._columns = left, right
        self._tops: tuple[dict[int, float], dict[int, float]] = {}, {}

    def draw(self, parent: ElementTree.Element) -> DrawnSize:
        parent.append(self._picture)
        y = 0.0
        for slot in self._slots:
            heights = [_LINE_HEIGHT]
            for side, at in enumerate((slot.before, slot.after)):
                if at is None:
                    continue
                column = self._columns[side]
                if slot.folded:
                    rows = self._rows[side][at : at + slot.folded]
                    words = self._say(f"… {slot.folded:,} {slot.word}")
                    self._draw_note(column, y, words, min(map(_indent, rows)))
                    continue
                self._tops[side][at] = y
                self._draw_cell(column, column.cells[at], y)
                heights.append(_height(column.cells[at]))
            y += max(heights)
        if self._left_out > 0:
            for column in filter(lambda one: one.cells, self._columns):
                self._draw_note(column, y, self._say(f"… {self._left_out:,} more rows"))
            y += _LINE_HEIGHT
        for link in self._links:
            self._draw_link(link)
        self._draw_guides()
        left, right = self._columns
        return DrawnSize(max(left.right, right.right), y, right.left)

    def _draw_cell(self, column: _Column, cell: _Cell, y: float) -> None:
        row, mark = cell.row, cell.mark
        classes = f"row {column.name} {mark.change if mark else 'same'}"
        group = svg.add(self._picture, "g", classes, data_node=row.node)
        if mark or self._is_page:  # where all of a row is clicked
            rect = Rect.at((column.left, y), column.right - column.left, _height(cell))
            fill = self._grounds[mark.change] if mark else "none"
            style = {"pointer_events": "all"} if self._is_page else {}
            svg.add_rect(group, rect, "ground" if self._is_page else "", fill=fill, **style)
        is_quiet = mark is None and bool(self._columns[0].cells)
        colour = self._theme.quiet_text if is_quiet else self._theme.text
        x = column.left + column.gutter + _indent(row)
        for number, parts in enumerate(cell.lines):
            at = x + (_HANGING if number else 0.0), y + _BASELINE + number * _LINE_HEIGHT
            _write(group, parts, at, colour)
        if mark:
            end = at[0] + svg.text_width(_text(cell.lines[-1]), _SIZE), at[1]
            self._draw_mark(group, mark, (column.left + _PAD, y + _BASELINE), end)
        if len(row.text) > _MAX_CHARACTERS:
            svg.add_tooltip(group, row.text[:_MAX_TOOLTIP])

    def _draw_mark(
        self, group: ElementTree.Element, mark: RowMark, start: Point, end: Point
    ) -> None:
        """Write the sign before a row, and the word behind it."""
        colour = self._theme.changes[mark.change]
        if mark.sign:
            style = {"css_class": "sign", "font_weight": "700"}
            svg.add_text(group, mark.sign, start, _SIGN_SIZE, colour, "start", **style)
        if mark.word:
            at = end[0] + _WORD_GAP, end[1]
            style = {"css_class": "word", "font_style": "italic"}
            svg.add_text(group, svg.shorten(mark.word), at, _SIZE, colour, "start", **style)

    def _draw_note(self, column: _Column, y: float, text: str, indent: float = 0) -> None:
        left = column.left + column.gutter
        room = column.right - _PAD - left - svg.text_width(text, _SIZE)
        at = left + max(min(indent, room), 0.0), y + _BASELINE
        style = {"css_class": "folded", "font_style": "italic"}
        svg.add_text(self._picture, text, at, _SIZE, self._theme.quiet_text, "start", **style)

    def _draw_guides(self) -> None:
        """Draw a line from the loop that a row was moved into, to what is in it now."""
        column, tops, parents = self._columns[1], self._tops[1], _parents(self._rows[1])
        found = {}
        for at, cell in column.cells.items():
            if cell.mark and cell.mark.change == "moved":
                inner, outer = at, parents[at]
                while outer is not None and (above := column.cells.get(outer)) and above.mark:
                    inner, outer = outer, parents[outer]
                found[inner] = outer
        colour = self._theme.changes["moved"]
        for inner, outer in found.items():
            if outer in tops and inner in tops:
                x = [
                    column.left + column.gutter + _indent(self._rows[1][at])
                    for at in (outer, inner)
                ]
                top = tops[outer] + _height(column.cells[outer])
                line = svg.path(
                    "M", x[0] + 4, top, "V", tops[inner] + _LINE_HEIGHT / 2, "H", x[1] - 2
                )
                style = {"fill": "none", "stroke": colour}
                svg.add(self._picture, "path", "guide", d=line, **style, stroke_width=1.6)

    def _draw_link(self, link: Link) -> None:
        """Draw bands for what was split or fused, and a line for what moved."""
        ends = self._ends(0, link.before), self._ends(1, link.after)
        if not all(ends):
            return
        colour = self._theme.changes[link.change]
        group = svg.add(self._picture, "g", f"link {link.change}")
        x = self._columns[0].right, self._columns[1].left
        if link.change == "moved":
            (top, bottom), (other_top, other_bottom) = ends[0][0], ends[1][0]
            start, end = (top + bottom) / 2, (other_top + other_bottom) / 2
            line = svg.path(*_curve((x[0] + 3, start), (x[1] - 8, end)))
            svg.add(group, "path", d=line, fill="none", stroke=colour, stroke_width=1.6)
            svg.add(group, "circle", cx=x[0] + 3, cy=start, r=2.5, fill=colour)
            tip = svg.path("M", x[1] - 2, end, "l", -8, -4, "v", 8, "Z")
            svg.add(group, "path", d=tip, fill=colour)
            return
        style = {"fill": colour, "fill_opacity": _BAND_OPACITY, "stroke": colour}
        for one, two in _bands(*ends):
            there = _curve((x[0], one[0]), (x[1], two[0]))
            back = _curve((x[1], two[1]), (x[0], one[1]))
            band = svg.path(*there, "L", *back[1:], "Z")
            svg.add(group, "path", d=band, **style, stroke_width=0.8)

    def _ends(self, side: int, places: Iterable[int]) -> list[_Span]:
        """Return the tops and bottoms of rows, without those that are not drawn."""
        tops, cells = self._tops[side], self._columns[side].cells
        return [(tops[at] + 1, tops[at] + _height(cells[at]) - 1) for at in places if at in tops]


def _parents(rows: Sequence[Row]) -> list[int | None]:
    """Return the row around each row, None for those of the function."""
    found: list[int | None] = []
    open_rows: list[int] = []
    for at, row in enumerate(rows):
        while open_rows and rows[open_rows[-1]].indent >= row.indent:
            open_rows.pop()
        found.append(open_rows[-1] if open_rows else None)
        open_rows.append(at)
    return found


_Span = tuple[float, float]


def _column(
    name: str,
    left: float,
    side: Side,
    places: Iterable[int | None],
    others: Sequence[Row],
    max_width: float,
) -> _Column:
    """Return one side of the picture; `others` are the rows of the other side."""
    cells = {}
    for at in places:
        if at is not None:
            row, mark = side.rows[at], side.marks.get(at)
            other = others[side.partners[at]].text if mark and at in side.partners else None
            room = int(max(max_width - _indent(row), _MIN_WIDTH) / _ADVANCE)  # in characters
            cells[at] = _Cell(row, _wrapped(_parts(row.text, other), room), mark)
    signs = [svg.text_width(cell.mark.sign, _SIGN_SIZE) for cell in cells.values() if cell.mark]
    gutter = 2 * _PAD + max(signs, default=svg.text_width("+", _SIGN_SIZE))
    widths = [_indent(cell.row) + _cell_width(cell) for cell in cells.values()]
    right = left + gutter + max(widths) + _PAD if cells else left
    return _Column(left, gutter, right, cells, name)


def _indent(row: Row) -> float:
    return min(row.indent * _INDENT, _MAX_INDENT)


def _height(cell: _Cell) -> float:
    return len(cell.lines) * _LINE_HEIGHT


def _cell_width(cell: _Cell) -> float:
    widths = [
        svg.text_width(_text(parts), _SIZE) + (_HANGING if number else 0.0)
        for number, parts in enumerate(cell.lines)
    ]
    if cell.mark and cell.mark.word:
        widths[-1] += _WORD_GAP + svg.text_width(svg.shorten(cell.mark.word), _SIZE)
    return max(widths)


def _parts(text: str, other: str | None) -> _Parts:
    """Return text in words and the space between; those that the other text lacks are marked."""
    mine = _PART.findall(_short(text))
    if other is None:
        return [(part, False) for part in mine]
    found = SequenceMatcher(None, mine, _PART.findall(_short(other)), autojunk=False)
    parts: _Parts = []
    for tag, start, end, _, _ in found.get_opcodes():
        parts += [(part, tag != "equal") for part in mine[start:end]]
    return parts


def _short(text: str) -> str:
    line = svg.printable(text[: _MAX_CHARACTERS + 1].replace("\n", " "))
    return beginning(line, _MAX_CHARACTERS)


def _wrapped(parts: _Parts, room: int) -> list[_Parts]:
    """Return the parts in lines that have room, broken at spaces outside of indices if possible."""
    lines: list[_Parts] = [[]]
    used = 0
    depths = accumulate((part == "[") - (part == "]") for part, _ in parts)
    may_break = [
        part.isspace() and not depth for (part, _), depth in zip(parts, depths, strict=True)
    ]
    for is_space, run in groupby(zip(parts, may_break, strict=True), lambda one: one[1]):
        word = [part for part, _ in run]
        if not is_space and used and used + len(_text(word)) > room:
            lines.append([])
            used, room = 0, room - int(_HANGING / _ADVANCE) if len(lines) == 2 else room
        for text, is_marked in word:
            for start in range(0, len(text), room):
                piece = text[start : start + room]
                if used and used + len(piece) > room:
                    lines.append([])
                    used = 0
                lines[-1].append((piece, is_marked))
                used += len(piece)
    return lines


def _text(parts: _Parts) -> str:
    return "".join(text for text, _ in parts)


def _write(parent: ElementTree.Element, parts: _Parts, at: Point, colour: str) -> None:
    """Write a line; what differs is bold."""
    element = svg.add_text(parent, "", at, _SIZE, colour, "start")
    svg.keep_spaces(element)
    for is_marked, run in groupby(parts, lambda part: part[1]):
        text = svg.printable(_text(list(run)))
        span = svg.add(element, "tspan", "differs", font_weight="700") if is_marked else None
        if span is not None:
            span.text = text
        elif len(element):
            element[-1].tail = text
        else:
            element.text = text


def _curve(start: Point, end: Point) -> list[str | float]:
    middle = (start[0] + end[0]) / 2
    return ["M", *start, "C", middle, start[1], middle, end[1], *end]


def _bands(before: Sequence[_Span], after: Sequence[_Span]) -> Iterator[tuple[_Span, _Span]]:
    """Yield the ends of bands; a row that becomes several, or the reverse, is shared by them."""
    if len(before) > 1 and len(after) > 1:
        yield (before[0][0], before[-1][1]), (after[0][0], after[-1][1])
    elif len(before) == 1:
        yield from zip(_shares(before[0], len(after)), after, strict=True)
    else:
        yield from zip(before, _shares(after[0], len(before)), strict=True)


def _shares(span: _Span, count: int) -> list[_Span]:
    top, each = span[0], (span[1] - span[0]) / count
    return [(top + each * index, top + each * (index + 1)) for index in range(count)]


# --- Which rows are shown, and which are only counted ---------------------------------------------


def folded(sides: SideBySide, folding: Folding = USUAL) -> Iterator[Slot]:
    """Yield the lines, with most of a long run of unchanged ones folded into one.

    The loops and blocks around a change, and the rows next to it, are shown. Of many added or
    removed statements, as of an unrolled loop, the first and the last ones are shown.
    """
    lines = [line for line in sides.lines if not _is_hidden(sides, line, folding.hide)]
    words = [_word(sides, *line) for line in lines]
    around = [_around(side) for side in (sides.before, sides.after)]
    runs: list[str] = []
    for word, run in groupby(words):
        count = len(list(run))
        longest = folding.unchanged if word == _UNCHANGED else folding.changed
        if not word or count <= longest:
            runs += [""] * count
            continue
        first = last = folding.context
        if word == _UNCHANGED:  # nothing is next to the ends of the listing
            first = first if runs else 0
            last = last if len(runs) + count < len(words) else 0
        runs += [""] * first + [word] * (count - first - last) + [""] * last
    for at, line in enumerate(lines):
        if any(map(contains, around, line)):
            runs[at] = ""
    start = 0
    for word, run in groupby(runs):
        count = len(list(run))
        if word and count > 1:
            yield Slot(*lines[start], count, word)
        else:
            yield from (Slot(*line) for line in lines[start : start + count])
        start += count


def _is_hidden(
    sides: SideBySide, line: tuple[int | None, int | None], hide: tuple[str, ...]
) -> bool:
    rows = zip((sides.before.rows, sides.after.rows), line, strict=True)
    return all(at is None or side[at].text.startswith(hide) for side, at in rows)


def _word(sides: SideBySide, one: int | None, two: int | None) -> str:
    """Return the kind of a row that may be folded, "" for others."""
    if one is not None and two is not None:
        is_same = one not in sides.before.marks and two not in sides.after.marks
        return _UNCHANGED if is_same else ""
    side, at = (sides.before, one) if one is not None else (sides.after, two)
    if at is None or side.rows[at].kind is not RowKind.STATEMENT:
        return ""
    mark = side.marks.get(at)
    return mark.change if mark and mark.change in _ONE_SIDED else ""


def _around(side: Side) -> frozenset[int]:
    """Return the loops, blocks and statements around changed rows."""
    parents = _parents(side.rows)
    found: set[int] = set()
    for at in side.marks:
        outer = parents[at]
        while outer is not None and outer not in found:
            found.add(outer)
            outer = parents[outer]
    return frozenset(found)
