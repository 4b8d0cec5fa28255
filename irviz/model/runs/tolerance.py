"""How far two numbers may be apart to count as close.

The tolerance of programs that should compute the same follows from what rounding can do. A number
that is made by N operations in a row with the unit roundoff u has a relative error of at most
γ(N) = Nu / (1 - Nu) (N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2nd edition,
SIAM 2002, section 3.1); as rounding errors mostly cancel, about √N·u is what occurs (N. J. Higham
and T. Mary, "A New Approach to Probabilistic Rounding Error Analysis", SIAM Journal on Scientific
Computing 41, 2019). What a program makes of such an error, its conditioning, is measured by
changing the inputs by as much (section 1.6 of the book).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

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


def default_tolerance(*dtypes: np.dtype[np.generic]) -> Tolerance:
    """Return 1e-4, or 8 machine epsilons of the coarsest dtype if that is more.

    So the last three bits may differ: 0.0078 for float16, 0.0625 for bfloat16. Only the dtypes of
    the compared arrays count: a float32 computed from float16 has the tolerance of a float32.
    """
    limit = max((_STEPS * _epsilon(dtype) for dtype in dtypes), default=0.0)
    return Tolerance(max(limit, Tolerance.relative), max(limit, Tolerance.absolute))


def scaled_tolerance(
    array: NDArray[np.generic],
    reference: NDArray[np.generic],
    given: Iterable[np.dtype[np.generic]] = (),
) -> Tolerance:
    """Return the default tolerance of two arrays, whose absolute part is in proportion to them.

    It is for results of long sums, and not more than that of numbers up to 10: a mask of -1e38
    among the numbers must not hide the others. A float32 computed from `given` arguments of float16
    has the tolerance of a float16.
    """
    usual = default_tolerance(array.dtype, reference.dtype, *given)
    scale = min(_MOST_SCALE, largest_number(reference))
    return replace(usual, absolute=usual.absolute * scale)


def kernel_tolerance(reference: NDArray[np.generic]) -> Tolerance:
    """Return the tolerance of a kernel, of which only samples are known and no operations."""
    relative = _KERNELS.get(reference.dtype.name, 0.0)
    return Tolerance(relative, relative * largest_number(reference))


def largest_number(array: NDArray[np.generic]) -> float:
    """Return the largest magnitude of the finite numbers, 0 if there is none."""
    with np.errstate(all="ignore"):
        numbers = np.abs(array.astype(np.float64))
    return float(numbers[np.isfinite(numbers)].max(initial=0.0))


def unit_roundoff(dtypes: Iterable[np.dtype[np.generic]]) -> float:
    """Return the unit roundoff of the coarsest of some dtypes, 0 if none is of floats."""
    return max((_epsilon(dtype) / 2 for dtype in dtypes), default=0.0)


def rounding_error(operations: float, unit: float) -> float:
    """Return the relative error that is usual after so many operations: √N·u."""
    return math.sqrt(max(operations, 1.0)) * unit


def rounding_tolerance(
    reference: NDArray[np.generic], error: float, noise: NDArray[np.float64] | None = None
) -> Tolerance:
    """Return the tolerance of numbers with a relative error, the same for all numbers of an array.

    Numbers that are small because large ones cancel have errors of the size of the usual number.

    Args:
        error: The `rounding_error` of the numbers.
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


def _mean(numbers: NDArray[np.float64]) -> float:
    """Return the mean of the finite numbers."""
    with np.errstate(all="ignore"):
        finite = numbers[np.isfinite(numbers)]
        return float(finite.mean()) if finite.size else 0.0


def _epsilon(dtype: np.dtype[np.generic]) -> float:
    """Return the distance from 1 to the next number of a dtype of floats, 0 for other dtypes."""
    if "float" not in dtype.name:
        return 0.0
    one, two = np.array([1, 2]).astype(dtype)
    return float(np.nextafter(one, two)) - 1.0
