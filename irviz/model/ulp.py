"""Distances between floats, in units in the last place."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

ORDERED = ("float16", "bfloat16", "float32", "float64")
"""Dtypes with a sign bit above bits that grow with the number."""


def has_distances(array: NDArray[np.generic], reference: NDArray[np.generic]) -> bool:
    """Tell whether two arrays are of the same dtype, and that one of `ORDERED`."""
    dtype = array.dtype
    return dtype == reference.dtype and dtype.name in ORDERED and bool(dtype.isnative)


def distances(array: NDArray[np.generic], reference: NDArray[np.generic]) -> NDArray[np.uint64]:
    """Return how many steps to the next float lead from one number to the other, exactly.

    The bits of a float without its sign count the floats from zero on: so do the two zeros lie on
    each other, the infinities one step past the largest number, and on both sides of zero the
    two counts add up. What is said of a NaN means nothing.
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
