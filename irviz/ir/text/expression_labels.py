"""Short text for shapes, sizes and other expressions, and for attributes."""

from __future__ import annotations

import re

import tvm
import tvm_ffi
from tvm import ir, relax, tirx

from irviz.model.graph.graph import FUNCTION_NAME

_SIZED_INT = re.compile(r"\bT\.u?int\d+\((-?\d+)\)")
_ADDRESS = re.compile(r"\(0x[0-9a-f]+\)")
"""TVM prints it for an expression without a text form; it differs in every run."""
_UNPRINTABLE = 'metadata["relax.expr.DataflowVar"]'
"""TVM prints it for a number of a dataflow block where it is part of an expression."""


def shape_label(dims: object) -> str:
    """Return the dimensions of a shape as a Python tuple, symbolic ones by name."""
    labels = [dim_label(dim) for dim in dims]  # type: ignore[attr-defined]
    return f"({labels[0]},)" if len(labels) == 1 else f"({', '.join(labels)})"


def dim_label(value: object) -> str:
    """Return one dimension as text: `128`, `n`, `n * 2`."""
    if isinstance(value, tirx.IntImm):
        return str(value.value)
    if isinstance(value, ir.Var):
        return str(value.name)
    text = str(value)
    if _UNPRINTABLE in text:
        text = str(_with_plain_vars(value))
    # TVM prints declarations of variables above, and a comment on metadata below
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return _SIZED_INT.sub(r"\1", lines[-1]) if lines else ""


def _with_plain_vars(value: object) -> object:
    """Return an expression whose variables of dataflow blocks are others of the same names."""
    made: dict[int, ir.Var] = {}

    def plain(var: relax.DataflowVar) -> ir.Var:
        return made.setdefault(var.__chandle__(), relax.Var(var.name, var.ty))

    return tvm_ffi.structural_map(value, (relax.DataflowVar, plain))


def attributes(attrs: ir.Attrs | None) -> tuple[tuple[str, str], ...]:
    """Return the names and values of the attributes that are not None, in TVM's order."""
    if attrs is None:
        return ()
    if isinstance(attrs, ir.DictAttrs):
        items = [(str(key), attrs[key]) for key in attrs.keys()]  # noqa: SIM118 - no iterator
    else:
        names = [field.name for field in type(attrs).__tvm_ffi_type_info__.fields]
        items = [(name, getattr(attrs, name)) for name in names]
    return tuple(
        (name, dim_label(value) if isinstance(value, ir.Expr) else str(value))
        for name, value in items
        if value is not None
    )


def literal_label(value: ir.Expr) -> str:
    """Return the text of an argument that is shown inside its call, not as a node."""
    match value:
        case ir.GenericConst(value=tvm.runtime.Tensor() as tensor):
            try:
                return str(tensor.numpy())
            except Exception:  # NumPy has no such dtype
                return f"<{tensor.dtype}>"
        case ir.GenericConst():
            return str(value.value)
        case relax.ShapeExpr():
            return shape_label(value.values)
        case ir.StringImm():
            return repr(str(value.value))
        case ir.GlobalVar():
            return str(value.name_hint)
        case ir.Tuple(fields=fields) if not len(fields):
            return "()"
        case _:
            return expression_label(value)


def literal_type(value: ir.Expr) -> str:
    """Return the dtype of a number, `FUNCTION_NAME` for a GlobalVar, "" for any other argument."""
    if isinstance(value, ir.GlobalVar):
        return FUNCTION_NAME
    if isinstance(value, ir.GenericConst):
        return str(value.value.dtype) if isinstance(value.value, tvm.runtime.Tensor) else ""
    return str(value.ty.dtype) if isinstance(value.ty, ir.PrimType) else ""


def expression_label(value: object) -> str:
    """Return TVM's own text of an expression, or its class in angle brackets if TVM has none."""
    try:
        if ir.is_prim_expr(value):
            return _ADDRESS.sub("", dim_label(value))
        lines = [line for line in str(value).splitlines() if not line.startswith("# from ")]
    except Exception:  # TVM's printer raises on some values, and the graph is drawn all the same
        return f"<{type(value).__name__}>"
    return _ADDRESS.sub("", "\n".join(lines).strip())
