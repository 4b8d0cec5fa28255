"""Heat maps: a matrix, a vector or a slice of a tensor as coloured cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from irviz.errors import DrawError
from irviz.units import format_number
from irviz.view.figure import Figure
from irviz.view.theme import get_theme
from irviz.view.values.colour_scale import (
    NonFinite,
    Numbers,
    Pixels,
    colour_legend_height,
    colour_scale,
    count_non_finite,
    draw_colour_legend,
    is_dark,
)
from irviz.view.values.mpl_svg import MARGIN, WIDTH, MplCanvas, array_heading, draw_with_matplotlib

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


# --- heat map cells ----------------------------------------------------------------------------
#
# The cells of a heat map: a slice of an array, folded or reduced to the largest numbers.


Array = NDArray[np.generic]

_MAX_SIDE = 256
_MOST_LOOKED_AT = 2_000_000
"""Larger arrays are sampled by rows, because a picture must not take a second."""
_MAX_ROW = 32
"""A longer vector is folded."""


@dataclass(frozen=True, eq=False)
class HeatMapCells:
    """A matrix with one number for each cell.

    Attributes:
        rows: The rows of the array that one cell stands for.
        columns: The columns of the array that one cell stands for.
        height: The rows of the array that the matrix stands for.
        width: The columns of the array that the matrix stands for.
        filled: The number of cells, row by row, before the end of a folded vector.
        notes: Descriptions of the slice, the reduction and the folding.
        is_folded: Whether the matrix is a vector in several rows.
        non_finite: The NaN and infinities of the slice.
    """

    values: Numbers
    rows: int
    columns: int
    height: int
    width: int
    filled: int
    notes: tuple[str, ...]
    is_folded: bool = False
    non_finite: NonFinite = ()


def select_cells(array: Array, index: Sequence[int] = ()) -> HeatMapCells:
    """Return the cells of the last two dimensions of an array that has one dimension or more.

    `index` is the position in the other dimensions, as in `check_index`.
    """
    leading = array.shape[:-2]
    position = check_index(array.shape, index)
    notes = []
    if math.prod(leading) > 1:
        slots = ", ".join([*map(str, position), ":", ":"])
        notes.append(f"the slice [{slots}]")
    part = array[position]
    cells = _reduced(part, tuple(notes))
    if np.isfinite(cells.values).all():
        return cells
    return replace(cells, non_finite=count_non_finite(as_float64(part)))


def _reduced(array: Array, notes: tuple[str, ...]) -> HeatMapCells:
    if 1 in array.shape or array.ndim == 1:
        return _row(array.reshape(-1), notes)
    height, width = array.shape
    rows, columns = math.ceil(height / _MAX_SIDE), math.ceil(width / _MAX_SIDE)
    step = min(rows, math.ceil(array.size / _MOST_LOOKED_AT))
    rows = math.ceil(rows / step) * step
    if rows > 1 or columns > 1:
        notes += (f"a cell is the largest |number| of {rows} × {columns}, with its sign",)
    if step > 1:
        notes += (f"one row of {step} was looked at",)
    values = _largest(_largest(_real(array[::step]), rows // step, 0), columns, 1)
    return HeatMapCells(as_float64(values), rows, columns, height, width, values.size, notes)


def check_index(shape: Sequence[int], index: Sequence[int]) -> tuple[int, ...]:
    """Return an index into all dimensions but the last two, zeros for an empty one.

    Raises DrawError if it is too short or too long, or outside the shape.
    """
    leading = tuple(shape[:-2])
    position = tuple(int(one) for one in index) or (0,) * len(leading)
    is_inside = len(position) == len(leading) and all(
        0 <= one < size for one, size in zip(position, leading, strict=False)
    )
    if not is_inside:
        limits = ", ".join(f"0 to {size - 1}" for size in leading) or "nothing"
        raise DrawError(
            f"there is no slice {tuple(index)!r} of {tuple(shape)}: the last two dimensions are "
            f"shown, so give {limits}"
        )
    return position


def _row(vector: Array, notes: tuple[str, ...]) -> HeatMapCells:
    """Return a vector as one row, folded if it is long."""
    step = math.ceil(vector.size / _MAX_SIDE**2)
    numbers = as_float64(_largest(_real(vector), step, 0))
    if step > 1:
        notes += (f"a cell is the largest |number| of {step} in a row, with its sign",)
    columns = numbers.size if numbers.size <= _MAX_ROW else _folded_width(numbers.size)
    height = math.ceil(numbers.size / columns)
    is_folded = height > 1
    if is_folded:
        notes += (f"folded: {columns * step:,} numbers a row",)
    values = np.zeros(height * columns)
    values[: numbers.size] = numbers
    matrix = values.reshape(height, columns)
    return HeatMapCells(matrix, 1, step, height, columns * step, numbers.size, notes, is_folded)


def _folded_width(size: int) -> int:
    """Return the length of rows that make a square, or a little more if all are full then."""
    side = math.isqrt(size - 1) + 1
    divisors = (columns for columns in range(side, 4 * side) if size % columns == 0)
    return next(divisors, side)


def _real(array: Array) -> Array:
    """Return the numbers in a dtype that NumPy can compare."""
    if array.dtype.kind in "fiu" and array.dtype.isbuiltin == 1:
        return array
    return as_float64(array)


def as_float64(array: Array) -> Numbers:
    """Return an array's numbers in float64, NaN and infinities as they are."""
    with np.errstate(all="ignore"):  # a signalling NaN raises a flag
        return array.astype(np.float64)


def _largest(array: Array, step: int, axis: int) -> Array:
    """Return the number of largest magnitude of each `step` along an axis; NaN wins."""
    if step == 1:
        return array
    starts = np.arange(0, array.shape[axis], step)
    with np.errstate(invalid="ignore"):
        high = as_float64(np.maximum.reduceat(array, starts, axis=axis))
        low = as_float64(np.minimum.reduceat(array, starts, axis=axis))
    return np.where(high >= -low, high, low)
