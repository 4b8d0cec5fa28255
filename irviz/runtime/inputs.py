"""Inputs -> the argument lists that a function is called with, one for each case."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from tvm import ir, relax, tirx

from irviz.ir.fit import check_fit
from irviz.ir.type_label import type_label

Array = NDArray[np.generic]


class InputError(ValueError):
    """Inputs that the function cannot be called with; the message says what would be right."""


def argument_lists(
    function: relax.Function,
    inputs: Mapping[str, Array] | Array | None,
    params: Mapping[str, Array],
) -> list[list[Array]]:
    """Return the arguments of each case, in the order of the function's parameters.

    `params` fill parameters by name, the same in each case. `inputs` fill the rest, by name, or
    one array for the only one left; an array with one axis more than its parameter, or with more
    rows where the parameter has one, holds one case a row. Without inputs, one case of random
    numbers with a fixed seed is made. Raises InputError for a missing or unknown input and
    MisfitError (a ValueError too) for one of the wrong shape or dtype.
    """
    wanted = {param.name: param for param in function.params}
    fixed = {name: _array(name, params[name]) for name in wanted if name in params}
    open_names = [name for name in wanted if name not in fixed]
    if inputs is None:
        given = _random(wanted, open_names, fixed)
    elif isinstance(inputs, Mapping):
        given = {name: _array(name, array) for name, array in inputs.items()}
    elif len(open_names) == 1:
        given = {open_names[0]: _array(open_names[0], inputs)}
    else:
        raise InputError(
            f"one array was given, but the parameters without a value are "
            f"{_listed(open_names)}: give a dict with an array for each"
        )
    _check_names(wanted, fixed, given)
    rows = {name: _rows(array, wanted[name].ty) for name, array in given.items()}
    counts = {name: len(arrays) for name, arrays in rows.items()}
    empty = [name for name, count in counts.items() if count == 0]
    if empty:
        raise InputError(
            f"there is no case in {_listed(empty)}: give an array with at least one row"
        )
    if len(set(counts.values()) - {1}) > 1:
        raise InputError(f"the inputs have different numbers of cases: {counts}")
    cases = max(counts.values(), default=1)
    chosen = {**{name: [array] for name, array in fixed.items()}, **rows}
    dims: dict[str, int] = {}
    for name, arrays in chosen.items():
        check_fit(name, arrays[0], wanted[name].ty, dims)
    return [
        [chosen[name][case if len(chosen[name]) > 1 else 0] for name in wanted]
        for case in range(cases)
    ]


def _array(name: str, value: object) -> Array:
    try:
        return np.asarray(value)
    except ValueError as failure:
        raise InputError(f"{name!r} is no array: {failure}") from failure


def _check_names(
    wanted: Mapping[str, ir.Var], fixed: Mapping[str, Array], given: Mapping[str, Array]
) -> None:
    missing = [name for name in wanted if name not in given and name not in fixed]
    if missing:
        types = ", ".join(f"{name}: {type_label(wanted[name].ty)}" for name in missing)
        raise InputError(f"no value for {types}: give {_listed(missing)} in params or inputs")
    unknown = [name for name in given if name not in wanted]
    if unknown:
        raise InputError(
            f"the function has no parameter {unknown[0]!r}; its parameters are {_listed(wanted)}"
        )


def _rows(array: Array, type_: ir.Type) -> Sequence[Array]:
    """Split an array of several cases into them; one that fits as it is, is one case."""
    if not isinstance(type_, relax.TensorType) or not isinstance(type_.shape, relax.ShapeExpr):
        return [array]
    dims = type_.shape.values
    if array.ndim == len(dims) + 1:
        return list(array)
    is_row = len(dims) > 0 and isinstance(dims[0], tirx.IntImm) and dims[0].value == 1
    if array.ndim == len(dims) and is_row and len(array) > 1:
        return [array[i : i + 1] for i in range(len(array))]
    return [array]


def _random(
    wanted: Mapping[str, ir.Var], names: Sequence[str], fixed: Mapping[str, Array]
) -> dict[str, Array]:
    """Make values from the signature; symbolic sizes are those that `fixed` has already set."""
    dims: dict[str, int] = {}
    for name, array in fixed.items():
        check_fit(name, array, wanted[name].ty, dims)
    generator = np.random.default_rng(0)
    return {name: _random_array(name, wanted[name].ty, dims, generator) for name in names}


def _random_array(
    name: str, type_: ir.Type, dims: Mapping[str, int], generator: np.random.Generator
) -> Array:
    label = type_label(type_)
    if not isinstance(type_, relax.TensorType) or not isinstance(type_.shape, relax.ShapeExpr):
        raise InputError(f"no value can be made up for {name}: {label}; give one in inputs")
    shape = []
    for dim in type_.shape.values:
        size = dim.value if isinstance(dim, tirx.IntImm) else dims.get(str(dim))
        if size is None:
            raise InputError(
                f"{name}: {label} has the symbolic dimension {dim}, so its size is not known: "
                f"give {name!r} in inputs"
            )
        shape.append(int(size))
    dtype = str(type_.dtype or "float32")
    if dtype.startswith("float"):
        scale = 1 / math.sqrt(max(shape[-1], 1)) if len(shape) > 1 else 1.0
        return (generator.standard_normal(shape) * scale).astype(dtype)
    if dtype == "bool":
        return generator.integers(0, 2, shape).astype(bool)
    if dtype.startswith(("int", "uint")):
        return generator.integers(0, 10, shape).astype(dtype)
    raise InputError(f"no value can be made up for {name}: {label}; give one in inputs")


def _listed(names: object) -> str:
    return ", ".join(repr(str(name)) for name in names) or "none"  # type: ignore[attr-defined]
