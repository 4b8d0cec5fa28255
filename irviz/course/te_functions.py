# ruff: noqa: N803, N806 - tensors have the names that they have in the chapter
"""The integration chapter's tensor expressions, and what TVM makes of them: PrimFuncs, a module.

A tensor expression defines each element; the loops are TVM's. Sizes come from the operands.
"""

from __future__ import annotations

from tvm import IRModule, relax, te, tirx


def te_matmul(A: te.Tensor, B: te.Tensor) -> te.Tensor:
    """Return the matrix product of (n, k) and (k, m); raise ValueError if the two k differ."""
    if int(A.shape[1]) != int(B.shape[0]):
        raise ValueError(f"{A.shape} and {B.shape} have no product: the inner sizes must be equal")
    n, m = A.shape[0], B.shape[1]
    k = te.reduce_axis((0, A.shape[1]), name="k")
    return te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="matmul")


def te_relu(A: te.Tensor) -> te.Tensor:
    """Return max(A, 0), element by element, of any number of axes."""
    zero = tirx.const(0, A.dtype)
    return te.compute(A.shape, lambda *i: te.max(A(*i), zero), name="relu")


def vector_add(size: int = 1024) -> tirx.PrimFunc:
    """Return A + B -> C, of vectors in float32."""
    a, b = (te.placeholder((size,), name=name, dtype="float32") for name in "AB")
    return te.create_prim_func([a, b, te.compute(a.shape, lambda i: a[i] + b[i], name="C")])


def matmul(size: int = 128) -> tirx.PrimFunc:
    """Return A @ B -> C, of square matrices in float32."""
    A = te.placeholder((size, size), name="A")
    B = te.placeholder((size, size), name="B")
    C = te_matmul(A, B)
    return te.create_prim_func([A, B, C])


def matmul_relu(size: int = 128) -> tirx.PrimFunc:
    """Return max(A @ B, 0) -> D; the function allocates a buffer for the product."""
    A = te.placeholder((size, size), name="A")
    B = te.placeholder((size, size), name="B")
    C = te_matmul(A, B)
    D = te_relu(C)
    return te.create_prim_func([A, B, D])


def matmul_relu_module(size: int = 128) -> IRModule:
    """Return max(A @ B, 0) as two PrimFuncs and a `main` that calls them.

    Each `emit_te` makes a PrimFunc and a binding that calls it. `emit_output` marks the output of
    the dataflow block, `emit_func_output` that of the function.
    """
    A = relax.Var("A", relax.TensorType((size, size), "float32"))
    B = relax.Var("B", relax.TensorType((size, size), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [A, B]):
        with builder.dataflow():
            lv = builder.emit_te(te_matmul, A, B)
            lv1 = builder.emit_te(te_relu, lv)
            gv = builder.emit_output(lv1)
        builder.emit_func_output(gv)
    return builder.get()


def batch_matmul_relu(batch: int = 4, size: int = 32) -> tirx.PrimFunc:
    """Return max(A[b] @ B[b], 0) -> C[b], for each b."""
    a, b = (te.placeholder((batch, size, size), name=name, dtype="float32") for name in "AB")
    k = te.reduce_axis((0, size), name="k")
    product = te.compute(
        a.shape, lambda n, i, j: te.sum(a[n, i, k] * b[n, k, j], axis=k), name="matmul"
    )
    return te.create_prim_func([a, b, te_relu(product)])
