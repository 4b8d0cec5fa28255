"""Convert the value given for a parameter to arguments, and split it into cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import ir, relax, tirx

from irviz.errors import InputError
from irviz.ir.shapes.check_arguments import Argument, ShapeValue
from irviz.ir.shapes.symbolic_shapes import type_dims
from irviz.ir.text.type_labels import type_label

Array = NDArray[np.generic]
Rows: TypeAlias = "Sequence[Argument] | Array"
"""Values, possibly the rows of an array, which is sent to a worker faster than separate rows."""


def as_argument(name: str, value: object, type_: ir.Type) -> Argument:
    """Convert a value to the form that its type takes: an array, a number, a shape or a tuple.

    Arrays become C-contiguous and native-endian. Raises InputError for a value that cannot be
    converted.
    """
    match type_:
        case ir.TupleType():
            if not isinstance(value, list | tuple | ir.Array) or len(value) != len(type_.fields):
                what = f"{len(value)} values" if isinstance(value, list | tuple) else _brief(value)
                raise InputError(
                    f"{name!r} is {what}, the function wants {type_label(type_)}: give a tuple "
                    f"of {len(type_.fields)}"
                )
            return tuple(
                as_argument(f"{name}[{index}]", item, field)
                for index, (item, field) in enumerate(zip(value, type_.fields, strict=True))
            )
        case relax.ShapeType():
            return _shape(name, value, type_)
        case ir.PrimType():
            number = as_array(name, value)
            if number.ndim or number.dtype.kind not in "biuf":
                raise InputError(
                    f"{name!r} is {_brief(value)}, the function wants {type_label(type_)}: give a "
                    "number"
                )
            return value if isinstance(value, int) else number.item()
        case relax.AnyType() if isinstance(value, list | tuple | ShapeValue):
            if isinstance(value, ShapeValue):
                return value
            return tuple(as_argument(f"{name}[{i}]", item, type_) for i, item in enumerate(value))
        case relax.AnyType() if isinstance(value, int | float):
            return value
        case _:
            return as_array(name, value)


def as_array(name: str, value: object) -> Array:
    """Return a C-contiguous native-endian array; raise InputError if it is not an array."""
    try:
        converted = value.numpy() if isinstance(value, tvm.runtime.Tensor) else np.asarray(value)
    except Exception as failure:  # the conversion may raise anything
        raise InputError(f"{name!r} is not an array: {failure}") from failure
    if converted.dtype == object:
        raise InputError(
            f"{name!r} is not an array of numbers but of Python objects: give "
            f"numpy.asarray({name}, 'float32'), or with the dtype that you want"
        )
    if converted.dtype.isnative and converted.flags.c_contiguous:
        return converted  # the same object, so that it is sent once for many cases
    return np.asarray(converted, converted.dtype.newbyteorder("="), order="C")


def row(values: Rows, index: int) -> Argument:
    """Return one of the values."""
    # an array of no axes, not a scalar
    return values[index, ...] if isinstance(values, np.ndarray) else values[index]


def split_cases(value: Argument, type_: ir.Type) -> Rows:
    """Split an array with several cases; an array that fits its type is one case.

    With one more axis than its type, or with more rows where the type has one, each row is a case.
    """
    dims = type_dims(type_)
    if not isinstance(value, np.ndarray) or not isinstance(type_, relax.TensorType) or dims is None:
        return [value]
    if value.ndim == len(dims) + 1:
        return value
    is_row = len(dims) > 0 and isinstance(dims[0], tirx.IntImm) and dims[0].value == 1
    if value.ndim == len(dims) and is_row and len(value) > 1:
        return value[:, np.newaxis]
    return [value]


def _shape(name: str, value: object, type_: relax.ShapeType) -> ShapeValue:
    if isinstance(value, ShapeValue):
        return value
    numbers = as_array(name, value)
    is_shape = numbers.ndim == 1 and (numbers.dtype.kind in "iu" or not numbers.size)
    if not is_shape or any(int(number) < 0 for number in numbers):
        raise InputError(
            f"{name!r} is {_brief(value)}, the function wants {type_label(type_)}: give the "
            "sizes, as in (3, 4)"
        )
    return ShapeValue(tuple(map(int, numbers)))


def _brief(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
