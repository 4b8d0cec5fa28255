"""Convert the values given for parameters, split them into cases, and solve for symbolic sizes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TypeAlias

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import ir, relax, tirx

from irviz.errors import InputError
from irviz.ir.parameter_values import (
    Argument,
    CacheArgument,
    ShapeValue,
    TypeMismatchError,
    check_argument,
)
from irviz.ir.symbolic_shapes import dim_names, evaluate_dim, parameter_dims, solve_dim, type_dims
from irviz.ir.type_and_expression_labels import shape_label

Array = NDArray[np.generic]
Rows: TypeAlias = "Sequence[Argument] | Array"
"""Values, possibly the rows of an array, which is sent to a worker faster than separate rows."""


def as_argument(name: str, value: object, type_: ir.Type) -> Argument:
    """Convert a value to the form that its type takes: an array, a number, a shape or a tuple.

    Arrays become C-contiguous and native-endian. Raises InputError for a value that cannot be
    converted; `check_argument` refuses one whose form is not its type's.
    """
    match type_:
        case _ if isinstance(value, CacheArgument | ShapeValue):
            return value
        case ir.TupleType() if isinstance(value, list | tuple | ir.Array):
            fields = zip(value, type_.fields, strict=False)
            items = (as_argument(f"{name}[{at}]", *pair) for at, pair in enumerate(fields))
            return (*items, *value[len(type_.fields) :])
        case relax.ShapeType():
            sizes = as_array(name, value)
            is_shape = sizes.ndim == 1 and (sizes.dtype.kind in "iu" or not sizes.size)
            if is_shape and all(int(size) >= 0 for size in sizes):
                return ShapeValue(tuple(map(int, sizes)))
            return value  # type: ignore[return-value]
        case ir.PrimType():
            number = as_array(name, value)
            return value if number.ndim else number.item()  # type: ignore[return-value]
        case relax.AnyType() if isinstance(value, list | tuple):
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


SIZE = 8
"""The default size of symbolic dimensions.

All get the same size, so that operands fit each other; a power of two can be split by
schedules, and a small one runs fast.
"""
_MOST_DOUBLINGS = 10

_Sized = tuple[str, tuple[int, ...], tuple[ir.Expr, ...]]
"""The name of a value, its shape, and the shape of its type."""


def parse_sizes(text: str) -> dict[str, int]:
    """Read sizes that a user wrote, such as `n=128, m=784`; raise InputError for anything else."""
    found = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, _, size = part.partition("=")
        if not name.strip() or not size.strip().isdecimal():
            raise InputError(f"{part!r} is not a size: write sizes such as n=128, m=784")
        found[name.strip()] = int(size)
    check_sizes(found)
    return found


def check_sizes(sizes: Mapping[str, int], least: int = 1) -> None:
    """Raise InputError for a size that is not an integer of `least` or more."""
    for name, size in sizes.items():
        if not isinstance(size, int | np.integer) or isinstance(size, bool) or size < least:
            words = f"give an integer of {least} or more"
            raise InputError(f"the size of {name!r} is {size!r}: {words}")


def resolve_sizes(
    wanted: Mapping[str, ir.Type], values: Mapping[str, Argument], sizes: Mapping[str, int]
) -> dict[str, int]:
    """Return the sizes of all symbolic dimensions of the parameters, by name.

    Names in `sizes` that no parameter has are ignored, because a pass may have removed them.
    Raises TypeMismatchError when a value does not fit its type or the other values, and
    InputError when `sizes` contradicts the values.
    """
    dims: dict[str, int] = {}
    for name, value in values.items():
        check_argument(name, value, wanted[name], dims)
    by_name = {name: [*parameter_dims(name, type_)] for name, type_ in wanted.items()}
    all_dims = (dim for found in by_name.values() for dim in found)
    names = list(dict.fromkeys(name for dim in all_dims for name in sorted(dim_names(dim))))
    for name, size in sizes.items():
        if dims.get(name, size) != size:
            raise InputError(
                f"the size of {name!r} is {size}, but the given values make it "
                f"{dims[name]}: leave it out, or give values of that size"
            )
    dims |= {name: int(size) for name, size in sizes.items() if name in names}
    sized = [each for name, value in values.items() for each in _sized(name, value, wanted[name])]
    _solve(sized, dims)
    made = [dim for name, d in by_name.items() if name not in values for dim in d]
    chosen = _filled(names, sized, dims, SIZE)
    if not _are_positive(made, chosen):
        sizes_tried = (SIZE << times for times in range(1, _MOST_DOUBLINGS + 1))
        larger = (_filled(names, sized, dims, size) for size in sizes_tried)
        with suppress(TypeMismatchError):  # the values allow none so large
            chosen = next((one for one in larger if _are_positive(made, one)), chosen)
    for name, value in values.items():
        check_argument(name, value, wanted[name], chosen)
    return chosen


def _filled(
    names: Sequence[str], sized: Sequence[_Sized], dims: Mapping[str, int], size: int
) -> dict[str, int]:
    """Return sizes for all names: the known ones, what follows from them, else `size`."""
    filled = dict(dims)
    for name in names:
        if name not in filled:
            filled[name] = size
            _solve(sized, filled)
    return filled


def _are_positive(made: Iterable[ir.Expr], dims: Mapping[str, int]) -> bool:
    return all(isinstance(dim, tirx.IntImm) or (evaluate_dim(dim, dims) or 0) > 0 for dim in made)


def _solve(sized: Sequence[_Sized], dims: dict[str, int]) -> None:
    """Solve the dimensions that are expressions for unknown sizes, until nothing changes."""
    is_new = True
    while is_new:
        is_new = False
        for name, shape, types in sized:
            for size, dim in zip(shape, types, strict=True):
                unknown = sorted(dim_names(dim) - dims.keys())
                if len(unknown) != 1:
                    continue
                found = solve_dim(dim, size, dims)
                if found is None:
                    raise TypeMismatchError(
                        f"{name!r} has shape {shape}, the function wants {shape_label(types)}, "
                        f"which no {unknown[0]} makes it"
                    )
                dims[unknown[0]], is_new = found[1], True


def _sized(name: str, value: Argument, type_: ir.Type) -> Iterator[_Sized]:
    if isinstance(type_, ir.TupleType) and isinstance(value, tuple):
        for index, (item, field) in enumerate(zip(value, type_.fields, strict=True)):
            yield from _sized(f"{name}[{index}]", item, field)
    wanted = type_dims(type_)
    if wanted is not None and isinstance(value, ShapeValue | np.ndarray):
        yield name, value.dims if isinstance(value, ShapeValue) else value.shape, wanted
