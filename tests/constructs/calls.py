# ruff: noqa: ARG002, F841, N803, N805, N806, N812, RET504
# TVMScript is read by TVM, not run by Python: it has its own rules for names.
"""Modules with every kind of call."""

from tvm import IRModule, ir, relax
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

from .making import TENSOR, module


@I.ir_module
class DirectCalls:
    """Calls of an Op, a Relax function, a PrimFunc, an ExternFunc, without any op around them."""

    @T.prim_func(s_tir=True)
    def double(X: T.Buffer((2, 2), "float32"), Y: T.Buffer((2, 2), "float32")):
        for i, j in T.grid(2, 2):
            with T.sblock("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = X[vi, vj] + X[vi, vj]

    @R.function
    def twice(x: R.Tensor((2, 2), "float32")) -> R.Tensor((2, 2), "float32"):
        y = R.add(x, x)
        return y

    @R.function(pure=False)
    def main(x: R.Tensor((2, 2), "float32")):
        cls = DirectCalls
        an_op = R.add(x, x)
        a_function = cls.twice(an_op)
        out = R.builtin.alloc_tensor(R.shape([2, 2]), dtype="float32", runtime_device_index=0)
        a_prim_func: R.Tuple = cls.double(a_function, out)
        a_library = R.call_packed("env.relu", out, x, ty_args=R.Tensor((2, 2), "float32"))
        nothing = R.call_packed("env.nowhere", a_library, ty_args=R.Object)
        mine = R.call_packed("twice", a_library, ty_args=R.Tensor((2, 2), "float32"))
        return mine


@I.ir_module
class CallTir:
    """Every operator that calls a PrimFunc of the module."""

    @T.prim_func(s_tir=True)
    def double(X: T.Buffer((2, 2), "float32"), Y: T.Buffer((2, 2), "float32")):
        for i, j in T.grid(2, 2):
            with T.sblock("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = X[vi, vj] + X[vi, vj]

    @T.prim_func(s_tir=True)
    def add_to(X: T.Buffer((2, 2), "float32"), Y: T.Buffer((2, 2), "float32")):
        for i, j in T.grid(2, 2):
            with T.sblock("X"):
                vi, vj = T.axis.remap("SS", [i, j])
                X[vi, vj] = X[vi, vj] + Y[vi, vj]

    @R.function
    def main(x: R.Tensor((2, 2), "float32"), y: R.Tensor((2, 2), "float32")):
        cls = CallTir
        with R.dataflow():
            plain = R.call_tir(cls.double, (x,), R.Tensor((2, 2), "float32"))
            inplace = R.call_tir_inplace(
                cls.add_to, (plain, y), inplace_indices=[0], out_ty=R.Tensor((2, 2), "float32")
            )
            grad = R.call_tir_with_grad(
                cls.double,
                (inplace,),
                R.Tensor((2, 2), "float32"),
                te_grad_name="double_grad",
                te_grad_kwargs={"k": 1.0},
            )
            R.output(grad)
        return grad


@I.ir_module
class CallTirDyn:
    """What the VM's lowering makes of a call_tir with sizes that are not known."""

    @T.prim_func(s_tir=True)
    def double(x: T.handle, y: T.handle, n: T.int64):
        X = T.match_buffer(x, (n,), "float32")
        Y = T.match_buffer(y, (n,), "float32")
        for i in range(n):
            with T.sblock("Y"):
                vi = T.axis.spatial(n, i)
                Y[vi] = X[vi] + X[vi]

    @R.function(pure=False)
    def main(x: R.Tensor(("n",), "float32"), out: R.Tensor(("n",), "float32")):
        n = T.int64()
        cls = CallTirDyn
        done: R.Tuple = R.vm.call_tir_dyn(cls.double, (x, out, R.shape([n])))
        return out


@I.ir_module
class Numbers:
    """A call_tir with a number among its arguments, of a parameter and of a size."""

    @T.prim_func(s_tir=True)
    def times(X: T.Buffer((4,), "float32"), k: T.int64, Y: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.sblock("Y"):
                vi = T.axis.spatial(4, i)
                Y[vi] = X[vi] * T.Cast("float32", k)

    @R.function
    def main(x: R.Tensor((4,), "float32"), n: T.int64, s: R.Shape(["m"])):
        m = T.int64()
        cls = Numbers
        by_n = R.call_tir(cls.times, (x, n), R.Tensor((4,), "float32"))
        by_m = R.call_tir(cls.times, (by_n, m), R.Tensor((4,), "float32"))
        by_both = R.call_tir(cls.times, (by_m, n * 2 + m + n), R.Tensor((4,), "float32"))
        by_three = R.call_tir(cls.times, (by_both, T.int64(3)), R.Tensor((4,), "float32"))
        return by_three


@I.ir_module
class LibraryCalls:
    """Every operator that calls a function by its name."""

    @R.function(pure=False)
    def main(x: R.Tensor((2, 2), "float32"), y: R.Tensor((2, 2), "float32")):
        dps = R.call_dps_packed("env.relu", (x,), R.Tensor((2, 2), "float32"))
        pair = R.call_dps_packed(
            "env.split", (dps, (y, x)), [R.Tensor((2, 2), "float32"), R.Tensor((2, 2), "float32")]
        )
        first = pair[0]
        pure = R.call_pure_packed(
            "env.relu", first, R.const(2.0, "float32"), ty_args=R.Tensor((2, 2), "float32")
        )
        inplace = R.call_inplace_packed(
            "env.relu", pure, y, inplace_indices=[0], ty_args=R.Tensor((2, 2), "float32")
        )
        context = R.call_builtin_with_ctx(
            "vm.builtin.alloc_shape_heap", (R.prim_value(4),), ty_args=[R.Object]
        )
        impure = R.call_packed("env.relu", inplace, context, ty_args=R.Tensor((2, 2), "float32"))
        return impure


@I.ir_module
class NoArguments:
    """Calls that take nothing at all."""

    @R.function
    def one() -> R.Tensor((2,), "float32"):
        return R.const([1.0, 1.0], "float32")

    @R.function
    def main():
        cls = NoArguments
        a = cls.one()
        b = R.call_pure_packed("env.nothing", ty_args=R.Tensor((2,), "float32"))
        c = R.call_dps_packed("env.nothing", R.tuple(), R.Tensor((2,), "float32"))
        d = R.null_value()
        e = R.ones(R.shape([2]), "float32")
        return (a, b, c, d, e)


def with_python() -> IRModule:
    """Return a module with a Python function, called by name, beside one that is not there."""

    from tvm.relax.base_py_module import BasePyModule  # which loads torch where it is

    @I.ir_module
    class WithPython(BasePyModule):
        @I.pyfunc
        def shout(x):
            return x

        @R.function
        def main(x: R.Tensor((2, 2), "float32")):
            with R.dataflow():
                said = R.call_py_func("shout", x, out_ty=R.Tensor((2, 2), "float32"))
                lost = R.call_py_func("nobody", said, x, out_ty=R.Tensor((2, 2), "float32"))
                R.output(lost)
            return lost

    return WithPython.ir_module


def named_python() -> IRModule:
    """Return a module with a Python function as files keep it: an ExternFunc, no pyfuncs."""
    x, y = relax.Var("x", TENSOR), relax.Var("y", TENSOR)
    call = relax.op.call_py_func(ir.StringImm("shout"), (x,), TENSOR)
    made = module([x], [relax.VarBinding(y, call)], y)
    made.update_func(ir.GlobalVar("shout"), relax.ExternFunc("shout").with_attr("is_pyfunc", True))
    return made


@I.ir_module
class Closures:
    """A closure made of a function of the module, and called in both ways lowering leaves."""

    @R.function(private=True)
    def lifted(a: R.Tensor((2,), "float32"), b: R.Tensor((2,), "float32")) -> R.Tensor(
        (2,), "float32"
    ):
        c = R.add(a, b)
        return c

    @R.function(pure=False)
    def main(x: R.Tensor((2,), "float32")):
        cls = Closures
        closure = R.make_closure(cls.lifted, (x,))
        pure = R.invoke_pure_closure(closure, (x,), ty_args=R.Tensor((2,), "float32"))
        impure = R.invoke_closure(closure, (pure, x), ty_args=R.Tensor((2,), "float32"))
        straight = R.invoke_pure_closure(cls.lifted, (x, impure), ty_args=R.Tensor((2,), "float32"))
        return straight


CALLS = {
    "direct calls": DirectCalls,
    "call_tir": CallTir,
    "call_tir_dyn": CallTirDyn,
    "numbers as arguments": Numbers,
    "library calls": LibraryCalls,
    "no arguments": NoArguments,
    "python functions": with_python,
    "python functions by name": named_python,
    "made closures": Closures,
}
