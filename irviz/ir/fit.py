"""Whether a value fits a parameter's type, symbolic dimensions included."""

from __future__ import annotations

import math
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from tvm import ir, relax, tirx

from irviz.ir.sizes import evaluated, is_whole, shape_of
from irviz.ir.type_label import dim_label, shape_label, type_label

Dims = MutableMapping[str, int]
"""The sizes that symbolic dimensions have taken so far, by name."""


@dataclass(frozen=True)
class Shape:
    """The value of a parameter that is a shape, as `R.Shape(["n", 4])` asks for."""

    dims: tuple[int, ...]


Argument: TypeAlias = "NDArray[np.generic] | bool | int | float | Shape | tuple[Argument, ...]"
"""What a function is called with: an array, a number, a shape, or a tuple of these."""


class MisfitError(ValueError):
    """A value that cannot be a parameter's; the message says what would be right."""


def check_argument(name: str, value: Argument, type_: ir.Type, dims: Dims) -> None:
    """Raise MisfitError unless a value is one of this type; see `check_fit` for `dims`.

    A whole number is kept in `dims` as well, by its name.
    """
    match type_:
        case relax.TensorType():
            if not isinstance(value, np.ndarray):
                raise _wrong(name, value, type_, "an array")
            check_fit(name, value, type_, dims)
        case relax.ShapeType():
            if not isinstance(value, Shape):
                raise _wrong(name, value, type_, "the sizes, as in (3, 4)")
            _check_shape(name, value, type_, dims)
        case ir.TupleType():
            if not isinstance(value, tuple) or len(value) != len(type_.fields):
                raise _wrong(name, value, type_, f"a tuple of {len(type_.fields)}")
            for index, (item, field) in enumerate(zip(value, type_.fields, strict=True)):
                check_argument(f"{name}[{index}]", item, field, dims)
        case ir.PrimType():
            _check_number(name, value, type_, dims)
        case relax.AnyType():
            return
        case _:
            raise MisfitError(
                f"{name!r} is of type {type_label(type_)}, and no value can be given for it: "
                "give arrays, numbers, shapes or tuples of these"
            )


def check_fit(name: str, array: NDArray[np.generic], type_: ir.Type, dims: Dims) -> None:
    """Raise MisfitError unless the array has the dtype and shape of this tensor type.

    A symbolic dimension takes the size of the first array that has it, which is kept in `dims`;
    later ones must agree, and so must expressions such as n * 2 of those that are known.
    """
    if not isinstance(type_, relax.TensorType):
        raise MisfitError(f"{name!r} is of type {type_}, and only a tensor can be given for it")
    dtype = None if type_.dtype is None else str(type_.dtype)
    if dtype is not None and str(array.dtype) != dtype:
        raise MisfitError(
            f"{name!r} has dtype {array.dtype}, the function wants {dtype}: "
            f"give {name}.astype({dtype!r})"
        )
    wanted = shape_of(type_)
    if wanted is not None:
        _check_sizes(name, array.shape, wanted, dims)
    elif type_.ndim >= 0 and array.ndim != type_.ndim:
        raise MisfitError(
            f"{name!r} has shape {array.shape}, the function wants {type_.ndim} dimensions"
        )


def _check_shape(name: str, value: Shape, type_: relax.ShapeType, dims: Dims) -> None:
    wanted = shape_of(type_)
    if wanted is not None:
        _check_sizes(name, value.dims, wanted, dims)
    elif type_.ndim >= 0 and len(value.dims) != type_.ndim:
        raise MisfitError(
            f"{name!r} has {len(value.dims)} dimensions, the function wants {type_.ndim}"
        )


def _check_sizes(
    name: str, shape: tuple[int, ...], wanted: tuple[ir.Expr, ...], dims: Dims
) -> None:
    misfit = f"{name!r} has shape {shape}, the function wants {shape_label(wanted)}"
    if len(shape) != len(wanted):
        raise MisfitError(misfit)
    pairs = list(zip(shape, wanted, strict=True))
    for size, dim in pairs:
        if isinstance(dim, tirx.IntImm):
            if dim.value != size:
                raise MisfitError(misfit)
        elif isinstance(dim, ir.Var):
            dims.setdefault(dim_label(dim), size)
    for size, dim in pairs:
        value = evaluated(dim, dims)
        if value is not None and value != size:
            taken = ", ".join(f"{symbol} = {dims[symbol]}" for symbol in sorted(dims))
            raise MisfitError(f"{misfit}, and the others make {taken}")


def _check_number(name: str, value: Argument, type_: ir.PrimType, dims: Dims) -> None:
    dtype = str(type_.dtype)
    if is_whole(type_):
        bits = int(dtype.removeprefix("u").removeprefix("int") or 64)
        low, high = (0, 1 << bits) if dtype[0] == "u" else (-1 << bits - 1, 1 << bits - 1)
        if not isinstance(value, int) or isinstance(value, bool):
            raise _wrong(name, value, type_, "a whole number")
        if not low <= value < high:
            raise _wrong(name, value, type_, f"a number from {low} to {high - 1}")
        if dims.setdefault(name, value) != value:
            raise _wrong(name, value, type_, f"{dims[name]}, as the others make it")
    elif dtype == "bool":
        if not isinstance(value, bool):
            raise _wrong(name, value, type_, "True or False")
    elif not isinstance(value, int | float) or isinstance(value, bool):
        raise _wrong(name, value, type_, "a number")


def _wrong(name: str, value: Argument, type_: ir.Type, right: str) -> MisfitError:
    what = repr(value)
    if isinstance(value, np.ndarray):
        what = f"an array of shape {value.shape}"
    elif isinstance(value, tuple):
        what = f"a tuple of {len(value)}"
    elif isinstance(value, float) and not math.isfinite(value):
        what = str(value)
    return MisfitError(f"{name!r} is {what}, the function wants {type_label(type_)}: give {right}")
