"""Compare tensors."""

from __future__ import annotations

import numpy as np
import tvm


def is_equal_tensor(one: tvm.runtime.Tensor | None, other: tvm.runtime.Tensor | None) -> bool:
    """Return whether two tensors hold the same bits; False where that cannot be read."""
    if one is None or other is None:
        return one is other
    if one.__chandle__() == other.__chandle__():
        return True
    if (one.dtype, tuple(one.shape)) != (other.dtype, tuple(other.shape)):
        return False
    try:
        mine, theirs = (np.ascontiguousarray(each.numpy()) for each in (one, other))
    except Exception:  # a dtype that NumPy does not know, or a device that is not this one
        return False
    return bool(np.array_equal(mine.view(np.uint8), theirs.view(np.uint8)))
