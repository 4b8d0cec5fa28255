"""Questions about an expression that is written inside of another."""

from __future__ import annotations

import tvm
import tvm_ffi
from tvm import ir, relax

_WITHOUT_EFFECT = (relax.ShapeExpr, ir.GenericConst, ir.StringImm, ir.GlobalVar, relax.ExternFunc)


def has_effect(value: ir.Expr) -> bool:
    """Tell whether an expression calls something impure."""
    if isinstance(value, _WITHOUT_EFFECT):
        return False
    try:
        return bool(relax.analysis.contains_impure_call(value))
    except Exception:  # TVM looks into Relax expressions only
        return False


def variables(value: ir.Expr) -> list[ir.Var]:
    """Return the variables that an expression uses and does not define, each of them once."""
    try:
        return list(relax.analysis.free_vars(value))
    except Exception:  # there is something in it that is no Relax: look at all that is there
        found: dict[int, ir.Var] = {}

        def note(part: object) -> None:
            if isinstance(part, ir.Var):
                found.setdefault(part.__chandle__(), part)

        tvm_ffi.structural_walk(value, note)
        return list(found.values())


def is_arithmetic(call: ir.Call) -> bool:
    """Tell whether a call is a number of TIR, such as `T.if_then_else(n > 1, n, m)`."""
    return isinstance(call.op, ir.Op) and not str(call.op.name).startswith("relax.")


def is_tensor_constant(leaf: ir.Expr) -> bool:
    """Tell whether an expression is a constant with a shape; a scalar is written at its use."""
    if not isinstance(leaf, ir.GenericConst) or not isinstance(leaf.value, tvm.runtime.Tensor):
        return False  # it may be a dtype too
    return bool(leaf.value.shape != ())
