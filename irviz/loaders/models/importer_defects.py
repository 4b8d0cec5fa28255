"""Operators that TVM's importers write and that TVM computes wrongly, or cannot build."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from tvm import ir, relax


@dataclass(frozen=True)
class Trap:
    """A kind of call that does not compute what was meant.

    Attributes:
        words: What is wrong with it, and what stands in its place.
        applies: Whether a call is of this kind.
        mended: The call that computes what was meant.
    """

    words: str
    applies: Callable[[relax.Call], bool]
    mended: Callable[[relax.Call], relax.Expr]


def mend(module: ir.IRModule) -> tuple[ir.IRModule, tuple[str, ...]]:
    """Replace the calls of known traps; return the module and what was replaced, in words."""
    found: dict[str, int] = {}

    def look(expr: relax.Expr) -> None:
        trap = _trap_of(expr)
        if trap is not None:
            found[trap.words] = found.get(trap.words, 0) + 1

    functions = {
        variable: function
        for variable, function in module.functions.items()
        if isinstance(function, relax.Function)
    }
    for function in functions.values():
        relax.analysis.post_order_visit(function, look)
    if not found:
        return module, ()
    mender = _mender(module)
    for variable, function in functions.items():
        mender.builder_.update_func(variable, mender.visit_expr(function))
    return mender.builder_.get(), tuple(
        f"TVM imported {count}× {words}" for words, count in found.items()
    )


def _mender(module: ir.IRModule) -> relax.PyExprMutator:
    @relax.expr_functor.mutator
    class Mender(relax.PyExprMutator):  # type: ignore[misc] # TVM has no types
        def visit_call_(self, call: relax.Call) -> relax.Expr:
            visited = self.visit_expr_post_order(call)
            trap = _trap_of(visited)
            return visited if trap is None else self.builder_.normalize(trap.mended(visited))

    return Mender(module)


def _trap_of(expr: relax.Expr) -> Trap | None:
    if not isinstance(expr, relax.Call):
        return None
    return next((trap for trap in _TRAPS if trap.applies(expr)), None)


def _calls(call: relax.Call, *names: str) -> bool:
    return isinstance(call.op, ir.Op) and call.op.name in names


def _takes_negative(call: relax.Call) -> bool:
    if not _calls(call, "relax.take") or call.attrs.mode != "fast":
        return False
    index = call.args[1]
    return isinstance(index, ir.GenericConst) and bool(np.any(index.value.numpy() < 0))


def _compares_bools(call: relax.Call) -> bool:
    return _calls(call, "relax.equal", "relax.not_equal") and all(
        isinstance(one.ty, relax.TensorType) and str(one.ty.dtype) == "bool" for one in call.args
    )


def _as_xor(call: relax.Call) -> relax.Expr:
    differs = relax.op.logical_xor(*call.args)
    return differs if _calls(call, "relax.not_equal") else relax.op.logical_not(differs)


_TRAPS = (
    Trap(
        "R.take with a negative index and mode='fast', which reads outside of its operand: it is "
        "mode='wrap' here",
        _takes_negative,
        lambda call: relax.op.take(*call.args, axis=call.attrs.axis, mode="wrap"),
    ),
    Trap(
        "R.equal or R.not_equal of bools, which cannot be built for LLVM: it is R.logical_xor here",
        _compares_bools,
        _as_xor,
    ),
)
