"""Fold aligned loop nests: which rows are shown, and which are only counted."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import contains
from typing import NamedTuple

from irviz.view.loop_nest_alignment import Side, SideBySide
from irviz.view.loop_nest_listing import RowKind

_UNCHANGED = "unchanged"
_ONE_SIDED = ("added", "removed")


class Folding(NamedTuple):
    """How many rows are shown at both ends of a long run, and the longest run shown in full."""

    context: int
    unchanged: int
    changed: int = 24


USUAL = Folding(2, 12)
TIGHT = Folding(1, 3)


class Slot(NamedTuple):
    """A row on each side, by their numbers, or the first of `folded` rows that are `word`."""

    before: int | None
    after: int | None
    folded: int = 0
    word: str = ""


def folded(sides: SideBySide, folding: Folding = USUAL) -> Iterator[Slot]:
    """Yield the lines, with most of a long run of unchanged ones folded into one.

    The loops and blocks around a change, and the rows next to it, are shown. Of many added or
    removed statements, as of an unrolled loop, the first and the last ones are shown.
    """
    words = [_word(sides, *line) for line in sides.lines]
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
    for at, line in enumerate(sides.lines):
        if any(map(contains, around, line)):
            runs[at] = ""
    start = 0
    for word, run in groupby(runs):
        count = len(list(run))
        if word and count > 1:
            yield Slot(*sides.lines[start], count, word)
        else:
            yield from (Slot(*line) for line in sides.lines[start : start + count])
        start += count


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
    found: set[int] = set()
    open_rows: list[int] = []
    for at, row in enumerate(side.rows):
        while open_rows and side.rows[open_rows[-1]].indent >= row.indent:
            open_rows.pop()
        if at in side.marks:
            for outer in reversed(open_rows):
                if outer in found:
                    break
                found.add(outer)
        open_rows.append(at)
    return frozenset(found)
