"""The integration chapter's module of tensor expressions, put together by a BlockBuilder."""

from __future__ import annotations

from tvm import IRModule, relax

from irviz.course.te_functions import te_matmul, te_relu


def built(size: int = 128) -> IRModule:
    """Return max(A @ B, 0) as two PrimFuncs and a `main` that calls them.

    Each `emit_te` makes a PrimFunc, and a binding that calls it. What leaves the dataflow block
    is said by `emit_output`, what the function returns by `emit_func_output`.
    """
    a, b = _parameters(size)
    builder = relax.BlockBuilder()
    with builder.function("main"):
        with builder.dataflow():
            product = builder.emit_te(te_matmul, a, b)
            result = builder.emit_output(builder.emit_te(te_relu, product))
        builder.emit_func_output(result, params=[a, b])
    return builder.get()


def built_with_parameters_first(size: int = 128) -> IRModule:
    """Return the same module, its parameters given where the function begins."""
    a, b = _parameters(size)
    builder = relax.BlockBuilder()
    with builder.function("main", params=[a, b]):
        with builder.dataflow():
            product = builder.emit_te(te_matmul, a, b)
            result = builder.emit_output(builder.emit_te(te_relu, product))
        builder.emit_func_output(result)
    return builder.get()


def _parameters(size: int) -> tuple[relax.Var, relax.Var]:
    type_ = relax.TensorType((size, size), "float32")
    return relax.Var("A", type_), relax.Var("B", type_)
