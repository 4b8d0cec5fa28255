"""Short text for Relax types and for the expressions in shapes."""

from __future__ import annotations

import re

from tvm import ir, relax, tirx
from tvm.relax.distributed.type import DTensorType

_MOST_FIELDS = 4
_MOST_NESTED = 20
_SIZED_INT = re.compile(r"\bT\.u?int\d+\((-?\d+)\)")


def type_label(type_: ir.Type | None, depth: int = 0) -> str:
    """Return a type as short text; float32 goes without saying, other dtypes are named.

    >>> type_label(relax.TensorType([1, 128], "float32"))
    'Tensor[(1, 128)]'
    >>> type_label(relax.TensorType([4], "int64"))
    'Tensor[(4,), int64]'

    A tensor on a device of its own says so (`Tensor[(2,), cuda:0]`), a sharded one how.
    """
    match type_:
        case relax.TensorType():
            return _tensor(type_)
        case relax.ShapeType():
            return _shape(type_)
        case ir.TupleType():
            return _tuple(type_, depth)
        case DTensorType():
            placement = str(type_.placement).strip('"')
            mesh = shape_label(type_.device_mesh.shape)
            return f"D{_tensor(type_.tensor_ty)[:-1]}, {placement} on mesh {mesh}]"
        case ir.PrimType():
            return str(type_.dtype)
        case ir.StringType():
            return "String"
        case relax.FuncType():
            return "Function"
        case relax.AnyType():
            return "Any"
        case _:
            is_known = type_ is not None and type(type_) is not ir.Type
            return str(type_) if is_known else "?"


def shape_label(values: object) -> str:
    """Return the dimensions of a shape as a Python tuple, symbolic ones by name."""
    dims = [dim_label(value) for value in values]  # type: ignore[attr-defined]
    return f"({dims[0]},)" if len(dims) == 1 else f"({', '.join(dims)})"


def dim_label(value: object) -> str:
    """Return one dimension as text: `128`, `n`, `n * 2`."""
    if isinstance(value, tirx.IntImm):
        return str(value.value)
    if isinstance(value, ir.Var):
        return str(value.name)
    return _SIZED_INT.sub(r"\1", str(value).splitlines()[-1])


def _shape(type_: relax.ShapeType) -> str:
    if type_.values is None:
        return f"Shape[ndim={type_.ndim}]" if type_.ndim >= 0 else "Shape"
    return f"Shape[{shape_label(type_.values)}]"


def _tuple(type_: ir.TupleType, depth: int) -> str:
    if depth == _MOST_NESTED:
        return "Tuple[…]"
    fields = [type_label(field, depth + 1) for field in type_.fields]
    return f"Tuple[{', '.join(_shortened(fields))}]"


def _tensor(type_: relax.TensorType) -> str:
    dtype = "" if type_.dtype is None else str(type_.dtype)
    shape = type_.shape
    if isinstance(shape, relax.ShapeExpr):
        dims = shape_label(shape.values)
    elif isinstance(shape, ir.Var):
        dims = str(shape.name)
    else:
        dims = f"ndim={type_.ndim}" if type_.ndim >= 0 else ""
    device = type_.vdevice
    where = "" if device is None else f"{device.target.kind.name}:{device.vdevice_id}"
    parts = [part for part in (dims, "" if dtype == "float32" else dtype, where) if part]
    return f"Tensor[{', '.join(parts)}]" if parts else "Tensor"


def _shortened(fields: list[str]) -> list[str]:
    more = len(fields) - _MOST_FIELDS
    return fields if more <= 0 else [*fields[:_MOST_FIELDS], f"… +{more}"]
