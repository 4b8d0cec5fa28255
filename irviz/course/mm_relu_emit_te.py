"""The integration chapter's module of tensor expressions, made with a BlockBuilder."""

from __future__ import annotations

from tvm import IRModule, relax

from irviz.course.te_functions import te_matmul, te_relu


def built(size: int = 128, *, parameters_first: bool = False) -> IRModule:
    """Return max(A @ B, 0) as two PrimFuncs and a `main` that calls them.

    Each `emit_te` makes a PrimFunc and a binding that calls it. `emit_output` marks the output of
    the dataflow block, `emit_func_output` that of the function. The parameters are given there, or
    where the function begins.
    """
    type_ = relax.TensorType((size, size), "float32")
    a, b = parameters = [relax.Var("A", type_), relax.Var("B", type_)]
    builder = relax.BlockBuilder()
    with builder.function("main", params=parameters if parameters_first else None):
        with builder.dataflow():
            product = builder.emit_te(te_matmul, a, b)
            result = builder.emit_output(builder.emit_te(te_relu, product))
        builder.emit_func_output(result, params=None if parameters_first else parameters)
    return builder.get()
