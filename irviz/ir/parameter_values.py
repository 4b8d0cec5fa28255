"""Values of parameters: arrays as tensors, their types and bits, and recipes of caches."""

from __future__ import annotations

import math
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import ir, relax, tirx

from irviz.errors import InputError
from irviz.ir.symbolic_shapes import evaluate_dim, is_integer, type_dims
from irviz.ir.type_and_expression_labels import dim_label, shape_label, type_label
from irviz.units import beginning


def tensor_array(tensor: tvm.runtime.Tensor) -> NDArray[np.generic]:
    """Return a tensor as an array in the tensor's memory; a copy where NumPy cannot see that.

    Raises what TVM raises for a dtype that NumPy lacks.
    """
    try:
        return np.from_dlpack(tensor)
    except Exception:  # a dtype that only `numpy` can give, or memory of another device
        return np.asarray(tensor.numpy())


def shared_tensor(array: NDArray[np.generic]) -> tvm.runtime.Tensor:
    """Return an array as a tensor in the array's memory; a copy of a dtype that NumPy lacks."""
    try:
        return tvm.runtime.from_dlpack(array)
    except BufferError:  # such as bfloat16
        return tvm.runtime.tensor(array)


# --- Compare tensors and arrays ------------------------------------------------------------------


Array = NDArray[np.generic]

_FEW = 1009


def is_equal_tensor(one: tvm.runtime.Tensor | None, other: tvm.runtime.Tensor | None) -> bool:
    """Return whether two tensors hold the same bits; False where that cannot be read."""
    if one is None or other is None:
        return one is other
    if one.__chandle__() == other.__chandle__():
        return True
    if (one.dtype, tuple(one.shape)) != (other.dtype, tuple(other.shape)):
        return False
    try:
        mine, theirs = (np.ascontiguousarray(tensor_array(each)) for each in (one, other))
    except Exception:  # a dtype that NumPy does not know, or a device that is not this one
        return False
    return is_equal_array(mine, theirs)


def is_equal_array(one: Array, other: Array) -> bool:
    """Return whether two arrays hold the same bits; a few numbers tell most that do not."""
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return False
    mine, theirs = (np.ascontiguousarray(each).reshape(-1).view(np.uint8) for each in (one, other))
    few = slice(None, None, max(1, mine.size // _FEW))
    return bool(np.array_equal(mine[few], theirs[few])) and bool(np.array_equal(mine, theirs))


# --- Whether a value has the type of a parameter, symbolic dimensions included --------------------


Dims = MutableMapping[str, int]
"""The values of symbolic dimensions so far, by name."""


@dataclass(frozen=True)
class ShapeValue:
    """The value of a parameter that is a shape, as `R.Shape(["n", 4])` asks for."""

    dims: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class CacheCall:
    """A call that fills a cache: `tokens` are the number of sequences and the tokens of each."""

    function: str
    arguments: tuple[Argument, ...]
    tokens: tuple[int, int]


@dataclass(frozen=True, eq=False)
class Cache:
    """A cache as it is made for one call: the object itself exists only where the function runs.

    Attributes:
        maker: The function that makes it, of `sizes`.
        label: What it is, in words.
        calls: The calls that fill it before.
        tokens: What the call itself adds, as in `CacheCall`.
    """

    maker: str
    sizes: tuple[Argument, ...]
    label: str
    calls: tuple[CacheCall, ...]
    tokens: tuple[int, int]


@dataclass(frozen=True, eq=False)
class CacheArgument:
    """A cache as an argument, or its part of this index; None for the cache that is filled."""

    part: int | None = None
    cache: Cache | None = None


Argument: TypeAlias = (
    "NDArray[np.generic] | bool | int | float | ShapeValue | CacheArgument | tuple[Argument, ...]"
)
"""The value of a parameter: an array, a number, a shape, a cache, or a tuple of these."""


class TypeMismatchError(InputError):
    """A value does not have its parameter's type; the message says what would be right."""


def check_argument(name: str, value: Argument, type_: ir.Type, dims: Dims) -> None:
    """Raise TypeMismatchError unless a value has this type; see `check_tensor` for `dims`.

    An integer is added to `dims` too, under its parameter's name.
    """
    match type_:
        case relax.TensorType():
            if not isinstance(value, np.ndarray):
                raise _mismatch(name, value, type_, "an array")
            check_tensor(name, value, type_, dims)
        case relax.ShapeType():
            if not isinstance(value, ShapeValue):
                raise _mismatch(name, value, type_, "the sizes, as in (3, 4)")
            _check_shape(name, value.dims, type_, dims, f"has {len(value.dims)} dimensions")
        case ir.TupleType():
            if not isinstance(value, tuple) or len(value) != len(type_.fields):
                raise _mismatch(name, value, type_, f"a tuple of {len(type_.fields)}")
            for index, (item, field) in enumerate(zip(value, type_.fields, strict=True)):
                check_argument(f"{name}[{index}]", item, field, dims)
        case ir.PrimType():
            _check_number(name, value, type_, dims)
        case relax.AnyType():
            return
        case _:
            raise TypeMismatchError(
                f"{name!r} is of type {type_label(type_)}, and no value can be given for it: "
                "give arrays, numbers, shapes or tuples of these"
            )


def check_tensor(name: str, array: NDArray[np.generic], type_: ir.Type, dims: Dims) -> None:
    """Raise TypeMismatchError unless the array has the dtype and shape of this tensor type.

    The first array with a symbolic dimension determines its value, which is added to `dims`. Later
    arrays must agree with it, and with expressions of known dimensions such as n * 2.
    """
    if not isinstance(type_, relax.TensorType):
        raise TypeMismatchError(
            f"{name!r} is of type {type_}, and only a tensor can be given for it"
        )
    dtype = None if type_.dtype is None else str(type_.dtype)
    if dtype is not None and str(array.dtype) != dtype:
        raise TypeMismatchError(
            f"{name!r} has dtype {array.dtype}, the function wants {dtype}: "
            f"give {name}.astype({dtype!r})"
        )
    _check_shape(name, array.shape, type_, dims, f"has shape {array.shape}")


def _check_shape(name: str, shape: tuple[int, ...], type_: ir.Type, dims: Dims, found: str) -> None:
    wanted = type_dims(type_)
    if wanted is None:
        if type_.ndim >= 0 and len(shape) != type_.ndim:
            raise TypeMismatchError(f"{name!r} {found}, the function wants {type_.ndim} dimensions")
        return
    message = f"{name!r} has shape {shape}, the function wants {shape_label(wanted)}"
    if len(shape) != len(wanted):
        raise TypeMismatchError(message)
    pairs = list(zip(shape, wanted, strict=True))
    for size, dim in pairs:
        if isinstance(dim, tirx.IntImm):
            if dim.value != size:
                raise TypeMismatchError(message)
        elif isinstance(dim, ir.Var):
            dims.setdefault(dim_label(dim), size)
    for size, dim in pairs:
        value = evaluate_dim(dim, dims)
        if value is not None and value != size:
            taken = ", ".join(f"{symbol} = {dims[symbol]}" for symbol in sorted(dims))
            raise TypeMismatchError(f"{message}, and the others make {taken}")


def _check_number(name: str, value: Argument, type_: ir.PrimType, dims: Dims) -> None:
    dtype = str(type_.dtype)
    if is_integer(type_):
        bits = int(dtype.removeprefix("u").removeprefix("int") or 64)
        low, high = (0, 1 << bits) if dtype[0] == "u" else (-1 << bits - 1, 1 << bits - 1)
        if not isinstance(value, int) or isinstance(value, bool):
            raise _mismatch(name, value, type_, "a whole number")
        if not low <= value < high:
            raise _mismatch(name, value, type_, f"a number from {low} to {high - 1}")
        if dims.setdefault(name, value) != value:
            raise _mismatch(name, value, type_, f"{dims[name]}, as the others make it")
    elif dtype == "bool":
        if not isinstance(value, bool):
            raise _mismatch(name, value, type_, "True or False")
    elif not isinstance(value, int | float) or isinstance(value, bool):
        raise _mismatch(name, value, type_, "a number")


def _mismatch(name: str, value: Argument, type_: ir.Type, right: str) -> TypeMismatchError:
    what = beginning(repr(value), 80)
    if isinstance(value, np.ndarray):
        what = f"an array of shape {value.shape}"
    elif isinstance(value, tuple) and isinstance(type_, ir.TupleType):
        what = f"a tuple of {len(value)}"
    elif isinstance(value, float) and not math.isfinite(value):
        what = str(value)
    return TypeMismatchError(
        f"{name!r} is {what}, the function wants {type_label(type_)}: give {right}"
    )
