"""The sizes of symbolic dimensions: from values, from the user, or the default SIZE."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from tvm import ir, tirx

from irviz.errors import InputError
from irviz.ir.check_arguments import Argument, ShapeValue, TypeMismatchError, check_argument
from irviz.ir.labels import shape_label
from irviz.ir.symbolic_shapes import dim_names, evaluate_dim, parameter_dims, solve_dim, type_dims

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


def check_sizes(sizes: Mapping[str, int]) -> None:
    """Raise InputError for a size that is not a positive integer."""
    for name, size in sizes.items():
        if not isinstance(size, int | np.integer) or isinstance(size, bool) or size < 1:
            raise InputError(f"the size of {name!r} is {size!r}: give an integer of 1 or more")


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
    names = list(dict.fromkeys(name for d in by_name.values() for dim in d for name in _names(dim)))
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
        larger = _larger(names, sized, dims)
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


def _larger(
    names: Sequence[str], sized: Sequence[_Sized], dims: Mapping[str, int]
) -> Iterator[dict[str, int]]:
    """Yield sizes with a default that doubles each time, as long as the values allow it."""
    try:
        for times in range(1, _MOST_DOUBLINGS + 1):
            yield _filled(names, sized, dims, SIZE << times)
    except TypeMismatchError:
        return


def _are_positive(made: Iterable[ir.Expr], dims: Mapping[str, int]) -> bool:
    return all(isinstance(dim, tirx.IntImm) or (evaluate_dim(dim, dims) or 0) > 0 for dim in made)


def _solve(sized: Sequence[_Sized], dims: dict[str, int]) -> None:
    """Solve the dimensions that are expressions for unknown sizes, until nothing changes."""
    is_new = True
    while is_new:
        is_new = False
        for name, shape, types in sized:
            for size, dim in zip(shape, types, strict=True):
                unknown = [one for one in _names(dim) if one not in dims]
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


def _names(dim: ir.Expr) -> list[str]:
    return sorted(dim_names(dim))
