"""Heat maps: a matrix, a vector or a slice of a tensor as coloured cells."""

from __future__ import annotations

from collections.abc import Sequence

from irviz.errors import DrawError
from irviz.view.figure import Figure
from irviz.view.number_format import format_number
from irviz.view.theme import get_theme
from irviz.view.values.colour_scale import (
    Pixels,
    colour_legend_height,
    colour_scale,
    draw_colour_legend,
    is_dark,
)
from irviz.view.values.heat_map_cells import Array, HeatMapCells, as_float64, select_cells
from irviz.view.values.mpl_svg import (
    MARGIN,
    WIDTH,
    MplCanvas,
    array_heading,
    draw_with_matplotlib,
)

_LEFT = 44.0
_MAX_WIDTH = WIDTH - _LEFT - MARGIN
_MAX_HEIGHT, _MIN_HEIGHT = 300.0, 72.0
_MAX_CELL, _MAX_CELL_HEIGHT = 40.0, 24.0
_MIN_CELL_WITH_TEXT, _MAX_TEXTS = 29.0, 100
_CHARACTER_WIDTH = 5.1  # in a cell, in px
_TICKS = 24.0
_MAX_ASPECT = 3
"""Cells are squares in a matrix with at most this ratio of rows to columns."""


def heat_map(
    array: Array, theme: str = "course", *, index: Sequence[int] = (), title: str = ""
) -> Figure:
    """Draw an array as coloured cells, a scalar as a number.

    A long vector is folded into rows. A cell of a large matrix is the number of largest magnitude
    in a block. `index` is the slice of an array with more than two dimensions, of which the last
    two are drawn; the first slice if it is empty.

    Raises:
        DrawError: For an empty array, an index that does not fit, or an unknown theme.
    """
    if array.size == 0:
        raise DrawError(f"an array of shape {array.shape} is empty: there is nothing to draw")
    if array.ndim == 0:
        return _scalar(array, theme, title)
    cells = select_cells(array, index)
    get_theme(theme)
    scale = colour_scale(cells.values, theme)
    heading = array_heading(array.shape, str(array.dtype), title, cells.notes)
    width, height = _size(cells)
    below = colour_legend_height(scale, cells.non_finite)

    def paint(canvas: MplCanvas, top: float) -> None:
        colours = scale.pixels(cells.values)
        colours.reshape(-1, 4)[cells.filled :] = 0  # clear after the end of a folded vector
        _plot(canvas, cells, colours, (_LEFT, top, width, height))
        draw_colour_legend(canvas, _LEFT, top + height + _TICKS, scale, cells.non_finite)

    label = f"heat map of {heading.text}"
    return draw_with_matplotlib(heading, height + _TICKS + below, theme, label, paint)


def _scalar(array: Array, theme: str, title: str) -> Figure:
    heading = array_heading((), str(array.dtype), title)
    value = float(as_float64(array))
    text = str(bool(value)) if array.dtype.kind == "b" else format_number(value, 8)

    def paint(canvas: MplCanvas, top: float) -> None:
        canvas.write(MARGIN, top + 28, text, fontsize=26)

    label = f"{heading.title or heading.remarks[0]}: {text}"
    return draw_with_matplotlib(heading, 36, theme, label, paint)


def _size(cells: HeatMapCells) -> tuple[float, float]:
    """Return the width and height of all cells together, in px."""
    rows, columns = cells.values.shape
    side = min(_MAX_CELL, _MAX_WIDTH / columns)
    if rows <= _MAX_ASPECT * columns:
        side = min(side, _MAX_HEIGHT / rows)
    minimum = min(rows * _MAX_CELL_HEIGHT, _MIN_HEIGHT)
    return columns * side, min(max(rows * side, minimum), _MAX_HEIGHT)


def _plot(
    canvas: MplCanvas, cells: HeatMapCells, colours: Pixels, box: tuple[float, float, float, float]
) -> None:
    """Draw the cells; the ticks count numbers of the array, not cells."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes = canvas.axes(*box)
    rows, columns = cells.values.shape
    right, bottom = columns * cells.columns - 0.5, rows * cells.rows - 0.5
    axes.imshow(colours, aspect="auto", interpolation="none", extent=(-0.5, right, bottom, -0.5))
    axes.set_xlim(-0.5, cells.width - 0.5)
    axes.set_ylim(cells.height - 0.5, -0.5)
    axes.tick_params(top=False, right=False)
    positions = FuncFormatter(lambda value, _: f"{value:.0f}")
    starts = FuncFormatter(lambda value, _: f"{value * cells.width:.0f}")
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))
    axes.yaxis.set_major_locator(
        MaxNLocator(max(1, min(6, int(box[3] / 22))), integer=True, min_n_ticks=1)
    )
    axes.xaxis.set_major_formatter(positions)
    axes.yaxis.set_major_formatter(starts if cells.is_folded else positions)
    width = box[2] / columns
    if width >= _MIN_CELL_WITH_TEXT and cells.values.size <= _MAX_TEXTS:
        for position, value in enumerate(cells.values.reshape(-1)[: cells.filled]):
            row, column = divmod(position, columns)
            colour = "#ffffff" if is_dark(colours[row, column]) else "#000000"
            text = format_number(value, 2)
            if len(text) * _CHARACTER_WIDTH > width:
                text = format_number(value, 1)
            axes.text(column, row, text, color=colour, fontsize=8, ha="center", va="center")
