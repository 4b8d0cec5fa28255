"""Build modules that TVMScript cannot express."""

from collections.abc import Sequence

from tvm import IRModule, ir, relax

TENSOR = relax.TensorType([2], "float32")


def module(
    params: Sequence[ir.Var],
    bindings: Sequence[relax.Binding],
    result: ir.Expr,
    *,
    type_: ir.Type = TENSOR,
    is_pure: bool = True,
) -> IRModule:
    """Return a module with one function, as it is given: nothing is checked or normalized."""
    body = relax.SeqExpr([relax.BindingBlock(list(bindings))], result)
    function = relax.Function(list(params), body, type_, is_pure=is_pure)
    return IRModule({ir.GlobalVar("main"): function.with_attr("global_symbol", "main")})


def normalized(mod: IRModule) -> IRModule:
    """Return the module in TVM's normal form, which has the type of every expression."""
    return relax.transform.Normalize()(mod)
