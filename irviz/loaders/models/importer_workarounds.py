"""Replace calls that TVM's importers make and that do not compute what was meant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from tvm import ir, relax, sym

from irviz.ir.module_functions import relax_functions


@dataclass(frozen=True)
class Trap:
    """A kind of call that does not compute what was meant, and the replacement, also in words."""

    words: str
    applies: Callable[[relax.Call], bool]
    mended: Callable[[relax.Call], relax.Expr]


def mend(module: ir.IRModule) -> tuple[ir.IRModule, tuple[str, ...]]:
    """Replace the calls of known traps; return the module and what was replaced, in words."""
    mender = _Mender(module)
    for name, function in relax_functions(module).items():
        mender.builder_.update_func(module.get_global_var(name), mender.visit_expr(function))
    words = tuple(f"TVM imported {count}× {words}" for words, count in mender.found.items())
    return (mender.builder_.get() if words else module), words


@relax.expr_functor.mutator
class _Mender(relax.PyExprMutator):  # type: ignore[misc] # TVM has no types
    def __init__(self, module: ir.IRModule) -> None:
        super().__init__(module)
        self.found: Counter[str] = Counter()

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        visited = self.visit_expr_post_order(call)
        trap = next((trap for trap in _TRAPS if trap.applies(visited)), None)
        if trap is None:
            return visited
        self.found[trap.words] += 1
        return self.builder_.normalize(trap.mended(visited))


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


def _multiplies_bools(call: relax.Call) -> bool:
    return _calls(call, "relax.multiply") and str(call.args[0].ty.dtype) == "bool"


def _fills_not_finite(call: relax.Call) -> bool:
    return (
        _calls(call, "relax.full")
        and isinstance(call.args[1], ir.GenericConst)
        and not np.isfinite(call.args[1].value.numpy().astype("float64"))
    )


NORMALISATIONS = {
    **dict.fromkeys(
        [f"relax.nn.{name}_norm" for name in ("layer", "group", "instance", "rms")],
        ("float32", "float16"),
    ),
    "relax.nn.batch_norm": ("float32", "float64"),
}
"""The dtypes in which TVM computes normalisations; it makes float32 of a batch_norm of float16."""


def _normalises_other_floats(call: relax.Call) -> bool:
    if not _calls(call, *NORMALISATIONS) or not isinstance(call.args[0].ty, relax.TensorType):
        return False
    return str(call.args[0].ty.dtype) not in NORMALISATIONS[call.op.name]


_NOT_BUILT = {
    "float16": ("acos", "acosh", "asin", "asinh", "atan", "atan2", "cosh", "sinh"),
    "bfloat16": (
        *("argmax", "argmin", "argsort", "isfinite", "isinf", "isnan", "mod", "nn.prelu", "power"),
        *("sort", "topk"),
    ),
}
"""Operators that TVM cannot build for a dtype, or that order its numbers wrong."""


def _is_not_built(call: relax.Call) -> bool:
    type_ = call.args[0].ty if len(call.args) else None
    names = _NOT_BUILT.get(str(type_.dtype), ()) if isinstance(type_, relax.TensorType) else ()
    return _calls(call, *(f"relax.{name}" for name in names))


def _in_float32(call: relax.Call) -> relax.Expr:
    dtype = str(call.args[0].ty.dtype)
    made = relax.Call(call.op, [relax.op.astype(one, "float32") for one in call.args], call.attrs)

    def cast(value: relax.Expr, type_: relax.TensorType) -> relax.Expr:
        return relax.op.astype(value, dtype) if str(type_.dtype) == dtype else value

    if not isinstance(call.ty, relax.TupleType):
        return cast(made, call.ty)
    fields = enumerate(call.ty.fields)
    return relax.Tuple([cast(relax.TupleGetItem(made, at), type_) for at, type_ in fields])


def _replaces_all(call: relax.Call) -> bool:
    if not _calls(call, "relax.slice_scatter") or call.args[0].ty.shape is None:
        return False
    start, end, step = call.args[2:5]
    size = call.args[0].ty.shape[call.attrs.axis]
    prove = sym.Analyzer().can_prove_equal
    return all(prove(*pair) for pair in ((start, 0), (end, size), (step, 1)))


_TRAPS = (
    Trap(
        "a normalisation in a dtype that TVM does not build: it is computed in float32 here",
        _normalises_other_floats,
        _in_float32,
    ),
    Trap(
        "an operator in a dtype that TVM does not build or orders wrong: it is computed in float32 "
        "here",
        _is_not_built,
        _in_float32,
    ),
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
    Trap(
        "R.multiply of bools, which cannot be built: it is R.logical_and here",
        _multiplies_bools,
        lambda call: relax.op.logical_and(*call.args),
    ),
    Trap(
        "R.full with a number that is not finite, which cannot be lowered: it is R.broadcast_to "
        "here",
        _fills_not_finite,
        lambda call: relax.op.broadcast_to(call.args[1], call.args[0]),
    ),
    Trap(
        "R.slice_scatter of a whole tensor, which cannot be lowered where its size may vary: it is "
        "the tensor that is put there here",
        _replaces_all,
        lambda call: call.args[1],
    ),
)
