"""Short text for types, and the parts of types."""

from __future__ import annotations

import tvm_ffi
from tvm import ir, relax
from tvm.relax.distributed.type import DTensorType

from irviz.ir.text.expression_labels import expression_label, shape_label
from irviz.model.graph.type_parts import TypeParts

_MAX_FIELDS = 4
_MAX_NESTING = 20
_PLAIN_TYPES = {
    ir.StringType: "String",
    relax.FuncType: "Function",
    relax.AnyType: "Any",
    ir.Type: "?",
    type(None): "?",
}


def type_label(type_: ir.Type | None, depth: int = 0) -> str:
    """Return a type as short text, without the dtype if that is float32.

    >>> type_label(relax.TensorType([1, 128], "float32"))
    'Tensor[(1, 128)]'
    >>> type_label(relax.TensorType([4], "int64"))
    'Tensor[(4,), int64]'

    The label includes a tensor's device (`Tensor[(2,), cuda:0]`) or how it is sharded.
    """
    match type_:
        case relax.TensorType():
            return _tensor_label(type_)
        case relax.ShapeType():
            if type_.values is None:
                return f"Shape[ndim={type_.ndim}]" if type_.ndim >= 0 else "Shape"
            return f"Shape[{shape_label(type_.values)}]"
        case ir.TupleType():
            return _tuple_label(type_, depth)
        case DTensorType():
            placement = str(type_.placement).strip('"')
            mesh = shape_label(type_.device_mesh.shape)
            return f"D{_tensor_label(type_.tensor_ty)[:-1]}, {placement} on mesh {mesh}]"
        case ir.PrimType():
            return str(type_.dtype)
        case _ if type(type_) in _PLAIN_TYPES:
            return _PLAIN_TYPES[type(type_)]
        case _:
            return str(type_)


def _tensor_label(type_: relax.TensorType) -> str:
    dtype = "" if type_.dtype is None else str(type_.dtype)
    shape = type_.shape
    if isinstance(shape, relax.ShapeExpr):
        dims = shape_label(shape.values)
    elif isinstance(shape, ir.Var):
        dims = str(shape.name)
    else:
        dims = f"ndim={type_.ndim}" if type_.ndim >= 0 else ""
    vdevice = type_.vdevice
    device = "" if vdevice is None else f"{vdevice.target.kind.name}:{vdevice.vdevice_id}"
    parts = [part for part in (dims, "" if dtype == "float32" else dtype, device) if part]
    return f"Tensor[{', '.join(parts)}]" if parts else "Tensor"


def _tuple_label(type_: ir.TupleType, depth: int) -> str:
    if depth == _MAX_NESTING:
        return "Tuple[…]"
    fields = [type_label(field, depth + 1) for field in type_.fields]
    rest = len(fields) - _MAX_FIELDS
    if rest > 0:
        fields[_MAX_FIELDS:] = [f"… +{rest}"]
    return f"Tuple[{', '.join(fields)}]"


def type_parts(type_: ir.Type | None) -> TypeParts:
    """Return a type as text without abbreviations, and the parts of a tensor's type.

    >>> type_parts(relax.TensorType([1, 128], "float32")).shape
    '(1, 128)'
    """
    symbols: set[str] = set()
    tvm_ffi.structural_walk(type_, (ir.Var, lambda var: symbols.add(str(var.name))))
    text = " ".join(expression_label(type_).split())
    if not isinstance(type_, relax.TensorType):
        return TypeParts(text, symbols=frozenset(symbols))
    if isinstance(type_.shape, relax.ShapeExpr):
        shape = shape_label(type_.shape.values)
    else:
        shape = f"ndim={type_.ndim}" if type_.shape is None else str(type_.shape.name)
    dtype = "" if type_.dtype is None else str(type_.dtype)
    vdevice = type_.vdevice
    place = () if vdevice is None else (vdevice.target, vdevice.vdevice_id, vdevice.memory_scope)
    return TypeParts(text, shape, dtype, ":".join(map(str, place)), frozenset(symbols))
