"""What is given for a parameter -> what it is called with, case by case."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import ir, relax, tirx

from irviz.ir.fit import Argument, Shape
from irviz.ir.sizes import shape_of
from irviz.ir.type_label import type_label
from irviz.runtime.made_up import InputError

Array = NDArray[np.generic]


def as_argument(name: str, value: object, type_: ir.Type) -> Argument:
    """Return a given value as what its type takes: an array, a number, a shape or a tuple.

    Arrays become C-contiguous ones in native byte order, of the same numbers. Raises InputError
    for what has no such form.
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
            number = array(name, value)
            if number.ndim or number.dtype.kind not in "biuf":
                raise InputError(
                    f"{name!r} is {_brief(value)}, the function wants {type_label(type_)}: give a "
                    "number"
                )
            return value if isinstance(value, int) else number.item()
        case relax.AnyType() if isinstance(value, list | tuple | Shape):
            if isinstance(value, Shape):
                return value
            return tuple(as_argument(f"{name}[{i}]", item, type_) for i, item in enumerate(value))
        case relax.AnyType() if isinstance(value, int | float):
            return value
        case _:
            return array(name, value)


def array(name: str, value: object) -> Array:
    """Return a C-contiguous array in native byte order; raise InputError for what is none."""
    try:
        made = value.numpy() if isinstance(value, tvm.runtime.Tensor) else np.asarray(value)
    except Exception as failure:  # what is converted raises what it likes
        raise InputError(f"{name!r} is no array: {failure}") from failure
    if made.dtype == object:
        raise InputError(
            f"{name!r} is no array of numbers but of Python objects: give "
            f"numpy.asarray({name}, 'float32'), or of the dtype that is wanted"
        )
    if made.dtype.isnative and made.flags.c_contiguous:
        return made  # the very array: what is in many cases is sent once
    return np.asarray(made, made.dtype.newbyteorder("="), order="C")


def cases_of(value: Argument, type_: ir.Type) -> Sequence[Argument]:
    """Split an array of several cases into them; one that fits as it is, is one case.

    What has one axis more than its type, or more rows where the type has one, holds one a row.
    """
    dims = shape_of(type_)
    if not isinstance(value, np.ndarray) or not isinstance(type_, relax.TensorType) or dims is None:
        return [value]
    if value.ndim == len(dims) + 1:
        return [value[index, ...] for index in range(len(value))]  # an array, not a number
    is_row = len(dims) > 0 and isinstance(dims[0], tirx.IntImm) and dims[0].value == 1
    if value.ndim == len(dims) and is_row and len(value) > 1:
        return [value[i : i + 1] for i in range(len(value))]
    return [value]


def _shape(name: str, value: object, type_: relax.ShapeType) -> Shape:
    if isinstance(value, Shape):
        return value
    numbers = array(name, value)
    is_shape = numbers.ndim == 1 and (numbers.dtype.kind in "iu" or not numbers.size)
    if not is_shape or any(int(number) < 0 for number in numbers):
        raise InputError(
            f"{name!r} is {_brief(value)}, the function wants {type_label(type_)}: give the "
            "sizes, as in (3, 4)"
        )
    return Shape(tuple(map(int, numbers)))


def _brief(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
