"""A matrix, a vector or a slice of a tensor as coloured cells."""

from __future__ import annotations

from collections.abc import Sequence

from irviz.view.cells import Array, Cells, as_numbers, cells
from irviz.view.colour_scale import (
    ColourScale,
    Pixels,
    colour_scale,
    infinity_colour,
    is_dark,
    uncoloured,
)
from irviz.view.drawing import Drawing
from irviz.view.legend import legend, legend_height
from irviz.view.paper import MARGIN, WIDTH, Paper, drawn, heading, paper_top
from irviz.view.style import theme_of
from irviz.view.words import number

_LEFT = 44.0
_ROOM = WIDTH - _LEFT - MARGIN
_TALLEST, _THINNEST = 300.0, 72.0
_LARGEST_CELL, _HIGHEST_CELL = 40.0, 24.0
_WRITTEN_CELL, _MOST_WRITTEN = 29.0, 100
_CHARACTER = 5.1  # the width of one in a cell
_TICKS = 24.0
_MOST_UNEQUAL = 3
"""Cells are squares where a side of the matrix is at most so many times the other."""


def heat_map(
    array: Array, theme: str = "course", *, index: Sequence[int] = (), title: str = ""
) -> Drawing:
    """Draw an array as cells in colours; a scalar is a number.

    Of more than two dimensions the last two are drawn, and `index` chooses among the others, the
    first by default. A long vector is folded; of a large matrix a cell is the largest |number| of
    a block. Raises ValueError for an empty array, an index that does not fit, or an unknown theme.
    """
    if array.size == 0:
        raise ValueError(f"an array of shape {array.shape} is empty: there is nothing to draw")
    if array.ndim == 0:
        return _scalar(array, theme, title)
    shown = cells(array, index)
    theme_of(theme)
    scale, infinity = colour_scale(shown.values, theme), infinity_colour(theme)
    lines = heading(array.shape, str(array.dtype), title, shown.notes)
    width, height = _size(shown)
    below = legend_height(scale, shown.not_finite)
    total = paper_top(lines) + height + _TICKS + below + MARGIN
    label = f"heat map of {' '.join(text for text, _ in lines)}"

    def paint(paper: Paper) -> None:
        top = paper.lines(lines)
        colours = _pixels(shown, scale, infinity)
        _plot(paper, shown, colours, (_LEFT, top, width, height))
        legend(paper, _LEFT, top + height + _TICKS, scale, shown.not_finite, infinity)

    return drawn(WIDTH, total, theme, label, paint)


def _scalar(array: Array, theme: str, title: str) -> Drawing:
    lines = heading((), str(array.dtype), title)
    value = float(as_numbers(array))
    words = str(bool(value)) if array.dtype.kind == "b" else number(value, 8)
    total = paper_top(lines) + 36 + MARGIN

    def paint(paper: Paper) -> None:
        y = paper.lines(lines)
        paper.write(MARGIN, y + 28, words, fontsize=26)

    return drawn(WIDTH, total, theme, f"{lines[0][0]}: {words}", paint)


def _size(shown: Cells) -> tuple[float, float]:
    """Return how large the cells are together, in px."""
    rows, columns = shown.values.shape
    side = min(_LARGEST_CELL, _ROOM / columns)
    if rows <= _MOST_UNEQUAL * columns:
        side = min(side, _TALLEST / rows)
    least = min(rows * _HIGHEST_CELL, _THINNEST)
    return columns * side, min(max(rows * side, least), _TALLEST)


def _pixels(shown: Cells, scale: ColourScale | None, infinity: str) -> Pixels:
    """Return the colour of each cell; what is behind the end of a folded vector has none."""
    values = shown.values
    colours = uncoloured(values, infinity) if scale is None else scale.pixels(values)
    colours.reshape(-1, 4)[shown.filled :] = 0
    return colours


def _plot(
    paper: Paper, shown: Cells, colours: Pixels, box: tuple[float, float, float, float]
) -> None:
    """Draw the cells; ticks count the numbers of the array, not the cells."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes = paper.axes(*box)
    rows, columns = shown.values.shape
    right, bottom = columns * shown.columns - 0.5, rows * shown.rows - 0.5
    axes.imshow(colours, aspect="auto", interpolation="none", extent=(-0.5, right, bottom, -0.5))
    axes.set_xlim(-0.5, shown.width - 0.5)
    axes.set_ylim(shown.height - 0.5, -0.5)
    axes.tick_params(top=False, right=False)
    places = FuncFormatter(lambda value, _: f"{value:.0f}")
    starts = FuncFormatter(lambda value, _: f"{value * shown.width:.0f}")
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))
    axes.yaxis.set_major_locator(
        MaxNLocator(max(1, min(6, int(box[3] / 22))), integer=True, min_n_ticks=1)
    )
    axes.xaxis.set_major_formatter(places)
    axes.yaxis.set_major_formatter(starts if shown.is_folded else places)
    room = box[2] / columns
    if room >= _WRITTEN_CELL and shown.values.size <= _MOST_WRITTEN:
        for place, value in enumerate(shown.values.reshape(-1)[: shown.filled]):
            row, column = divmod(place, columns)
            colour = "#ffffff" if is_dark(colours[row, column]) else "#000000"
            words = number(value, 2)
            if len(words) * _CHARACTER > room:
                words = number(value, 1)
            axes.text(column, row, words, color=colour, fontsize=8, ha="center", va="center")
