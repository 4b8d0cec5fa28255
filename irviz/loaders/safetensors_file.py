"""Arrays out of a .safetensors file: a header in JSON, and the bytes of all arrays behind it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from irviz.loaders.numbers import NUMBERS, Params, ParamsError, brief

_LENGTH: Final = 8
_MOST_HEADER: Final = 100_000_000
"""The longest header that the format allows, in bytes."""
_METADATA: Final = "__metadata__"
_DTYPES: Final = {
    "BOOL": "?",
    "I8": "i1",
    "I16": "<i2",
    "I32": "<i4",
    "I64": "<i8",
    "U8": "u1",
    "U16": "<u2",
    "U32": "<u4",
    "U64": "<u8",
    "F16": "<f2",
    "F32": "<f4",
    "F64": "<f8",
}
_SMALL_FLOATS: Final = {"BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2"}
AGAIN: Final = "save the arrays with safetensors.numpy.save_file(params, path) and load that file"
_DAMAGED: Final = f"and is damaged, cut short or no .safetensors; {AGAIN}"


def is_safetensors(content: bytes) -> bool:
    """Tell whether bytes begin as a .safetensors file: with a length, and a header in JSON."""
    length = int.from_bytes(content[:_LENGTH], "little")
    return content[_LENGTH : _LENGTH + 1] == b"{" and length <= _MOST_HEADER


def from_safetensors(content: bytes) -> Params:
    """Read arrays by name; raise ParamsError for anything else.

    The arrays are copies, in native byte order. Those of bfloat16 and of eight bits have the
    dtypes of ml_dtypes.
    """
    begin = _LENGTH + int.from_bytes(content[:_LENGTH], "little")
    if not is_safetensors(content) or begin > len(content):
        raise ParamsError(f"has no header of its size, {_DAMAGED}")
    header = _header(content[_LENGTH:begin])
    header.pop(_METADATA, None)
    places = {name: _Place(name, data) for name, data in header.items()}
    _check_places(list(places.values()), len(content) - begin)
    return {name: place.array(content, begin) for name, place in places.items()}


def _header(text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text.decode(), object_pairs_hook=_unambiguous)
    except (ValueError, RecursionError) as failure:
        raise ParamsError(f"has a header that is no JSON ({failure}), {_DAMAGED}") from None
    assert isinstance(header, dict), "it begins with a brace"
    metadata = header.get(_METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(one, str) for one in metadata.values()):
        raise ParamsError(f"has metadata that are no texts, {_DAMAGED}")
    return header


def _unambiguous(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("it has a key twice")
    return made


class _Place:
    """Where an array is, and what it is; `begin` and `end` count from the header's end."""

    def __init__(self, name: str, data: object) -> None:
        match data:
            case {
                "dtype": str() as dtype,
                "shape": [*shape],
                "data_offsets": [int() as begin, int() as end],
                **rest,
            } if not rest and all(type(one) is int and one >= 0 for one in (*shape, begin, end)):
                self.name, self.shape, self.begin, self.end = name, tuple(shape), begin, end
                self._dtype = _dtype(name, dtype)
            case _:
                raise ParamsError(f"describes {brief(name)} by {brief(data)}, {_DAMAGED}")
        size = math.prod(self.shape) * self._dtype.itemsize
        if (
            end - begin != size
            or len(self.shape) > _MOST_AXES
            or max(self.shape, default=0) > _MOST
        ):
            raise ParamsError(
                f"has {end - begin:,} bytes for {brief(name)}, whose shape takes {brief(size)}, "
                f"{_DAMAGED}"
            )

    def array(self, content: bytes, begin: int) -> NDArray[Any]:
        """Return the array, of its own memory."""
        count = math.prod(self.shape)
        flat = np.frombuffer(content, self._dtype, count, begin + self.begin) if count else ()
        native = self._dtype.newbyteorder("=")
        return np.array(flat, native).reshape(self.shape)


_MOST_AXES: Final = 32
_MOST: Final = 1 << 62


def _dtype(name: str, dtype: str) -> np.dtype[Any]:
    if dtype in _DTYPES:
        return np.dtype(_DTYPES[dtype])
    if dtype not in _SMALL_FLOATS:
        raise ParamsError(
            f"holds {brief(name)} of dtype {brief(dtype)}, where {NUMBERS}, or bfloat16, is "
            f"needed; convert it, and {AGAIN}"
        )
    try:
        import ml_dtypes
    except ImportError:
        raise ParamsError(
            f"holds {brief(name)} of dtype {dtype!r}, which ml_dtypes has: pip install ml_dtypes"
        ) from None
    found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, _SMALL_FLOATS[dtype]))
    return found


def _check_places(places: Sequence[_Place], size: int) -> None:
    """Raise ParamsError unless the arrays stand one behind the other and fill the file."""
    at = 0
    for place in sorted(places, key=lambda one: (one.begin, one.end)):
        if place.begin != at:
            what = "overlaps with another" if place.begin < at else "leaves a gap before it"
            raise ParamsError(f"holds {brief(place.name)}, which {what}, {_DAMAGED}")
        at = place.end
    if at != size:
        raise ParamsError(
            f"has {size:,} bytes of arrays, where its header tells of {at:,}, {_DAMAGED}"
        )
