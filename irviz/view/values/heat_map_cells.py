"""The cells of a heat map: a slice of an array, folded or reduced to the largest numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from irviz.errors import DrawError
from irviz.view.values.colour_scale import NonFinite, Numbers, count_non_finite

Array = NDArray[np.generic]

_MAX_SIDE = 256
_MOST_LOOKED_AT = 2_000_000
"""Of larger arrays some rows are taken: a picture must not take a second."""
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
