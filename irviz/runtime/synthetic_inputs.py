"""Synthetic values for parameters: random ones from a seed, or zeros."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from tvm import ir, relax

from irviz.errors import InputError
from irviz.ir.check_arguments import Argument, ShapeValue
from irviz.ir.labels import dim_label, type_label
from irviz.ir.symbolic_shapes import dim_names, evaluate_dim, is_integer, type_dims

RANDOM: Final = "random"
ZEROS: Final = "zeros"
WORDS: Final = (RANDOM, ZEROS)
"""The keywords that can replace an array."""

MOST_BYTES = 1 << 31
"""The limit for the synthetic values of one call."""

_MOST_INTEGER = 10
_MOST_DIMENSIONS = 64  # of an array of NumPy
_DTYPES = {
    *("bool", "bfloat16", "float16", "float32", "float64"),
    *(f"{kind}int{bits}" for kind in ("", "u") for bits in (8, 16, 32, 64)),
}


def generator_for(name: str, seed: int) -> np.random.Generator:
    """Return the generator of a parameter's random values.

    It depends only on the name and the seed, so a parameter keeps its values when others are
    added or removed from stage to stage. Raises InputError for an invalid seed.
    """
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or seed < 0:
        raise InputError(f"the seed is {seed!r}: give an integer of 0 or more")
    return np.random.default_rng([int(seed), zlib.crc32(name.encode())])


def random_array(
    shape: Sequence[int], dtype: str, generator: np.random.Generator
) -> NDArray[np.generic]:
    """Return random values of a dtype: standard normal for floats, 0 to 9 for integers.

    Matrices are scaled by 1 / sqrt(last size), so that products of many stay finite. Raises
    InputError for a dtype that NumPy and TVM do not share.
    """
    if dtype not in _DTYPES and not dtype.startswith("float8_"):
        raise InputError(f"no value can be created of dtype {dtype}")
    values: object
    if dtype == "bool":
        values = generator.integers(0, 2, shape)
    elif "int" in dtype:
        values = generator.integers(0, _MOST_INTEGER, shape, "int8")
    else:
        values = generator.standard_normal(shape, "float64" if dtype == "float64" else "float32")
        if len(shape) > 1:
            values /= np.float32(math.sqrt(max(shape[-1], 1)))
    return np.asarray(values).astype(dtype, copy=False)  # NumPy returns a scalar for an empty shape


def synthetic_value(
    name: str, type_: ir.Type, dims: Mapping[str, int], word: str, source: np.random.Generator
) -> Argument:
    """Return a synthetic value of a type that `synthetic_bytes` accepts.

    Shapes and integers are sizes, and come from `dims` with either word.
    """
    match type_:
        case ir.TupleType():
            return tuple(
                synthetic_value(f"{name}[{index}]", field, dims, word, source)
                for index, field in enumerate(type_.fields)
            )
        case relax.ShapeType():
            return ShapeValue(static_shape(name, type_, dims))
        case ir.PrimType() if is_integer(type_):
            return dims.get(name, 0)
        case ir.PrimType():
            number = random_array((), str(type_.dtype), source) if word == RANDOM else np.zeros(())
            return bool(number) if str(type_.dtype) == "bool" else float(number)
        case _:
            shape, dtype = static_shape(name, type_, dims), _dtype(type_)
            if word == ZEROS:
                return np.zeros(shape, dtype)
            return random_array(shape, dtype, source)


def synthetic_bytes(name: str, type_: ir.Type, dims: Mapping[str, int]) -> int:
    """Return the size of a synthetic value in bytes; raise InputError for an unsupported type."""
    if isinstance(type_, ir.TupleType):
        return sum(
            synthetic_bytes(f"{name}[{index}]", field, dims)
            for index, field in enumerate(type_.fields)
        )
    is_number = isinstance(type_, ir.PrimType)
    is_known = type_dims(type_) is not None or is_number
    dtype = str(type_.dtype) if is_number else _dtype(type_)
    if not is_known or not (dtype in _DTYPES or dtype.startswith("float8_")):
        raise InputError(
            f"no value can be created for {name}: {type_label(type_)}; give one in inputs"
        )
    if is_number:
        return 8
    shape = static_shape(name, type_, dims)
    if len(shape) > _MOST_DIMENSIONS and isinstance(type_, relax.TensorType):
        raise InputError(
            f"{name} has {len(shape)} dimensions, and arrays of NumPy have at most "
            f"{_MOST_DIMENSIONS}: no value can be created"
        )
    count = math.prod(shape)
    return count * np.dtype(dtype).itemsize if isinstance(type_, relax.TensorType) else 8


def check_bytes(taken: Mapping[str, int], dims: Mapping[str, int]) -> None:
    """Raise InputError if values of these sizes in bytes are too large in total."""
    total = sum(taken.values())
    if total > MOST_BYTES:
        largest = max(taken, key=lambda name: taken[name])
        sizes = ", ".join(f"{name} = {size:,}" for name, size in dims.items())
        given = f" with {sizes}" if sizes else ""
        raise InputError(
            f"the synthetic values take {total:,} bytes, {largest!r} alone "
            f"{taken[largest]:,}{given}, which is more than {MOST_BYTES:,}: give smaller "
            "sizes, or arrays"
        )


def static_shape(name: str, type_: ir.Type, dims: Mapping[str, int]) -> tuple[int, ...]:
    """Return the shape of a tensor or shape type in numbers; raise InputError for one below 1.

    Zero is accepted if the type has it, or if a size in the expression is zero.
    """
    found = []
    for dim in type_dims(type_) or ():
        size, names = evaluate_dim(dim, dims), sorted(dim_names(dim))
        if size is None or size < 0 or (size == 0 and names and all(dims[n] for n in names)):
            made = ", ".join(f"{symbol} = {dims[symbol]}" for symbol in names if symbol in dims)
            what = "no size" if size is None else f"the size {size}"
            raise InputError(
                f"{name}: {type_label(type_)} has {what} where it says {dim_label(dim)}, with "
                f"{made or 'nothing known'}: give other sizes, as in sizes={{{names[0]!r}: 64}}"
                if names
                else f"{name}: {type_label(type_)} has {what}, and none is below 0"
            )
        found.append(size)
    return tuple(found)


def substitute_dims(type_: ir.Type, dims: Mapping[str, int]) -> ir.Type:
    """Return a type with the known dimensions replaced by numbers."""
    if isinstance(type_, ir.TupleType):
        return ir.TupleType([substitute_dims(field, dims) for field in type_.fields])
    shape = [
        size if (size := evaluate_dim(d, dims)) is not None else d for d in type_dims(type_) or ()
    ]
    if isinstance(type_, relax.TensorType) and type_dims(type_) is not None:
        return relax.TensorType(shape, type_.dtype)
    return relax.ShapeType(shape) if isinstance(type_, relax.ShapeType) and shape else type_


def _dtype(type_: ir.Type) -> str:
    return str(getattr(type_, "dtype", None) or "float32")
