"""What can be a parameter, and the words for what cannot."""

import reprlib
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Params = dict[str, NDArray[Any]]

SAVE: Final = "save the arrays with numpy.savez(path, w0=..., b0=...) and load that file"
CONVERT: Final = f"convert it with numpy.asarray(value, dtype='float32') and {SAVE}"
NUMBERS: Final = "bool, int, uint or float of at most 64 bits"
DTYPES: Final = {"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"}


class ParamsError(ValueError):
    """Say why a file of parameters was not read, what would have been right and what to do."""


def plain(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Return the array in native byte order, C-contiguous and writeable, if it is of numbers."""
    if array.dtype.str[1:] not in DTYPES:
        raise ParamsError(
            f"holds {brief(name)} of dtype {str(array.dtype)!r}, where {NUMBERS} is "
            f"needed; {CONVERT}"
        )
    return np.array(array, array.dtype.newbyteorder("="), order="C")


def brief(value: object) -> str:
    """Return the repr of something in a file, which may be long, deep or both, cut short."""
    return _brief.repr(value)


_brief = reprlib.Repr()
_brief.maxstring = _brief.maxother = 100
