"""What a call calls: the one place that reads a callee's name."""

from __future__ import annotations

from tvm import ir, relax

_DESTINATION_PASSING = ("relax.call_tir", "relax.call_dps_packed")


def callee_name(callee: ir.Expr) -> str:
    """Return the name of a GlobalVar or ExternFunc, or "" for any other callee."""
    match callee:
        case relax.ExternFunc():
            return str(callee.global_symbol)
        case ir.GlobalVar():
            return str(callee.name_hint)
        case _:
            return ""


def is_destination_passing(value: ir.Expr) -> bool:
    """Tell whether a value is a call_tir or a call_dps_packed."""
    is_op_call = isinstance(value, ir.Call) and isinstance(value.op, ir.Op)
    return is_op_call and value.op.name in _DESTINATION_PASSING
