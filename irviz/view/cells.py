"""Which numbers of an array a heat map shows: a slice, a fold, the largest of each block."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from irviz.view.words import not_finite

Array = NDArray[np.generic]
Numbers = NDArray[np.float64]

_MOST_SIDE = 256
_LONGEST_ROW = 32
"""A vector that is longer is folded."""


@dataclass(frozen=True, eq=False)
class Cells:
    """A matrix of what is shown, one number a cell.

    A cell stands for `rows` times `columns` of the array's numbers; the matrix shows `height`
    times `width` of them. Behind the first `filled` cells, row by row, there is nothing: there a
    folded vector ends. `notes` say what was chosen, `not_finite` how many NaN and infinities
    there are.
    """

    values: Numbers
    rows: int
    columns: int
    height: int
    width: int
    filled: int
    notes: tuple[str, ...]
    is_folded: bool = False
    not_finite: tuple[tuple[str, bool], ...] = ()


def cells(array: Array, index: Sequence[int] = ()) -> Cells:
    """Return the cells of an array with one dimension or more; `index` chooses among the first.

    The last two dimensions are shown. Raises ValueError for an index that does not fit.
    """
    leading = array.shape[:-2]
    chosen = checked_index(array.shape, index)
    notes = []
    if math.prod(leading) > 1:
        slots = ", ".join([*map(str, chosen), ":", ":"])
        notes.append(f"the slice [{slots}]")
    taken = array[chosen]
    shown = _shown(taken, tuple(notes))
    if np.isfinite(shown.values).all():
        return shown
    return replace(shown, not_finite=not_finite(as_numbers(taken)))


def _shown(taken: Array, notes: tuple[str, ...]) -> Cells:
    if 1 in taken.shape or taken.ndim == 1:
        return _row(taken.reshape(-1), notes)
    height, width = taken.shape
    rows, columns = math.ceil(height / _MOST_SIDE), math.ceil(width / _MOST_SIDE)
    if rows > 1 or columns > 1:
        notes += (f"a cell is the largest |number| of {rows} × {columns}, with its sign",)
    shown = _largest(_largest(_real(taken), rows, 0), columns, 1)
    return Cells(_double(shown), rows, columns, height, width, shown.size, notes)


def checked_index(shape: Sequence[int], index: Sequence[int]) -> tuple[int, ...]:
    """Return an index into all dimensions but the last two, zeros where it is empty.

    Raises ValueError where it is too short, too long or leads outside of the shape.
    """
    leading = tuple(shape[:-2])
    chosen = tuple(int(one) for one in index) or (0,) * len(leading)
    fits = len(chosen) == len(leading) and all(
        0 <= one < size for one, size in zip(chosen, leading, strict=False)
    )
    if not fits:
        limits = ", ".join(f"0 to {size - 1}" for size in leading) or "nothing"
        raise ValueError(
            f"there is no slice {tuple(index)!r} of {tuple(shape)}: the last two dimensions are "
            f"shown, so give {limits}"
        )
    return chosen


def as_numbers(array: Array) -> Numbers:
    """Return an array's numbers in float64, NaN and infinities as they are."""
    return _double(_real(array))


def _row(vector: Array, notes: tuple[str, ...]) -> Cells:
    """Return a vector as one row, folded where it is long."""
    step = math.ceil(vector.size / _MOST_SIDE**2)
    shown = _double(_largest(_real(vector), step, 0))
    if step > 1:
        notes += (f"a cell is the largest |number| of {step} in a row, with its sign",)
    columns = shown.size if shown.size <= _LONGEST_ROW else _fold(shown.size)
    height = math.ceil(shown.size / columns)
    is_folded = height > 1
    if is_folded:
        notes += (f"folded: {columns * step:,} numbers a row",)
    values = np.zeros(height * columns)
    values[: shown.size] = shown
    matrix = values.reshape(height, columns)
    return Cells(matrix, 1, step, height, columns * step, shown.size, notes, is_folded)


def _fold(size: int) -> int:
    """Return how long the rows of a folded vector are: all of one length where that is near."""
    side = math.isqrt(size - 1) + 1
    whole = (columns for columns in range(side, 4 * side) if size % columns == 0)
    return next(whole, side)


def _real(array: Array) -> Array:
    """Return numbers of a dtype that NumPy itself compares."""
    if array.dtype.kind in "fiu" and array.dtype.isbuiltin == 1:
        return array
    return _double(array)


def _double(array: Array) -> Numbers:
    with np.errstate(all="ignore"):  # a signalling NaN is a NaN
        return array.astype(np.float64)


def _largest(array: Array, step: int, axis: int) -> Array:
    """Return the number with the largest |number| of each `step` along an axis; NaN goes first."""
    if step == 1:
        return array
    starts = np.arange(0, array.shape[axis], step)
    with np.errstate(invalid="ignore"):
        high = _double(np.maximum.reduceat(array, starts, axis=axis))
        low = _double(np.minimum.reduceat(array, starts, axis=axis))
    return np.where(high >= -low, high, low)
