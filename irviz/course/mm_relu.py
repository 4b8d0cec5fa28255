# ruff: noqa: D102, N803, N805, N806, N812
# mypy: ignore-errors
# TVMScript is read by TVM, not run by Python: it has its own rules for names.
"""The lecture's matrix product with relu, and the schedule that the lecture gives it."""

from tvm.script import ir as I
from tvm.script import tirx as T


@I.ir_module
class MyModule:
    """Compute max(A @ B, 0), in one PrimFunc."""

    @T.prim_func(s_tir=True)
    def mm_relu(
        A: T.Buffer((128, 128), "float32"),
        B: T.Buffer((128, 128), "float32"),
        C: T.Buffer((128, 128), "float32"),
    ):
        Y = T.sblock_alloc_buffer((128, 128), "float32")
        for i, j, k in T.grid(128, 128, 128):
            with T.sblock("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(128, 128):
            with T.sblock("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(Y[vi, vj], T.float32(0))


def lecture_schedule(sch):
    """Let relu follow the sums four columns at a time, on all cores and in vectors.

    parallel and vectorize come before decompose_reduction: after it TVM no longer sees that the
    outer loops carry no sum.
    """
    block_y = sch.get_sblock("Y")
    i, j, k = sch.get_loops(block_y)
    j0, j1 = sch.split(j, factors=[None, 4])
    sch.reorder(j0, k, j1)
    block_c = sch.get_sblock("C")
    sch.reverse_compute_at(block_c, j0)
    sch.parallel(i)
    sch.vectorize(j1)
    sch.decompose_reduction(block_y, k)
    sch.unroll(k)
