"""Whether an array fits a parameter's type, symbolic dimensions included."""

from __future__ import annotations

from collections.abc import MutableMapping

import numpy as np
from tvm import ir, relax, tirx

from irviz.ir.type_label import dim_label, shape_label

Dims = MutableMapping[str, int]
"""The sizes that symbolic dimensions have taken so far, by name."""


class MisfitError(ValueError):
    """An array that cannot be a parameter's value; the message says what would be right."""


def check_fit(name: str, array: np.ndarray, type_: ir.Type, dims: Dims) -> None:
    """Raise MisfitError unless the array has the dtype and shape of this tensor type.

    A symbolic dimension takes the size of the first array that has it, which is kept in `dims`;
    later ones must agree.
    """
    if not isinstance(type_, relax.TensorType):
        raise MisfitError(f"{name!r} is of type {type_}, and only a tensor can be given for it")
    dtype = None if type_.dtype is None else str(type_.dtype)
    if dtype is not None and str(array.dtype) != dtype:
        raise MisfitError(
            f"{name!r} has dtype {array.dtype}, the function wants {dtype}: "
            f"give {name}.astype({dtype!r})"
        )
    if not isinstance(type_.shape, relax.ShapeExpr):
        if type_.ndim >= 0 and array.ndim != type_.ndim:
            raise MisfitError(
                f"{name!r} has shape {array.shape}, the function wants {type_.ndim} dimensions"
            )
        return
    wanted = type_.shape.values
    if array.ndim != len(wanted):
        raise _misfit(name, array, type_)
    for size, dim in zip(array.shape, wanted, strict=True):
        if isinstance(dim, tirx.IntImm):
            if dim.value != size:
                raise _misfit(name, array, type_)
        elif isinstance(dim, ir.Var) and dims.setdefault(dim_label(dim), size) != size:
            taken = ", ".join(f"{symbol} = {dims[symbol]}" for symbol in sorted(dims))
            raise MisfitError(f"{_misfit(name, array, type_)}, and the others make {taken}")


def _misfit(name: str, array: np.ndarray, type_: relax.TensorType) -> MisfitError:
    wanted = shape_label(type_.shape.values)
    return MisfitError(f"{name!r} has shape {array.shape}, the function wants {wanted}")
