"""Values made up for parameters: random ones from a seed, or zeros."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from tvm import ir, relax

from irviz.ir.fit import Argument, Shape
from irviz.ir.sizes import evaluated, is_whole, names_of, shape_of
from irviz.ir.type_label import dim_label, type_label

RANDOM: Final = "random"
ZEROS: Final = "zeros"
WORDS: Final = (RANDOM, ZEROS)
"""What may stand in the place of an array."""

MOST_BYTES = 1 << 31
"""More than that is not made up for one call."""

_MOST_INTEGER = 10
_DTYPES = {
    *("bool", "bfloat16", "float16", "float32", "float64"),
    *(f"{kind}int{bits}" for kind in ("", "u") for bits in (8, 16, 32, 64)),
}


class InputError(ValueError):
    """Inputs that the function cannot be called with; the message says what would be right."""


def generator_for(name: str, seed: int) -> np.random.Generator:
    """Return the source of a parameter's random values.

    It depends on the name and the seed alone: a parameter keeps its values when others come and
    go, as they do from stage to stage. Raises InputError for a seed that is none.
    """
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or seed < 0:
        raise InputError(f"the seed is {seed!r}: give a whole number from 0 on")
    return np.random.default_rng([int(seed), zlib.crc32(name.encode())])


def random_array(
    shape: Sequence[int], dtype: str, generator: np.random.Generator
) -> NDArray[np.generic]:
    """Return random values of a dtype: normal ones for floats, 0 to 9 for integers.

    A matrix is scaled by 1 / sqrt(its last size), so that products of many stay finite. Raises
    InputError for a dtype that NumPy and TVM do not share.
    """
    if dtype not in _DTYPES and not dtype.startswith("float8_"):
        raise InputError(f"no value can be made up of dtype {dtype}")
    values: object
    if dtype == "bool":
        values = generator.integers(0, 2, shape)
    elif "int" in dtype:
        values = generator.integers(0, _MOST_INTEGER, shape, "int8")
    else:
        values = generator.standard_normal(shape, "float64" if dtype == "float64" else "float32")
        if len(shape) > 1:
            values /= np.float32(math.sqrt(max(shape[-1], 1)))
    return np.asarray(values).astype(dtype, copy=False)  # NumPy makes a number of no sizes at all


def made_up(
    name: str, type_: ir.Type, dims: Mapping[str, int], word: str, source: np.random.Generator
) -> Argument:
    """Return a value of a type; what `check_makeable` lets pass can be made.

    Sizes are those of `dims`, with either word: a shape, and a whole number, which counts as one.
    """
    match type_:
        case ir.TupleType():
            return tuple(
                made_up(f"{name}[{index}]", field, dims, word, source)
                for index, field in enumerate(type_.fields)
            )
        case relax.ShapeType():
            return Shape(sizes(name, type_, dims))
        case ir.PrimType() if is_whole(type_):
            return dims.get(name, 0)
        case ir.PrimType():
            number = random_array((), str(type_.dtype), source) if word == RANDOM else np.zeros(())
            return bool(number) if str(type_.dtype) == "bool" else float(number)
        case _:
            shape, dtype = sizes(name, type_, dims), _dtype(type_)
            if word == ZEROS:
                return np.zeros(shape, dtype)
            return random_array(shape, dtype, source)


def check_makeable(name: str, type_: ir.Type, dims: Mapping[str, int]) -> int:
    """Return how many bytes a made up value of a type takes.

    Raises InputError for a type that nothing can be made up for.
    """
    if isinstance(type_, ir.TupleType):
        return sum(
            check_makeable(f"{name}[{index}]", field, dims)
            for index, field in enumerate(type_.fields)
        )
    is_number = isinstance(type_, ir.PrimType)
    is_known = shape_of(type_) is not None or is_number
    dtype = str(type_.dtype) if is_number else _dtype(type_)
    if not is_known or not (dtype in _DTYPES or dtype.startswith("float8_")):
        raise InputError(
            f"no value can be made up for {name}: {type_label(type_)}; give one in inputs"
        )
    if is_number:
        return 8
    count = math.prod(sizes(name, type_, dims))
    return count * np.dtype(dtype).itemsize if isinstance(type_, relax.TensorType) else 8


def check_bytes(taken: Mapping[str, int], told: str) -> None:
    """Raise InputError when values of so many bytes each are too much; `told` says what sizes."""
    total = sum(taken.values())
    if total > MOST_BYTES:
        largest = max(taken, key=lambda name: taken[name])
        raise InputError(
            f"the values to be made up take {total:,} bytes, {largest!r} alone "
            f"{taken[largest]:,}{told}, and at most {MOST_BYTES:,} are: give smaller sizes, or "
            "arrays"
        )


def sizes(name: str, type_: ir.Type, dims: Mapping[str, int]) -> tuple[int, ...]:
    """Return the sizes of a tensor or a shape in numbers; raise InputError for one below 1.

    Zero is a size where the type says so, or one that it is made of is zero.
    """
    found = []
    for dim in shape_of(type_) or ():
        size, names = evaluated(dim, dims), sorted(names_of(dim))
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


def concrete(type_: ir.Type, dims: Mapping[str, int]) -> ir.Type:
    """Return a type with the sizes that are known in numbers."""
    if isinstance(type_, ir.TupleType):
        return ir.TupleType([concrete(field, dims) for field in type_.fields])
    shape = [size if (size := evaluated(d, dims)) is not None else d for d in shape_of(type_) or ()]
    if isinstance(type_, relax.TensorType) and shape_of(type_) is not None:
        return relax.TensorType(shape, type_.dtype)
    return relax.ShapeType(shape) if isinstance(type_, relax.ShapeType) and shape else type_


def _dtype(type_: ir.Type) -> str:
    return str(getattr(type_, "dtype", None) or "float32")
