"""The values of a TVM tensor as an array, and the other way round."""

from __future__ import annotations

import numpy as np
import tvm
from numpy.typing import NDArray


def tensor_array(tensor: tvm.runtime.Tensor) -> NDArray[np.generic]:
    """Return a tensor as an array in the tensor's memory; a copy where NumPy cannot see that.

    Raises what TVM raises for a dtype that NumPy lacks.
    """
    try:
        return np.from_dlpack(tensor)
    except Exception:  # a dtype that only `numpy` can give, or memory of another device
        return np.asarray(tensor.numpy())


def shared_tensor(array: NDArray[np.generic]) -> tvm.runtime.Tensor:
    """Return an array as a tensor in the array's memory; a copy of a dtype that NumPy lacks."""
    try:
        return tvm.runtime.from_dlpack(array)
    except BufferError:  # such as bfloat16
        return tvm.runtime.tensor(array)


# --- Compare tensors and arrays ------------------------------------------------------------------


Array = NDArray[np.generic]

_FEW = 1009


def is_equal_tensor(one: tvm.runtime.Tensor | None, other: tvm.runtime.Tensor | None) -> bool:
    """Return whether two tensors hold the same bits; False where that cannot be read."""
    if one is None or other is None:
        return one is other
    if one.__chandle__() == other.__chandle__():
        return True
    if (one.dtype, tuple(one.shape)) != (other.dtype, tuple(other.shape)):
        return False
    try:
        mine, theirs = (np.ascontiguousarray(tensor_array(each)) for each in (one, other))
    except Exception:  # a dtype that NumPy does not know, or a device that is not this one
        return False
    return is_equal_array(mine, theirs)


def is_equal_array(one: Array, other: Array) -> bool:
    """Return whether two arrays hold the same bits; a few numbers tell most that do not."""
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return False
    mine, theirs = (np.ascontiguousarray(each).reshape(-1).view(np.uint8) for each in (one, other))
    few = slice(None, None, max(1, mine.size // _FEW))
    return bool(np.array_equal(mine[few], theirs[few])) and bool(np.array_equal(mine, theirs))
