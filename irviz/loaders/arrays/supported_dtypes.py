"""The dtypes that parameters and inputs from files can have."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from irviz.loaders.file_errors import FileError, brief

SAVE: Final = "save the arrays with numpy.savez(path, w0=..., b0=...) and load that file"
CONVERT: Final = f"convert it with numpy.asarray(value, dtype='float32') and {SAVE}"
NUMBERS: Final = "bool, int, uint or float of at most 64 bits"
DTYPES: Final = {"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"}


def native_array(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Copy an array: writeable, C-contiguous, native byte order. Raise FileError for others."""
    if array.dtype.str[1:] not in DTYPES:
        raise FileError(
            f"holds {brief(name)} of dtype {str(array.dtype)!r}, where {NUMBERS} is "
            f"needed; {CONVERT}"
        )
    return np.array(array, array.dtype.newbyteorder("="), order="C")
