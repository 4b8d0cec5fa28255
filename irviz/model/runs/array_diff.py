"""Compare two arrays: which numbers differ, by how much, and whether that is tolerable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.generic]

_CHUNK = 1 << 16  # numbers compared at a time: copies of these stay in the cache
_STEPS = 8
_ORDERED = ("float16", "bfloat16", "float32", "float64")
"""Dtypes whose bits below the sign grow with the magnitude of the number."""


class Verdict(Enum):
    """How the outputs of two runs compare."""

    EQUAL = "equal"
    CLOSE = "within tolerance"
    DIFFERENT = "different"
    INCOMPARABLE = "not comparable"


@dataclass(frozen=True)
class Tolerance:
    """Numbers are close when |Δ| ≤ absolute + relative · |reference|, as in NumPy's allclose."""

    relative: float = 1e-4
    absolute: float = 1e-4


def default_tolerance(*dtypes: np.dtype[np.generic]) -> Tolerance:
    """Return 1e-4, or 8 machine epsilons of the coarsest dtype if that is more.

    So the last three bits may differ: 0.0078 for float16, 0.0625 for bfloat16. Only the dtypes of
    the compared arrays count: a float32 computed from float16 has the tolerance of a float32.
    """
    limit = max((_STEPS * _epsilon(dtype) for dtype in dtypes), default=0.0)
    return Tolerance(max(limit, Tolerance.relative), max(limit, Tolerance.absolute))


@dataclass(frozen=True)
class ArrayDiff:
    """The differences between two arrays of one shape, number by number.

    Equal infinities, two NaNs and the two zeros count as the same.

    Attributes:
        differing: The count of those that are not the same.
        past: The count of those that are not within tolerance.
        max_abs: The largest |Δ|, inf if only one of two numbers is a NaN.
        max_relative: The largest |Δ| / |reference| where the reference is not 0; None if numbers
            differ only where it is.
        max_ulp: The largest distance in units in the last place, NaN apart. None for two dtypes
            that differ or are not float16, bfloat16, float32 or float64, or if only NaN differ.
        worst: The first position of `max_abs` in C order, None if nothing differs.
        is_equal: Whether dtypes and bytes are the same.
    """

    size: int
    differing: int = 0
    past: int = 0
    max_abs: float = 0.0
    max_relative: float | None = 0.0
    max_ulp: int | None = 0
    worst: int | None = None
    is_equal: bool = True

    @property
    def verdict(self) -> Verdict:
        """Whether the arrays are equal, within tolerance, or different."""
        if self.is_equal:
            return Verdict.EQUAL
        return Verdict.DIFFERENT if self.past else Verdict.CLOSE


def is_numeric(dtype: np.dtype[np.generic]) -> bool:
    """Return whether a dtype holds real numbers; extension dtypes such as bfloat16 do."""
    is_extension = dtype.kind == "V" and dtype.type is not np.void
    return dtype.kind in "biuf" or is_extension


def compare_arrays(array: Array, reference: Array, tolerance: Tolerance | None = None) -> ArrayDiff:
    """Compare two arrays of real numbers.

    Some thousand numbers are compared at a time, so contiguous arrays are not copied as a whole.

    Args:
        reference: An array of the same shape.
        tolerance: What counts as close, `default_tolerance` of the two dtypes if it is None.

    Raises:
        ValueError: For arrays of different shapes.
    """
    if array.shape != reference.shape:
        raise ValueError(
            f"arrays of shapes {array.shape!r} and {reference.shape!r} cannot be "
            "compared: give two of the same shape"
        )
    limits = tolerance or default_tolerance(array.dtype, reference.dtype)
    has_ulp = has_ulp_distances(array, reference)
    differing = past = 0
    largest, worst = 0.0, None
    ratios, steps = [], []
    is_equal = array.dtype == reference.dtype
    with np.errstate(all="ignore"):
        for start, a, b in _differing_chunks(array.reshape(-1), reference.reshape(-1)):
            is_equal = False
            deltas, targets = _deltas(a, b), b.astype(np.float64)
            is_changed = deltas != 0
            differing += int(np.count_nonzero(is_changed))
            limit = limits.absolute + limits.relative * np.abs(targets)
            past += int(np.count_nonzero(is_changed & ~((deltas <= limit) & np.isfinite(deltas))))
            at = int(deltas.argmax())
            if deltas[at] > largest:
                largest, worst = float(deltas[at]), start + at
            has_ratio = is_changed & (targets != 0)
            if has_ratio.any():
                ratios.append(_largest_ratio(deltas[has_ratio], targets[has_ratio]))
            if has_ulp:
                has_distance = is_changed & ~(np.isnan(a) | np.isnan(b))
                if has_distance.any():
                    steps.append(int(ulp_distances(a, b)[has_distance].max()))
    default = None if differing else 0
    return ArrayDiff(
        size=int(array.size),
        differing=differing,
        past=past,
        max_abs=largest,
        max_relative=max(ratios, default=default),
        max_ulp=max(steps, default=default) if has_ulp else None,
        worst=worst,
        is_equal=is_equal,
    )


def _differing_chunks(array: Array, reference: Array) -> Iterator[tuple[int, Array, Array]]:
    """Yield the chunks of two arrays whose bytes differ, each with its start."""
    size = array.dtype.itemsize
    is_same_dtype = array.dtype == reference.dtype and size in (1, 2, 4, 8)
    for start in range(0, array.size, _CHUNK):
        a, b = array[start : start + _CHUNK], reference[start : start + _CHUNK]
        if not (is_same_dtype and np.array_equal(_bits(a, size), _bits(b, size))):
            yield start, a, b


def _bits(array: Array, size: int) -> Array:
    return np.ascontiguousarray(array).view(f"u{size}")


def _deltas(array: Array, reference: Array) -> NDArray[np.float64]:
    """Return each |Δ|: 0 for numbers that count as the same, inf if only one is a NaN."""
    if array.dtype == reference.dtype and array.dtype.name in ("int64", "uint64"):
        # float64 cannot represent all of these, but it can represent that they differ
        high, low = np.maximum(array, reference), np.minimum(array, reference)
        return (high.astype(np.uint64) - low.astype(np.uint64)).astype(np.float64)
    a, b = array.astype(np.float64), reference.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    deltas = np.abs(a - b)
    deltas[same] = 0.0
    deltas[np.isnan(deltas)] = np.inf
    return deltas


def _largest_ratio(deltas: NDArray[np.float64], targets: NDArray[np.float64]) -> float:
    ratios = deltas / np.abs(targets)
    return float(np.where(np.isnan(ratios), np.inf, ratios).max())


def has_ulp_distances(array: Array, reference: Array) -> bool:
    """Return whether two arrays have the same dtype, and one whose floats can be counted."""
    dtype = array.dtype
    return dtype == reference.dtype and dtype.name in _ORDERED and bool(dtype.isnative)


def ulp_distances(array: Array, reference: Array) -> NDArray[np.uint64]:
    """Return the distance of each two floats in units in the last place (ULP), exactly.

    The bits of a float below its sign count the floats from zero on. So the distance is the
    difference of the two counts, and their sum if the signs differ: the two zeros are equal, and
    an infinity is one step beyond the largest number. The distance of a NaN has no meaning.
    """
    bits = array.dtype.itemsize * 8
    sign, unsigned = 1 << (bits - 1), np.dtype(f"u{array.dtype.itemsize}")
    first, second = array.view(unsigned), reference.view(unsigned)
    a = (first & unsigned.type(sign - 1)).astype(np.uint64)
    b = (second & unsigned.type(sign - 1)).astype(np.uint64)
    is_across = ((first ^ second) & unsigned.type(sign)) != 0
    steps: NDArray[np.uint64] = np.maximum(a, b) - np.minimum(a, b)
    steps[is_across] = (a + b)[is_across]
    return steps


def _epsilon(dtype: np.dtype[np.generic]) -> float:
    """Return the distance from 1 to the next number of a dtype of floats, 0 for other dtypes."""
    if "float" not in dtype.name:
        return 0.0
    one, two = np.array([1, 2]).astype(dtype)
    return float(np.nextafter(one, two)) - 1.0
