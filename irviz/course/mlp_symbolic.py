# ruff: noqa: D102, F841, N805, N806, N812
# mypy: ignore-errors
# TVMScript is read by TVM, not run by Python: it has its own rules for names.
"""The lecture's MLP with symbolic sizes: PrimFuncs and library functions, called by name."""

from tvm import IRModule
from tvm.script import ir as I
from tvm.script import relax as R
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


def calling(linear0: str, relu: str, linear1: str) -> IRModule:
    """Return the MLP as calls of three functions, with the PrimFuncs among them."""

    @I.ir_module
    class Module:
        @R.function
        def main(
            x: R.Tensor((1, "m"), "float32"),
            w0: R.Tensor(("n", "m"), "float32"),
            b0: R.Tensor(("n",), "float32"),
            w1: R.Tensor(("k", "n"), "float32"),
            b1: R.Tensor(("k",), "float32"),
        ):
            m, n, k = T.int64(), T.int64(), T.int64()
            with R.dataflow():
                lv0 = R.call_dps_packed(linear0, (x, w0, b0), R.Tensor((1, n), "float32"))
                lv1 = R.call_dps_packed(relu, (lv0,), R.Tensor((1, n), "float32"))
                out = R.call_dps_packed(linear1, (lv1, w1, b1), R.Tensor((1, k), "float32"))
                R.output(out)
            return out

    return _with_prim_funcs(Module, linear0, relu, linear1)


def _with_prim_funcs(mod: IRModule, *names: str) -> IRModule:
    functions = {
        var: function for var, function in PrimFuncs.functions.items() if var.name_hint in names
    }
    return IRModule({**functions, **mod.functions}, attrs=mod.attrs)


MyModule = calling("linear0", "relu0", "linear0")
MyModuleWithExternCall = calling("env.linear", "env.relu", "env.linear")
MyModuleMixture = calling("linear0", "env.relu", "env.linear")


@I.ir_module
class MyModuleTwoBlocks:
    """Split the calls over two dataflow blocks, the second using the output of the first.

    TVM 0.27 merges adjacent dataflow blocks when it parses them, so a binding stands between: the
    allocation that an earlier edition of the chapter has there. Nothing uses it.
    """

    @R.function
    def main(
        x: R.Tensor((1, "m"), "float32"),
        w0: R.Tensor(("n", "m"), "float32"),
        b0: R.Tensor(("n",), "float32"),
        w1: R.Tensor(("k", "n"), "float32"),
        b1: R.Tensor(("k",), "float32"),
    ):
        m, n, k = T.int64(), T.int64(), T.int64()
        with R.dataflow():
            lv0 = R.call_dps_packed("linear0", (x, w0, b0), R.Tensor((1, n), "float32"))
            gv0 = R.call_dps_packed("relu0", (lv0,), R.Tensor((1, n), "float32"))
            R.output(gv0)
        gv1 = R.builtin.alloc_tensor(R.shape([1, n]), dtype="float32", runtime_device_index=0)
        with R.dataflow():
            out = R.call_dps_packed("linear0", (gv0, w1, b1), R.Tensor((1, k), "float32"))
            R.output(out)
        return out


MyModuleTwoBlocks = _with_prim_funcs(MyModuleTwoBlocks, "linear0", "relu0")
