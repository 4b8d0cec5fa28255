"""Encode values and transforms as JSON; arrays and TVM's objects are indices into a table."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import ir, tirx

from irviz.errors import IrvizError, TransformError
from irviz.ir.parameter_values import ShapeValue
from irviz.loaders.file_limits import brief
from irviz.loaders.param_files import read_npy
from irviz.model.loop_nest import BlockAddress, LoopAddress
from irviz.transforms.bind_params import BindParams
from irviz.transforms.export_python import PythonScript, UnwritableError
from irviz.transforms.kernels.swap import Swap, UpdateFunction
from irviz.transforms.passes.pass_transform import PassCall, TVMPass, write_by_name
from irviz.transforms.passes.pattern_rewrite import Rewrite
from irviz.transforms.recording import RecordedPass
from irviz.transforms.schedules.schedule_step import IndexMapText, ScheduleStep
from irviz.transforms.stage import SavedAs, Transform

_DTYPE_KINDS = "biufc"
_SMALL_FLOATS = ("bfloat16", "float8_e4m3fn", "float8_e5m2")
"""Dtypes of ml_dtypes that NumPy's format lacks; stored as unsigned integers of their size."""
_OBJECTS = (ir.IRModule, ir.BaseFunc, tvm.runtime.Tensor, tirx.IndexMap)


class EncodingError(IrvizError, ValueError):
    """A value cannot be encoded, or JSON cannot be decoded; the message quotes it."""


@dataclass
class ObjectTable:
    """The arrays and TVM objects of a session, each once, by index."""

    objects: list[object] = field(default_factory=list)
    arrays: list[NDArray[Any]] = field(default_factory=list)
    _indices: dict[object, int] = field(default_factory=dict)

    def add_object(self, value: Any) -> int:
        """Add a TVM object if it is new, and return its index."""
        return self._add(self.objects, value.__chandle__(), value)

    def add_array(self, value: NDArray[Any]) -> int:
        """Add an array unless an equal one is present, and return its index."""
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
    """Return a value in JSON's types; raise EncodingError if it is not a plain value."""
    if value is None or isinstance(value, str) or type(value) in (bool, int, float):
        return value
    match value:
        case ShapeValue():
            return {"shape": list(map(int, value.dims))}
        case LoopAddress():
            return {"loop": [value.block, value.depth]}
        case BlockAddress():
            return {"block": value.name}
        case IndexMapText():
            return {"dict": [["index map", value.text]]}  # which the step reads back
        case list() | tuple():
            kind = "list" if isinstance(value, list) else "tuple"
            return {kind: [encode(one, table) for one in value]}
        case Mapping():
            wrong = next((key for key in value if not isinstance(key, str)), None)
            if wrong is not None:
                raise EncodingError(f"the key {brief(wrong)} is not a string")
            return {"dict": [[str(key), encode(one, table)] for key, one in value.items()]}
    if isinstance(value, _OBJECTS):
        return {"object": table.add_object(value)}
    return _encode_array(value, table)


def decode(data: object, table: ObjectTable) -> object:  # noqa: C901 - one case a form
    """Return the value that `encode` encoded; raise EncodingError for other data."""
    if isinstance(data, bool | int | float | str | None):
        return data
    content: Any
    form, content = next(iter(data.items())) if isinstance(data, dict) and data else ("", data)
    if form not in _FORMS or data != {form: content}:
        raise EncodingError(f"{brief(data)} is not an encoded value")
    match form, content:
        case "object", index:
            return table.object_at(index)
        case "array", index:
            return table.array_at(index)
        case "list", list():
            return [decode(one, table) for one in content]
        case "tuple", list():
            return tuple(decode(one, table) for one in content)
        case "dict", list():
            return _decode_dict(content, table)
        case "shape", [*sizes] if all(type(one) is int and one >= 0 for one in sizes):
            return ShapeValue(tuple(sizes))
        case "loop", [str() as block, int() as depth] if type(depth) is int:
            return LoopAddress(block, depth)
        case "block", str():
            return BlockAddress(content)
        case "small floats", [str() as name, index] if name in _SMALL_FLOATS:
            import ml_dtypes

            dtype, array = np.dtype(getattr(ml_dtypes, name)), table.array_at(index)
            if array.dtype == np.dtype(f"u{dtype.itemsize}"):
                return array.view(dtype)
    raise EncodingError(f"{brief(content)} is not {_FORMS[form]}")


def array_to_npy(array: NDArray[Any]) -> bytes:
    """Return an array in NumPy's format."""
    content = BytesIO()
    np.lib.format.write_array(content, array, allow_pickle=False)
    return content.getvalue()


def array_from_npy(content: bytes) -> NDArray[Any]:
    """Return the array in data in NumPy's format; raise EncodingError unless it is numeric."""
    try:
        file = BytesIO(content)
        array = read_npy(file, len(content))
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


def _decode_dict(content: list[object], table: ObjectTable) -> dict[str, object]:
    found: dict[str, object] = {}
    for item in content:
        match item:
            case [str() as key, data] if key not in found:
                found[key] = decode(data, table)
            case _:
                raise EncodingError(f"{brief(item)} is not a new key with a value")
    return found


_FORMS: Mapping[object, str] = {
    "list": "a list of values",
    "tuple": "a list of values",
    "dict": "a list of values",
    "shape": "a shape",
    "loop": "a loop of a block",
    "block": "the name of a block",
    "object": "an object",
    "array": "an array",
    "small floats": "an array of small floats",
}
"""The forms of encoded values, and what each contains."""


Description = Mapping[str, object]

_PLAIN = (
    *(bool, int, float, str, tvm.runtime.Tensor, tirx.IndexMap),
    *(LoopAddress, BlockAddress, IndexMapText),
)
_IR = (ir.IRModule, tirx.PrimFunc)


@dataclass(frozen=True)
class LabelOnly(Transform):
    """A transform of which a file has only the label; it can be neither applied nor written.

    `is_pass` says that the label is the name of a pass.
    """

    saved_as = SavedAs("label", {"label": str, "is_pass": bool})

    label: str = ""
    is_pass: bool = False

    def __call__(self, mod: ir.IRModule) -> ir.IRModule:  # noqa: ARG002
        """Raise TransformError."""
        raise TransformError(
            f"{self.label!r} was saved by its label alone, and cannot be applied again: apply what "
            "it was in its place"
        )

    def write(self, script: PythonScript, before: ir.IRModule, after: ir.IRModule) -> None:
        """Write the catalog's pass of this name, if it makes the same module."""
        known = f"{self.label} was saved by its label alone"
        if not self.is_pass:
            raise UnwritableError(known)
        write_by_name(self.label, script, before, after, known)


_CLASSES = (
    *(BindParams, Swap, UpdateFunction, PassCall, ScheduleStep, RecordedPass, Rewrite),
    LabelOnly,
)
_KINDS: Mapping[str, type[Transform]] = {one.saved_as.kind: one for one in _CLASSES}


def describe(transform: Transform) -> Description:
    """Return the values that `restore` needs, or else only the transform's label."""
    kind, values = transform.saved_as.kind, transform.saved_values() or {}
    if kind and values and all(isinstance(v, _IR) or _is_plain(v) for v in values.values()):
        return {"kind": kind, **values}
    return describe(LabelOnly(transform.label, isinstance(transform, TVMPass)))


def restore(description: Description) -> Transform:
    """Return the described transform without applying it; raise EncodingError."""
    kind = description.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise EncodingError(f"{brief(kind)} is not a kind of transform")
    made = _KINDS[kind]
    fields = made.saved_as.fields
    values = {name: description.get(name) for name in fields}
    for name, expected in fields.items():
        if not isinstance(values[name], expected):
            words = getattr(expected, "__name__", expected)
            raise EncodingError(
                f"its {name} is {brief(values[name])}, where a {words} was expected"
            )
    try:
        return made.restored(values)
    except TransformError as refusal:
        raise EncodingError(str(refusal)) from None


def _is_plain(value: object) -> bool:
    """Tell whether a file can hold a value."""
    match value:
        case Mapping():
            return all(isinstance(key, str) and _is_plain(one) for key, one in value.items())
        case list() | tuple():
            return all(map(_is_plain, value))
    return value is None or isinstance(value, _PLAIN)
