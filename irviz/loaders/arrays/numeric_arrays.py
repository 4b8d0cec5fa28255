"""The arrays that can be parameters or inputs."""

import math
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from irviz.loaders.reader_limits import FileError, brief

Params = dict[str, NDArray[Any]]

SAVE: Final = "save the arrays with numpy.savez(path, w0=..., b0=...) and load that file"
CONVERT: Final = f"convert it with numpy.asarray(value, dtype='float32') and {SAVE}"
NUMBERS: Final = "bool, int, uint or float of at most 64 bits"
DTYPES: Final = {"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"}


def read_npy(file: IO[bytes], size: int) -> NDArray[Any]:
    """Return the array in a file of `size` bytes in NumPy's format.

    Raises what NumPy raises for damaged files, and ValueError for a shape that is larger than the
    file, which NumPy would get the memory for.
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


def native_array(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Return a writeable, C-contiguous copy in native byte order; raise FileError for others."""
    if array.dtype.str[1:] not in DTYPES:
        raise FileError(
            f"holds {brief(name)} of dtype {str(array.dtype)!r}, where {NUMBERS} is "
            f"needed; {CONVERT}"
        )
    return np.array(array, array.dtype.newbyteorder("="), order="C")
