"""Statistics of an array: range, mean, standard deviation, histogram."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_Numbers = NDArray[np.float64]
_BINS = 24
_HUGE, _TINY = 1e150, 1e-150
"""Beyond these magnitudes, squares overflow or underflow in float64."""
_LARGEST = float(np.finfo(np.float64).max)
_MIN_WIDTH = 1e-300
"""A narrower range cannot be divided into bins."""


@dataclass(frozen=True)
class ArraySummary:
    """Statistics of an array.

    `minimum`, `maximum`, `mean` and `std` (the standard deviation) are those of the finite numbers,
    None if there are none. So is the histogram: `counts` of bins and their `edges`, empty if there
    are none. `zeros` is the share of zeros among them; `nans` and `infs` are counts; `digest` is a
    hash of bytes, shape and dtype. With a `step` above 1 only one of so many numbers was taken for
    mean, std, zeros, histogram and digest.
    """

    shape: tuple[int, ...]
    dtype: str
    nbytes: int
    minimum: float | None
    maximum: float | None
    mean: float | None
    std: float | None
    nans: int
    infs: int
    counts: tuple[int, ...]
    edges: tuple[float, ...]
    digest: bytes
    zeros: float = 0.0
    step: int = 1

    @property
    def is_finite(self) -> bool:
        """Whether the array has neither a NaN nor an infinity."""
        return not (self.nans or self.infs)

    @property
    def largest(self) -> float | None:
        """The largest magnitude of the finite numbers, None if there are none."""
        if self.minimum is None or self.maximum is None:
            return None
        return max(abs(self.minimum), abs(self.maximum))


def summarise(array: NDArray[np.generic], most: int | None = None) -> ArraySummary:
    """Compute the statistics of an array in float64.

    Args:
        most: How many numbers to take of a larger array. Its NaN and infinities are counted in all
            of it, and its range is that of all numbers where there are none of these.

    Raises:
        ValueError: For a dtype that does not hold real numbers or bools.
    """
    dtype = array.dtype
    if dtype.kind in "OSUMmc" or dtype.type is np.void:
        raise ValueError(f"an array of {dtype} has no summary: give one of real numbers or bools")
    step = 1 if most is None else max(1, -(-array.size // most))
    contiguous = np.ascontiguousarray(array.reshape(-1)[::step])
    digest = hashlib.blake2b(digest_size=16)
    digest.update(f"{array.shape} {dtype}".encode())
    digest.update(contiguous.view(np.uint8).data if array.size else b"")
    with np.errstate(all="ignore"):  # a signalling NaN raises a flag
        values = contiguous.astype(np.float64)
        ends = (float(array.min()), float(array.max())) if step > 1 else None
    is_finite = np.isfinite(values)
    if ends is None:
        nans = int(np.isnan(values).sum())
        infs = int(values.size - is_finite.sum() - nans)
    elif np.isfinite(ends).all():
        nans = infs = 0
    else:
        nans, infs = int(np.isnan(array).sum()), int(np.isinf(array).sum())
        ends = None
    finite = values if is_finite.all() else values[is_finite]
    low = high = mean = std = None
    counts: tuple[int, ...] = ()
    edges: tuple[float, ...] = ()
    if finite.size:
        low, high = ends or (float(finite.min()), float(finite.max()))
        mean, std = _mean_and_std(finite, low, high)
        counts, edges = _histogram(finite, low, high)
    return ArraySummary(
        shape=tuple(array.shape),
        dtype=str(dtype),
        nbytes=int(array.nbytes),
        minimum=low,
        maximum=high,
        mean=mean,
        std=std,
        nans=nans,
        infs=infs,
        counts=counts,
        edges=edges,
        digest=digest.digest(),
        zeros=float((finite == 0).mean()) if finite.size else 0.0,
        step=step,
    )


def _mean_and_std(values: _Numbers, low: float, high: float) -> tuple[float, float]:
    """Return the mean and standard deviation of finite numbers of any magnitude."""
    if low == high:  # the sum would be rounded
        return low, 0.0
    largest = max(abs(low), abs(high))
    fraction, exponent = math.frexp(largest)
    if _TINY < largest < _HUGE:
        fraction, exponent = largest, 0
    scaled = np.ldexp(values, -exponent) if exponent else values
    mean = math.ldexp(float(np.clip(scaled.mean(), -fraction, fraction)), exponent)
    std = math.ldexp(min(float(scaled.std()), fraction), exponent)
    return min(max(mean, low), high), std


def _histogram(
    values: _Numbers, low: float, high: float
) -> tuple[tuple[int, ...], tuple[float, ...]]:
    low, high = _range(low, high)
    scale = 4 if max(abs(low), abs(high)) > _LARGEST / 4 else 1  # NumPy overflows otherwise
    taken = values / scale if scale != 1 else values
    counts, edges = np.histogram(taken, _BINS, (low / scale, high / scale))
    return tuple(map(int, counts)), tuple(float(edge) * scale for edge in edges)


def _range(low: float, high: float) -> tuple[float, float]:
    """Widen a range that is too narrow to be divided into bins."""
    largest = max(abs(low), abs(high))
    if high - low > max(largest * 1e-12, _MIN_WIDTH):
        return low, high
    margin = max(largest / 2, _MIN_WIDTH) if largest else 0.5
    return max(low - margin, -_LARGEST), min(high + margin, _LARGEST)
