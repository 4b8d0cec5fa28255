"""How close two arrays are: what differs, by how much, and whether that is within tolerance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from irviz.model.ulp import distances, has_distances

Array = NDArray[np.generic]

_CHUNK = 1 << 16  # so few numbers are compared at a time: copies of these stay in the cache
_STEPS = 8


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
    """Return what is tolerated of these dtypes: 1e-4, or 8 machine epsilons where that is more.

    So the last three bits of the coarsest dtype may differ: 0.0078 for float16, 0.0625 for
    bfloat16. It is reckoned from the dtype of what is compared: a float32 that was computed of
    float16 has the tolerance of a float32.
    """
    limit = max((_STEPS * _epsilon(dtype) for dtype in dtypes), default=0.0)
    return Tolerance(max(limit, Tolerance.relative), max(limit, Tolerance.absolute))


@dataclass(frozen=True)
class Closeness:
    """Two arrays of one shape, number by number.

    Of `size` numbers `differing` are not the same and `past` are not within tolerance; equal
    infinities, two NaNs and the two zeros are the same. `max_abs` is the largest |Δ|, inf where
    only one is a NaN, and `worst` where in the array it is first, counted in C order; None when
    nothing differs. `max_relative` is the largest |Δ| / |reference|: where the reference is 0
    there is none, and where nothing else differs it is None. `max_ulp` is the largest distance in
    units in the last place, for float16, bfloat16, float32 and float64 of the same dtype: a NaN
    has none, and where nothing else differs, and for other dtypes, it is None. `is_equal` says
    that dtypes and bytes are the same.
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
        """Whether the arrays are equal, within tolerance or different."""
        if self.is_equal:
            return Verdict.EQUAL
        return Verdict.DIFFERENT if self.past else Verdict.CLOSE


def is_numeric(dtype: np.dtype[np.generic]) -> bool:
    """Tell whether a dtype holds real numbers, among them those that NumPy does not know."""
    is_extension = dtype.kind == "V" and dtype.type is not np.void
    return dtype.kind in "biuf" or is_extension


def closeness(array: Array, reference: Array, tolerance: Tolerance | None = None) -> Closeness:
    """Compare two arrays of real numbers of one shape.

    Without a tolerance that of their dtypes is taken. A few thousand numbers are compared at a
    time, so that large arrays are not copied as a whole, unless they are not contiguous. Raises
    ValueError for arrays of different shapes.
    """
    if array.shape != reference.shape:
        raise ValueError(
            f"arrays of shapes {array.shape!r} and {reference.shape!r} have no numbers to set "
            "against each other: give two of the same shape"
        )
    limits = tolerance or default_tolerance(array.dtype, reference.dtype)
    has_ulp = has_distances(array, reference)
    differing = past = 0
    largest, worst = 0.0, None
    ratios, steps = [], []
    is_equal = array.dtype == reference.dtype
    with np.errstate(all="ignore"):
        for start, a, b in _unlike(array.reshape(-1), reference.reshape(-1)):
            is_equal = False
            deltas, targets = _deltas(a, b), b.astype(np.float64)
            is_off = deltas != 0
            differing += int(np.count_nonzero(is_off))
            limit = limits.absolute + limits.relative * np.abs(targets)
            past += int(np.count_nonzero(is_off & ~((deltas <= limit) & np.isfinite(deltas))))
            at = int(deltas.argmax())
            if deltas[at] > largest:
                largest, worst = float(deltas[at]), start + at
            is_based = is_off & (targets != 0)
            if is_based.any():
                ratios.append(_largest_ratio(deltas[is_based], targets[is_based]))
            if has_ulp:
                is_counted = is_off & ~(np.isnan(a) | np.isnan(b))
                if is_counted.any():
                    steps.append(int(distances(a, b)[is_counted].max()))
    nothing = None if differing else 0
    return Closeness(
        size=int(array.size),
        differing=differing,
        past=past,
        max_abs=largest,
        max_relative=max(ratios, default=nothing),
        max_ulp=max(steps, default=nothing) if has_ulp else None,
        worst=worst,
        is_equal=is_equal,
    )


def _unlike(array: Array, reference: Array) -> Iterator[tuple[int, Array, Array]]:
    """Yield the stretches of two arrays that are not the same bytes, and where they begin."""
    size = array.dtype.itemsize
    is_same_dtype = array.dtype == reference.dtype and size in (1, 2, 4, 8)
    for start in range(0, array.size, _CHUNK):
        a, b = array[start : start + _CHUNK], reference[start : start + _CHUNK]
        if not (is_same_dtype and np.array_equal(_bits(a, size), _bits(b, size))):
            yield start, a, b


def _bits(array: Array, size: int) -> Array:
    return np.ascontiguousarray(array).view(f"u{size}")


def _deltas(array: Array, reference: Array) -> NDArray[np.float64]:
    """Return each |Δ|: 0 for what is the same, inf where only one is a NaN."""
    if array.dtype == reference.dtype and array.dtype.name in ("int64", "uint64"):
        # float64 has no room for all of these, while it can tell their Δ from 0
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


def _epsilon(dtype: np.dtype[np.generic]) -> float:
    """Return the step from 1 to the next number of a dtype of floats, 0 for all others."""
    if "float" not in dtype.name:
        return 0.0
    one, two = np.array([1, 2]).astype(dtype)
    return float(np.nextafter(one, two)) - 1.0
