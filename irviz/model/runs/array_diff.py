"""Arrays in numbers: how two differ, whether that is tolerable, and what is in one."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.generic]
DType = np.dtype[np.generic]
_Numbers = NDArray[np.float64]

# --- How far two numbers may be apart to count as close -------------------------------------------
#
# The tolerance of programs that should compute the same follows from what rounding can do. A number
# that is made by N operations in a row with the unit roundoff u has a relative error of at most
# γ(N) = Nu / (1 - Nu) (N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2nd edition,
# SIAM 2002, section 3.1); as rounding errors mostly cancel, about √N·u is what occurs (N. J. Higham
# and T. Mary, "A New Approach to Probabilistic Rounding Error Analysis", SIAM Journal on Scientific
# Computing 41, 2019). What a program makes of such an error, its conditioning, is measured by
# changing the inputs by as much (section 1.6 of the book).


_STEPS = 8
_MOST_SCALE = 10.0
_KERNELS = {"float64": 1e-9, "float32": 1e-5, "float16": 1e-2}
"""Two kernels that compute the same differ by less, as they add some thousand numbers in another
order; on random samples a kernel that computes something else differs by more."""
_DEVIATIONS = 4.0
"""How many times √N·u an error may be, and how many times that of changed inputs."""


@dataclass(frozen=True)
class Tolerance:
    """Numbers are close when |Δ| ≤ absolute + relative · |reference|, as in NumPy's allclose.

    Attributes:
        noise: What is added to `absolute` for each number, in C order.
    """

    relative: float = 1e-4
    absolute: float = 1e-4
    noise: NDArray[np.float64] | None = field(default=None, repr=False, compare=False)


def default_tolerance(*dtypes: DType) -> Tolerance:
    """Return 1e-4, or 8 machine epsilons of the coarsest dtype if that is more.

    So the last three bits may differ: 0.0078 for float16, 0.0625 for bfloat16. Only the dtypes of
    the compared arrays count: a float32 computed from float16 has the tolerance of a float32.
    """
    limit = max((_STEPS * _epsilon(dtype) for dtype in dtypes), default=0.0)
    return Tolerance(max(limit, Tolerance.relative), max(limit, Tolerance.absolute))


def scaled_tolerance(array: Array, reference: Array, given: Iterable[DType] = ()) -> Tolerance:
    """Return the default tolerance of two arrays, whose absolute part is in proportion to them.

    It is for results of long sums, and not more than that of numbers up to 10: a mask of -1e38
    among the numbers must not hide the others. A float32 computed from `given` arguments of float16
    has the tolerance of a float16.
    """
    usual = default_tolerance(array.dtype, reference.dtype, *given)
    scale = min(_MOST_SCALE, largest_number(reference))
    return replace(usual, absolute=usual.absolute * scale)


def kernel_tolerance(reference: Array) -> Tolerance:
    """Return the tolerance of a kernel, of which only samples are known and no operations."""
    relative = _KERNELS.get(reference.dtype.name, 0.0)
    return Tolerance(relative, relative * largest_number(reference))


def largest_number(array: Array) -> float:
    """Return the largest magnitude of the finite numbers, 0 if there is none."""
    with np.errstate(all="ignore"):
        numbers = np.abs(array.astype(np.float64))
    return float(numbers[np.isfinite(numbers)].max(initial=0.0))


def unit_roundoff(dtypes: Iterable[DType]) -> float:
    """Return the unit roundoff of the coarsest of some dtypes, 0 if none is of floats."""
    return max((_epsilon(dtype) / 2 for dtype in dtypes), default=0.0)


def rounding_error(operations: float, unit: float) -> float:
    """Return the relative error that is usual after so many operations: √N·u."""
    return math.sqrt(max(operations, 1.0)) * unit


def rounding_tolerance(reference: Array, error: float, noise: _Numbers | None = None) -> Tolerance:
    """Return the tolerance of numbers with a relative error, the same for all numbers of an array.

    Numbers that are small because large ones cancel have errors of the size of the usual number.

    Args:
        noise: How far each number is from that of inputs with this error; small ones are raised to
            their mean, as some are small by chance.
    """
    if "float" not in reference.dtype.name:
        return Tolerance(0.0, 0.0, noise)
    with np.errstate(all="ignore"):
        numbers = np.abs(reference.astype(np.float64))
    relative = _DEVIATIONS * error
    if noise is not None:
        noise = _DEVIATIONS * np.maximum(noise, _mean(noise))
    return Tolerance(relative, relative * _mean(numbers), noise)


def _mean(numbers: _Numbers) -> float:
    """Return the mean of the finite numbers."""
    with np.errstate(all="ignore"):
        finite = numbers[np.isfinite(numbers)]
        return float(finite.mean()) if finite.size else 0.0


def _epsilon(dtype: DType) -> float:
    """Return the distance from 1 to the next number of a dtype of floats, 0 for other dtypes."""
    if "float" not in dtype.name:
        return 0.0
    one, two = np.array([1, 2]).astype(dtype)
    return float(np.nextafter(one, two)) - 1.0


# --- How two arrays differ, and what is in one ----------------------------------------------------


_CHUNK = 1 << 16  # numbers compared at a time: copies of these stay in the cache
_ORDERED = ("float16", "bfloat16", "float32", "float64")
"""Dtypes whose bits below the sign grow with the magnitude of the number."""


class Verdict(Enum):
    """How the outputs of two runs compare."""

    EQUAL = "equal"
    CLOSE = "within tolerance"
    DIFFERENT = "different"
    INCOMPARABLE = "not comparable"


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
        share: The largest |Δ| in proportion to what the tolerance allows there; above 1 it is past.
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
    share: float = 0.0

    @property
    def verdict(self) -> Verdict:
        """Whether the arrays are equal, within tolerance, or different."""
        if self.is_equal:
            return Verdict.EQUAL
        return Verdict.DIFFERENT if self.past else Verdict.CLOSE


def combine_diffs(parts: Sequence[ArrayDiff]) -> ArrayDiff:
    """Return the differences of several arrays together; `worst` is a position in its part."""
    relevant = [part for part in parts if part.differing] or parts
    return ArrayDiff(
        size=sum(part.size for part in parts),
        differing=sum(part.differing for part in parts),
        past=sum(part.past for part in parts),
        max_abs=max((part.max_abs for part in parts), default=0.0),
        max_relative=max(
            (part.max_relative for part in relevant if part.max_relative is not None), default=None
        ),
        max_ulp=max((part.max_ulp for part in relevant if part.max_ulp is not None), default=None),
        worst=max(relevant, key=lambda part: part.max_abs).worst if relevant else None,
        is_equal=all(part.is_equal for part in parts),
        share=max((part.share for part in parts), default=0.0),
    )


def is_numeric(dtype: DType) -> bool:
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
    is_same_dtype = array.dtype == reference.dtype
    has_ulp = is_same_dtype and array.dtype.name in _ORDERED and array.dtype.isnative
    parts = [ArrayDiff(0, is_equal=is_same_dtype)]
    a, b = array.reshape(-1), reference.reshape(-1)
    with np.errstate(all="ignore"):
        for start in range(0, array.size, _CHUNK):
            chunk = slice(start, start + _CHUNK)
            here = limits if limits.noise is None else replace(limits, noise=limits.noise[chunk])
            parts.append(_compare_chunk(a[chunk], b[chunk], here, start, has_ulp=has_ulp))
    found = combine_diffs(parts)
    return found if has_ulp else replace(found, max_ulp=None)


def _compare_chunk(
    array: Array, reference: Array, limits: Tolerance, start: int, *, has_ulp: bool
) -> ArrayDiff:
    has_bits = array.dtype == reference.dtype and array.dtype.itemsize in (1, 2, 4, 8)
    if has_bits and np.array_equal(_bits(array), _bits(reference)):
        return ArrayDiff(array.size)
    deltas, targets = distances(array, reference), reference.astype(np.float64)
    is_changed = deltas != 0
    differing = int(np.count_nonzero(is_changed))
    if not differing:
        return ArrayDiff(array.size, is_equal=False)
    limit = limits.absolute + limits.relative * np.abs(targets)
    if limits.noise is not None:
        limit = limit + limits.noise
    is_past = is_changed & ~((deltas <= limit) & np.isfinite(deltas))
    has_ratio = is_changed & (targets != 0)
    ratios = deltas[has_ratio] / np.abs(targets[has_ratio])
    ratios[np.isnan(ratios)] = np.inf
    ulps = None
    if has_ulp:
        is_number = is_changed & ~(np.isnan(array) | np.isnan(reference))
        ulps = _ulp_distances(array[is_number], reference[is_number])
    worst = int(deltas.argmax())
    return ArrayDiff(
        size=array.size,
        differing=differing,
        past=int(np.count_nonzero(is_past)),
        max_abs=float(deltas[worst]),
        max_relative=float(ratios.max()) if ratios.size else None,
        max_ulp=None if ulps is None or not ulps.size else int(ulps.max()),
        worst=start + worst,
        is_equal=False,
        share=_largest_share(deltas[is_changed], limit[is_changed], is_past[is_changed]),
    )


def _largest_share(deltas: _Numbers, limits: _Numbers, is_past: NDArray[np.bool_]) -> float:
    shares = deltas / limits
    shares[~np.isfinite(shares)] = np.inf
    return float(np.where(is_past, np.maximum(shares, 1.0), np.minimum(shares, 1.0)).max())


def _bits(array: Array) -> NDArray[Any]:
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


def distances(array: Array, reference: Array) -> _Numbers:
    """Return each |Δ|: 0 for numbers that count as the same, inf if only one is a NaN."""
    if array.dtype == reference.dtype and array.dtype.name in ("int64", "uint64"):
        # float64 cannot represent all of these, but it can represent that they differ
        high, low = np.maximum(array, reference), np.minimum(array, reference)
        return (high.astype(np.uint64) - low.astype(np.uint64)).astype(np.float64)
    a, b = array.astype(np.float64), reference.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(all="ignore"):
        deltas = np.abs(a - b)
    deltas[same] = 0.0
    deltas[np.isnan(deltas)] = np.inf
    return deltas


def _ulp_distances(array: Array, reference: Array) -> NDArray[np.uint64]:
    """Return the distance of each two floats in units in the last place (ULP), exactly.

    The bits of a float below its sign count the floats from zero on. So the distance is the
    difference of the two counts, and their sum if the signs differ: the two zeros are equal, and
    an infinity is one step beyond the largest number.
    """
    first, second = _bits(array).astype(np.uint64), _bits(reference).astype(np.uint64)
    sign = np.uint64(1 << (array.dtype.itemsize * 8 - 1))
    a, b = first & ~sign, second & ~sign
    is_across = (first & sign) != (second & sign)
    return np.where(is_across, a + b, np.maximum(a, b) - np.minimum(a, b))


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
    std, zeros, histogram and digest.
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


def summarise(array: Array, most: int | None = None) -> ArraySummary:
    """Compute the statistics of an array in float64.

    Args:
        most: How many numbers to take of a larger array. Its NaN and infinities are counted in all
            of it, and range and mean are those of all numbers where there are none of these.

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
        whole = float(array.mean(dtype=np.float64)) if step > 1 else math.nan
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
        mean = whole if low <= whole <= high else mean
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
