"""How far two numbers may be apart to count as close."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

_STEPS = 8
_MOST_SCALE = 10.0


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


def scaled_tolerance(array: NDArray[np.generic], reference: NDArray[np.generic]) -> Tolerance:
    """Return the default tolerance of two arrays, whose absolute part is in proportion to them.

    It is for results of long sums, and not more than that of numbers up to 10: a mask of -1e38
    among the numbers must not hide the others.
    """
    usual = default_tolerance(array.dtype, reference.dtype)
    with np.errstate(all="ignore"):
        numbers = np.abs(reference.astype(np.float64))
    largest = float(numbers[np.isfinite(numbers)].max(initial=0.0))
    return replace(usual, absolute=usual.absolute * min(_MOST_SCALE, largest))


def _epsilon(dtype: np.dtype[np.generic]) -> float:
    """Return the distance from 1 to the next number of a dtype of floats, 0 for other dtypes."""
    if "float" not in dtype.name:
        return 0.0
    one, two = np.array([1, 2]).astype(dtype)
    return float(np.nextafter(one, two)) - 1.0
