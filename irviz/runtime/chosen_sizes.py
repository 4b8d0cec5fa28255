"""The sizes of a function's symbolic dimensions: told by values, said, or taken as SIZE."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from tvm import ir, tirx

from irviz.ir.fit import Argument, MisfitError, Shape, check_argument
from irviz.ir.sizes import dims_of, evaluated, names_of, shape_of, solved
from irviz.ir.type_label import shape_label
from irviz.runtime.made_up import InputError

SIZE = 8
"""The size of a symbolic dimension when nothing tells one.

All have the same, so that what is added or compared fits; a power of two can be split, and a
small one is run at once.
"""
_MOST_DOUBLINGS = 10

_Sized = tuple[str, tuple[int, ...], tuple[ir.Expr, ...]]
"""The name of a value, its sizes, and those of its type."""


def check_sizes(sizes: Mapping[str, int], names: Iterable[str] | None = None) -> None:
    """Raise InputError for a size that is no whole number above 0, or of none of these names."""
    for name, size in sizes.items():
        if not isinstance(size, int | np.integer) or isinstance(size, bool) or size < 1:
            raise InputError(f"the size of {name!r} is {size!r}: give a whole number from 1 on")
    there = None if names is None else list(names)
    unknown = [] if there is None else [name for name in sizes if name not in there]
    if unknown:
        listed = ", ".join(map(repr, there or ())) or "none"
        raise InputError(
            f"there is no symbolic dimension {unknown[0]!r}; the symbolic dimensions are {listed}"
        )


def chosen_sizes(
    wanted: Mapping[str, ir.Type], values: Mapping[str, Argument], sizes: Mapping[str, int]
) -> dict[str, int]:
    """Return the sizes of all symbolic dimensions of the `wanted` parameters, by name.

    Names in `sizes` that none of them has are left out, as a pass may have made them known.
    Raises MisfitError where a value does not fit its type or the others, and InputError where
    `sizes` says something else than the values.
    """
    dims: dict[str, int] = {}
    for name, value in values.items():
        check_argument(name, value, wanted[name], dims)
    everything = [dim for name, type_ in wanted.items() for dim in dims_of(name, type_)]
    names = list(dict.fromkeys(name for dim in everything for name in _names(dim)))
    for name, size in sizes.items():
        if dims.get(name, size) != size:
            raise InputError(
                f"the size of {name!r} is {size}, and the values that are given make it "
                f"{dims[name]}: leave it out, or give values of that size"
            )
    dims |= {name: int(size) for name, size in sizes.items() if name in names}
    sized = [each for name, value in values.items() for each in _sized(name, value, wanted[name])]
    _follow(sized, dims)
    made = [dim for n, type_ in wanted.items() if n not in values for dim in dims_of(n, type_)]
    chosen = _filled(names, sized, dims, SIZE)
    if not _is_enough(made, chosen):
        chosen = next((one for one in _larger(names, sized, dims) if _is_enough(made, one)), chosen)
    for name, value in values.items():
        check_argument(name, value, wanted[name], chosen)
    return chosen


def _filled(
    names: Sequence[str], sized: Sequence[_Sized], dims: Mapping[str, int], size: int
) -> dict[str, int]:
    """Return sizes for all names: those known, what follows from them, and `size`."""
    filled = dict(dims)
    for name in names:
        if name not in filled:
            filled[name] = size
            _follow(sized, filled)
    return filled


def _larger(
    names: Sequence[str], sized: Sequence[_Sized], dims: Mapping[str, int]
) -> Iterator[dict[str, int]]:
    """Yield sizes twice as large each, as long as what is given leaves room for them."""
    try:
        for times in range(1, _MOST_DOUBLINGS + 1):
            yield _filled(names, sized, dims, SIZE << times)
    except MisfitError:
        return


def _is_enough(made: Iterable[ir.Expr], dims: Mapping[str, int]) -> bool:
    return all(isinstance(dim, tirx.IntImm) or (evaluated(dim, dims) or 0) > 0 for dim in made)


def _follow(sized: Sequence[_Sized], dims: dict[str, int]) -> None:
    """Learn what the values tell of sizes that stand in an expression, one after the other."""
    is_new = True
    while is_new:
        is_new = False
        for name, shape, types in sized:
            for size, dim in zip(shape, types, strict=True):
                unknown = [one for one in _names(dim) if one not in dims]
                if len(unknown) != 1:
                    continue
                found = solved(dim, size, dims)
                if found is None:
                    raise MisfitError(
                        f"{name!r} has shape {shape}, the function wants {shape_label(types)}, "
                        f"which no {unknown[0]} makes it"
                    )
                dims[unknown[0]], is_new = found[1], True


def _sized(name: str, value: Argument, type_: ir.Type) -> Iterator[_Sized]:
    if isinstance(type_, ir.TupleType) and isinstance(value, tuple):
        for index, (item, field) in enumerate(zip(value, type_.fields, strict=True)):
            yield from _sized(f"{name}[{index}]", item, field)
    wanted = shape_of(type_)
    if wanted is not None and isinstance(value, Shape | np.ndarray):
        yield name, value.dims if isinstance(value, Shape) else value.shape, wanted


def _names(dim: ir.Expr) -> list[str]:
    return sorted(names_of(dim))
