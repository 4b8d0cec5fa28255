"""The arrays that can be parameters or inputs, and the error for others."""

import reprlib
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from irviz.errors import LoadError

Params = dict[str, NDArray[Any]]

SAVE: Final = "save the arrays with numpy.savez(path, w0=..., b0=...) and load that file"
CONVERT: Final = f"convert it with numpy.asarray(value, dtype='float32') and {SAVE}"
NUMBERS: Final = "bool, int, uint or float of at most 64 bits"
DTYPES: Final = {"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"}


class ParamsError(LoadError):
    """A file of parameters that was not read; the message says what would be right."""


def native_array(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Return a writeable, C-contiguous copy in native byte order.

    Raises ParamsError if the array is not one of numbers.
    """
    if array.dtype.str[1:] not in DTYPES:
        raise ParamsError(
            f"holds {brief(name)} of dtype {str(array.dtype)!r}, where {NUMBERS} is "
            f"needed; {CONVERT}"
        )
    return np.array(array, array.dtype.newbyteorder("="), order="C")


def brief(value: object) -> str:
    """Return the repr of a value from a file, shortened, as it may be long or deep."""
    return _brief.repr(value)


_brief = reprlib.Repr()
_brief.maxstring = _brief.maxother = 100
