"""Encode plain values as JSON; arrays and TVM's objects become indices into a table."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import ir, tirx

from irviz.errors import IrvizError
from irviz.ir.shapes.type_check import ShapeValue
from irviz.loaders.reading import brief
from irviz.model.loops import BlockAddress, LoopAddress

_DTYPE_KINDS = "biufc"
_SMALL_FLOATS = ("bfloat16", "float8_e4m3fn", "float8_e5m2")
"""Dtypes of ml_dtypes that NumPy's format lacks; stored as unsigned integers of their size."""
_OBJECTS = (ir.IRModule, ir.BaseFunc, tvm.runtime.Tensor, tirx.IndexMap)


class EncodingError(IrvizError, ValueError):
    """A value that cannot be encoded, or JSON that cannot be decoded; the message has both."""


@dataclass
class ObjectTable:
    """The arrays and TVM objects of a session, each once, by index."""

    objects: list[object] = field(default_factory=list)
    arrays: list[NDArray[Any]] = field(default_factory=list)
    _indices: dict[object, int] = field(default_factory=dict)

    def add_object(self, value: object) -> int:
        """Add an object of TVM if it is new, and return its index."""
        key = (type(value), hash(value))
        if isinstance(value, tvm.runtime.Object):
            key = (tvm.runtime.Object, value.__chandle__())
        return self._add(self.objects, key, value)

    def add_array(self, value: NDArray[Any]) -> int:
        """Add an array if no equal one is there, and return its index."""
        digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).digest()
        return self._add(self.arrays, (value.dtype.str, value.shape, digest), value)

    def _add(self, values: list[Any], key: object, value: object) -> int:
        if key not in self._indices:
            self._indices[key] = len(values)
            values.append(value)
        return self._indices[key]

    def object_at(self, index: object) -> object:
        """Return the object at an index; raise EncodingError if there is none."""
        return _at(self.objects, index, "object")

    def array_at(self, index: object) -> NDArray[Any]:
        """Return the array at an index; raise EncodingError if there is none."""
        found: NDArray[Any] = _at(self.arrays, index, "array")
        return found


def _at(values: list[Any], index: object, what: str) -> Any:
    if type(index) is not int or not 0 <= index < len(values):
        raise EncodingError(f"there is no {what} {brief(index)}, only {len(values)} of them")
    return values[index]


def encode(value: object, table: ObjectTable) -> object:
    """Return a value as JSON has it; raise EncodingError if it is not a plain value."""
    match value:
        case None | bool() | str():
            return value
        case int() | float() if type(value) in (int, float):
            return value
        case ShapeValue():
            return {"shape": list(map(int, value.dims))}
        case LoopAddress():
            return {"loop": [value.block, value.depth]}
        case BlockAddress():
            return {"block": value.name}
        case list() | tuple():
            kind = "list" if isinstance(value, list) else "tuple"
            return {kind: [encode(one, table) for one in value]}
        case Mapping():
            return {"dict": [[_key(key), encode(one, table)] for key, one in value.items()]}
    if isinstance(value, _OBJECTS):
        return {"object": table.add_object(value)}
    return _encode_array(value, table)


def decode(data: object, table: ObjectTable) -> object:
    """Return the value that `encode` encoded; raise EncodingError for other data."""
    if isinstance(data, bool | int | float | str | None):
        return data
    if isinstance(data, dict) and len(data) == 1:
        ((form, content),) = data.items()
        if form in _DECODERS:
            return _DECODERS[form](content, table)
    raise EncodingError(f"{brief(data)} is not an encoded value")


def array_to_npy(array: NDArray[Any]) -> bytes:
    """Return an array in NumPy's format."""
    content = BytesIO()
    np.lib.format.write_array(content, array, allow_pickle=False)
    return content.getvalue()


def array_from_npy(content: bytes) -> NDArray[Any]:
    """Return the array in NumPy's format; raise EncodingError unless it is one of numbers."""
    try:
        file = BytesIO(content)
        array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    except Exception as failure:  # NumPy raises errors of any class for damaged headers
        raise EncodingError(f"an array cannot be read ({failure})") from None
    if array.dtype.kind not in _DTYPE_KINDS or file.read(1):
        raise EncodingError(f"an array of {array.dtype} is not one of numbers, or is too long")
    return array


def _encode_array(value: object, table: ObjectTable) -> object:
    try:
        array = np.asarray(value)
    except Exception as failure:  # the value's own conversion raises anything
        raise EncodingError(f"{brief(value)} is not an array ({failure})") from None
    if array.dtype.name in _SMALL_FLOATS:
        index = table.add_array(array.view(f"u{array.dtype.itemsize}"))
        return {"small floats": [array.dtype.name, index]}
    if array.dtype.kind not in _DTYPE_KINDS:
        raise EncodingError(f"{brief(value)} is neither a plain value nor an array of numbers")
    return {"array": table.add_array(array)}


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise EncodingError(f"the key {brief(key)} is not a string")
    return str(key)


def _decode_small_floats(content: object, table: ObjectTable) -> NDArray[Any]:
    match content:
        case [str() as name, index] if name in _SMALL_FLOATS:
            import ml_dtypes

            dtype = np.dtype(getattr(ml_dtypes, name))
            array = table.array_at(index)
            if array.dtype == np.dtype(f"u{dtype.itemsize}"):
                return array.view(dtype)
    raise EncodingError(f"{brief(content)} is not an array of small floats")


def _items(content: object) -> list[object]:
    if not isinstance(content, list):
        raise EncodingError(f"{brief(content)} is not a list of values")
    return content


def _decode_dict(content: object, table: ObjectTable) -> dict[str, object]:
    found: dict[str, object] = {}
    for item in _items(content):
        match item:
            case [str() as key, data] if key not in found:
                found[key] = decode(data, table)
            case _:
                raise EncodingError(f"{brief(item)} is not a new key with a value")
    return found


def _decode_shape(content: object, _: ObjectTable) -> ShapeValue:
    sizes = tuple(one for one in _items(content) if type(one) is int and one >= 0)
    if len(sizes) != len(_items(content)):
        raise EncodingError(f"{brief(content)} is not a shape")
    return ShapeValue(sizes)


def _decode_loop(content: object, _: ObjectTable) -> LoopAddress:
    match content:
        case [str() as block, int() as depth] if type(depth) is int:
            return LoopAddress(block, depth)
    raise EncodingError(f"{brief(content)} is not a loop of a block")


def _decode_block(content: object, _: ObjectTable) -> BlockAddress:
    if not isinstance(content, str):
        raise EncodingError(f"{brief(content)} is not the name of a block")
    return BlockAddress(content)


_DECODERS: Mapping[object, Callable[[object, ObjectTable], object]] = {
    "list": lambda content, table: [decode(one, table) for one in _items(content)],
    "tuple": lambda content, table: tuple(decode(one, table) for one in _items(content)),
    "dict": _decode_dict,
    "shape": _decode_shape,
    "loop": _decode_loop,
    "block": _decode_block,
    "object": lambda content, table: table.object_at(content),
    "array": lambda content, table: table.array_at(content),
    "small floats": _decode_small_floats,
}
