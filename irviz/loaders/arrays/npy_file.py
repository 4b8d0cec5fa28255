"""Read an array in NumPy's format, .npy."""

import math
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray


def read_npy(file: IO[bytes], size: int) -> NDArray[Any]:
    """Return the array in a file of `size` bytes in NumPy's format.

    Raises what NumPy raises for damaged files, and ValueError for a shape larger than the file, for
    which NumPy would allocate memory.
    """
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    else:
        shape, _, dtype = np.lib.format.read_array_header_2_0(file)
    if math.prod(shape) * dtype.itemsize > size:
        raise ValueError(f"the shape {shape} of {dtype} is larger than its {size:,} bytes")
    file.seek(0)
    array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    return array
