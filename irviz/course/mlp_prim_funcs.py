# ruff: noqa: D102, N805, N806, N812
# mypy: ignore-errors
# TVMScript is read by TVM, not run by Python: it has its own rules for names.
"""The PrimFuncs of the lecture's MLP, with symbolic sizes."""

from tvm import IRModule
from tvm.script import ir as I
from tvm.script import tirx as T


@I.ir_module
class PrimFuncs:
    """Compute the layers of the MLP: a linear layer and ReLU."""

    @T.prim_func(s_tir=True)
    def relu0(x: T.handle, y: T.handle):
        n = T.int64()
        X = T.match_buffer(x, (1, n), "float32")
        Y = T.match_buffer(y, (1, n), "float32")
        for i, j in T.grid(1, n):
            with T.sblock("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = T.max(X[vi, vj], T.float32(0))

    @T.prim_func(s_tir=True)
    def linear0(x: T.handle, w: T.handle, b: T.handle, z: T.handle):
        m, n = T.int64(), T.int64()
        X = T.match_buffer(x, (1, m), "float32")
        W = T.match_buffer(w, (n, m), "float32")
        B = T.match_buffer(b, (n,), "float32")
        Z = T.match_buffer(z, (1, n), "float32")
        Y = T.sblock_alloc_buffer((1, n), "float32")
        for i, j, k in T.grid(1, n, m):
            with T.sblock("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + X[vi, vk] * W[vj, vk]
        for i, j in T.grid(1, n):
            with T.sblock("Z"):
                vi, vj = T.axis.remap("SS", [i, j])
                Z[vi, vj] = Y[vi, vj] + B[vj]


def with_prim_funcs(mod: IRModule, *names: str) -> IRModule:
    """Return the module with these PrimFuncs, which its calls name as strings."""
    functions = {PrimFuncs.get_global_var(name): PrimFuncs[name] for name in names}
    return IRModule({**functions, **mod.functions}, attrs=mod.attrs)
