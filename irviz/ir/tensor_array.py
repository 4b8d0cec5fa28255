"""The values of a TVM tensor as an array."""

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
