"""Read arrays from a .safetensors file: a header in JSON, then the bytes of all arrays.

The safetensors library checks that the arrays lie one after the other, overlap nowhere and fill the
file. This module also rejects unknown fields and duplicate keys, for which readers choose different
values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from safetensors import deserialize

from irviz.ir.module_json import unique_keys
from irviz.loaders.arrays.supported_dtypes import NUMBERS
from irviz.loaders.file_errors import FileError, brief, file_errors

_LENGTH: Final = 8
_LONGEST_HEADER: Final = 100_000_000
"""The longest header that the format allows, in bytes."""
_MAX_HEADER: Final = 1 << 22
"""The longest header that is read, for some 30,000 arrays; reading takes thirty times its size."""
_METADATA: Final = "__metadata__"
_FIELDS: Final = {"dtype", "shape", "data_offsets"}
_DTYPES: Final = {
    "BOOL": "?",
    **{f"{kind}{8 * size}": f"<{kind.lower()}{size}" for kind in "IU" for size in (1, 2, 4, 8)},
    **{f"F{8 * size}": f"<f{size}" for size in (2, 4, 8)},
}
_ML_DTYPES: Final = {"BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2"}
_ADVICE: Final = "save the arrays with safetensors.numpy.save_file(params, path) and load that file"


def is_safetensors(content: bytes) -> bool:
    """Tell whether data starts like a .safetensors file: with a length, then JSON."""
    length = int.from_bytes(content[:_LENGTH], "little")
    return content[_LENGTH : _LENGTH + 1] == b"{" and length <= _LONGEST_HEADER


def from_safetensors(content: bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays by name, in native byte order; raise FileError for any other file.

    Arrays of bfloat16 and of 8-bit floats have the dtypes of ml_dtypes.
    """
    length = int.from_bytes(content[:_LENGTH], "little")
    if _MAX_HEADER < length <= _LONGEST_HEADER:
        raise FileError(
            f"has a header of {length:,} bytes, and at most {_MAX_HEADER:,} are read: save fewer "
            "arrays"
        )
    with file_errors("is damaged, cut short or not a .safetensors file", _ADVICE):
        entries = deserialize(content)  # type: ignore[no-untyped-call]
        _check_header(content)
        return {name: _array(name, entry) for name, entry in entries}


def _check_header(content: bytes) -> None:
    length = int.from_bytes(content[:_LENGTH], "little")
    header = json.loads(content[_LENGTH : _LENGTH + length], object_pairs_hook=unique_keys)
    header.pop(_METADATA, None)
    for name, entry in header.items():
        if entry.keys() != _FIELDS:
            raise ValueError(f"unknown field in {brief(name)}: {brief(entry)}")


def _array(name: str, entry: Mapping[str, Any]) -> NDArray[Any]:
    dtype = _dtype(name, entry["dtype"])
    flat: NDArray[Any] = np.frombuffer(entry["data"], dtype)
    return flat.astype(dtype.newbyteorder("="), copy=False).reshape(entry["shape"])


def _dtype(name: str, dtype: str) -> np.dtype[Any]:
    if dtype in _DTYPES:
        return np.dtype(_DTYPES[dtype])
    if dtype not in _ML_DTYPES:
        raise FileError(
            f"holds {brief(name)} of dtype {brief(dtype)}, where {NUMBERS}, or bfloat16, is "
            f"needed; convert it, and {_ADVICE}"
        )
    try:
        import ml_dtypes
    except ImportError:
        raise FileError(
            f"holds {brief(name)} of dtype {dtype!r}, which ml_dtypes has: pip install ml_dtypes"
        ) from None
    found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, _ML_DTYPES[dtype]))
    return found
