"""Plain values, arrays and TVM's objects <-> JSON, the latter two by their place on a shelf."""

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

from irviz.ir.fit import Shape
from irviz.loaders.numbers import brief
from irviz.model.loops import BlockNamed, LoopOf

_KINDS = "biufc"
_SMALL_FLOATS = ("bfloat16", "float8_e4m3fn", "float8_e5m2")
"""Those of ml_dtypes, which NumPy's format does not know: kept as whole numbers of their size."""
_OBJECTS = (ir.IRModule, ir.BaseFunc, tvm.runtime.Tensor, tirx.IndexMap)


class ValueFormError(ValueError):
    """A value that has no such form, or a form that is no value; the message says which."""


@dataclass
class Shelf:
    """Takes what JSON cannot say, the same thing once, and gives it back by its number."""

    objects: list[object] = field(default_factory=list)
    arrays: list[NDArray[Any]] = field(default_factory=list)
    _places: dict[object, int] = field(default_factory=dict)

    def put_object(self, value: object) -> int:
        """Return the number of an object of TVM's."""
        key = (type(value), hash(value))
        if isinstance(value, tvm.runtime.Object):
            key = (tvm.runtime.Object, value.__chandle__())
        if key not in self._places:
            self._places[key] = len(self.objects)
            self.objects.append(value)
        return self._places[key]

    def put_array(self, value: NDArray[Any]) -> int:
        """Return the number of an array, of the first that is equal to it."""
        digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).digest()
        key = (value.dtype.str, value.shape, digest)
        if key not in self._places:
            self._places[key] = len(self.arrays)
            self.arrays.append(value)
        return self._places[key]

    def object_at(self, number: object) -> object:
        """Return the object of this number; raise ValueFormError when there is none."""
        return _at(self.objects, number, "object")

    def array_at(self, number: object) -> NDArray[Any]:
        """Return the array of this number; raise ValueFormError when there is none."""
        found: NDArray[Any] = _at(self.arrays, number, "array")
        return found


def to_data(value: object, shelf: Shelf) -> object:
    """Return a value as JSON has it; raise ValueFormError for what is no plain value."""
    match value:
        case None | bool() | str():
            return value
        case int() | float() if type(value) in (int, float):
            return value
        case Shape():
            return {"shape": list(map(int, value.dims))}
        case LoopOf():
            return {"loop": [value.block, value.depth]}
        case BlockNamed():
            return {"block": value.name}
        case list() | tuple():
            kind = "list" if isinstance(value, list) else "tuple"
            return {kind: [to_data(one, shelf) for one in value]}
        case Mapping():
            return {"dict": [[_key(key), to_data(one, shelf)] for key, one in value.items()]}
    if isinstance(value, _OBJECTS):
        return {"object": shelf.put_object(value)}
    return _array_data(value, shelf)


def from_data(data: object, shelf: Shelf) -> object:
    """Return the value of some JSON; raise ValueFormError for what `to_data` does not write."""
    if isinstance(data, bool | int | float | str | None):
        return data
    if isinstance(data, dict) and len(data) == 1:
        ((form, content),) = data.items()
        if form in _FORMS:
            return _FORMS[form](content, shelf)
    raise ValueFormError(f"{brief(data)} is the form of no value")


def npy(array: NDArray[Any]) -> bytes:
    """Return an array in NumPy's format."""
    content = BytesIO()
    np.lib.format.write_array(content, array, allow_pickle=False)
    return content.getvalue()


def from_npy(content: bytes) -> NDArray[Any]:
    """Return the array in NumPy's format; raise ValueFormError for what is none of numbers."""
    try:
        file = BytesIO(content)
        array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    except Exception as failure:  # what a damaged header raises, NumPy leaves open
        raise ValueFormError(f"an array cannot be read ({failure})") from None
    if array.dtype.kind not in _KINDS or file.read(1):
        raise ValueFormError(f"an array of {array.dtype} is none of numbers, or too long")
    return array


def _array_data(value: object, shelf: Shelf) -> object:
    try:
        array = np.asarray(value)
    except Exception as failure:  # what is converted raises what it likes
        raise ValueFormError(f"{brief(value)} is no array ({failure})") from None
    if array.dtype.name in _SMALL_FLOATS:
        number = shelf.put_array(array.view(f"u{array.dtype.itemsize}"))
        return {"small floats": [array.dtype.name, number]}
    if array.dtype.kind not in _KINDS:
        raise ValueFormError(f"{brief(value)} is neither a plain value nor an array of numbers")
    return {"array": shelf.put_array(array)}


def _small_floats(content: object, shelf: Shelf) -> NDArray[Any]:
    match content:
        case [str() as name, number] if name in _SMALL_FLOATS:
            import ml_dtypes

            dtype = np.dtype(getattr(ml_dtypes, name))
            array = shelf.array_at(number)
            if array.dtype == np.dtype(f"u{dtype.itemsize}"):
                return array.view(dtype)
    raise ValueFormError(f"{brief(content)} is no array of small floats")


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise ValueFormError(f"the key {brief(key)} is no text")
    return str(key)


def _items(content: object) -> list[object]:
    if not isinstance(content, list):
        raise ValueFormError(f"{brief(content)} is no list of values")
    return content


def _dict(content: object, shelf: Shelf) -> dict[str, object]:
    made: dict[str, object] = {}
    for item in _items(content):
        match item:
            case [str() as key, data] if key not in made:
                made[key] = from_data(data, shelf)
            case _:
                raise ValueFormError(f"{brief(item)} is no new key with a value")
    return made


def _shape(content: object, _: Shelf) -> Shape:
    sizes = tuple(one for one in _items(content) if type(one) is int and one >= 0)
    if len(sizes) != len(_items(content)):
        raise ValueFormError(f"{brief(content)} is no shape")
    return Shape(sizes)


def _loop(content: object, _: Shelf) -> LoopOf:
    match content:
        case [str() as block, int() as depth] if type(depth) is int:
            return LoopOf(block, depth)
    raise ValueFormError(f"{brief(content)} is no loop of a block")


def _block(content: object, _: Shelf) -> BlockNamed:
    if not isinstance(content, str):
        raise ValueFormError(f"{brief(content)} is no name of a block")
    return BlockNamed(content)


_FORMS: Mapping[object, Callable[[object, Shelf], object]] = {
    "list": lambda content, shelf: [from_data(one, shelf) for one in _items(content)],
    "tuple": lambda content, shelf: tuple(from_data(one, shelf) for one in _items(content)),
    "dict": _dict,
    "shape": _shape,
    "loop": _loop,
    "block": _block,
    "object": lambda content, shelf: shelf.object_at(content),
    "array": lambda content, shelf: shelf.array_at(content),
    "small floats": _small_floats,
}


def _at(shelf: list[Any], number: object, what: str) -> Any:
    if type(number) is not int or not 0 <= number < len(shelf):
        raise ValueFormError(f"there is no {what} {brief(number)}, only {len(shelf)} of them")
    return shelf[number]
