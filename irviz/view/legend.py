"""Which colours stand for which numbers, below a picture."""

from __future__ import annotations

from collections.abc import Sequence

from irviz.view.colour_scale import NAN, ColourScale
from irviz.view.paper import Paper
from irviz.view.words import number

_BAR, _BAR_HEIGHT = 130.0, 10.0
_ROW = 24.0
_CHARACTER = 6.6  # the width of one, at most
_SIZE = 10
_SQUARE = 10.0


def legend_height(scale: ColourScale | None, not_finite: Sequence[tuple[str, bool]]) -> float:
    """Return the room that a legend takes, in px."""
    return _ROW * ((scale is not None) + bool(not_finite))


def legend(
    paper: Paper,
    x: float,
    y: float,
    scale: ColourScale | None,
    not_finite: Sequence[tuple[str, bool]],
    infinity: str,
) -> None:
    """Draw the colours with their numbers, and a square beside the words for what is none.

    `infinity` is the colour of infinities.
    """
    if scale is not None:
        _bar(paper, x, y, scale)
        y += _ROW
    for words, is_nan in not_finite:
        paper.square(x, y + 1, _SQUARE, NAN if is_nan else infinity)
        paper.write(x + _SQUARE + 6, y + _SIZE, words, fontsize=_SIZE)
        x += _SQUARE + 6 + _CHARACTER * (len(words) + 3)


def _bar(paper: Paper, x: float, y: float, scale: ColourScale) -> None:
    low, high = number(scale.low), number(scale.high)
    if scale.low == scale.high:
        paper.write(x, y + _SIZE, f"{low} everywhere", fontsize=_SIZE)
        return
    paper.write(x, y + _SIZE, low, fontsize=_SIZE)
    start = x + _CHARACTER * len(low) + 6
    axes = paper.axes(start, y + 1, _BAR, _BAR_HEIGHT)
    axes.imshow(scale.bar, aspect="auto", interpolation="none", extent=(0, 1, 0, 1))
    axes.set(xticks=[], yticks=[])
    if scale.zero is not None:
        axes.axvline(scale.zero, color=paper.theme.text, linewidth=1)
        paper.write(start + _BAR * scale.zero, y + 21, "0", fontsize=9, ha="center")
    paper.write(start + _BAR + 6, y + _SIZE, high, fontsize=_SIZE)
