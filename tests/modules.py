# ruff: noqa: ARG001, ARG002, F841, N803, N805, N806, N812, RET504, SIM108
# TVMScript is read by TVM, not run by Python: it has its own rules for names.
"""Small IRModules, each with one thing in it that tests ask about."""

import itertools
import random

import numpy as np
from hypothesis import strategies as st
from tvm import IRModule, ir, relax, topi
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T


@I.ir_module
class EveryKind:
    """Every kind of node, and every place that a called name can lead to."""

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

    @R.function
    def main(x: R.Tensor((2, 2), "float32"), c: R.Tensor((), "bool")):
        cls = EveryKind
        with R.dataflow():
            tir = R.call_tir(cls.double, (x,), R.Tensor((2, 2), "float32"))
            named = R.call_dps_packed("double", (tir,), R.Tensor((2, 2), "float32"))
            relaxed = R.call_dps_packed("twice", (named,), R.Tensor((2, 2), "float32"))
            library = R.call_dps_packed("env.relu", (relaxed,), R.Tensor((2, 2), "float32"))
            unknown = R.call_dps_packed("env.nowhere", (library,), R.Tensor((2, 2), "float32"))
            table = R.add(unknown, R.const([[1.0, 2.0], [3.0, 4.0]], "float32"))
            scaled = R.multiply(table, R.const(2.0, "float32"))
            turned = R.permute_dims(scaled, axes=[1, 0])
            packed = (turned, (tir, x))
            inner = packed[1]
            first = inner[0]
            R.output(first, turned)
        called = cls.twice(first)
        n = T.int64()
        cast = R.match_cast(called, R.Tensor((n, 2), "float32"))
        alias = cast
        if c:
            chosen = R.add(turned, turned)
        else:
            chosen = R.subtract(turned, x)
        return (alias, (chosen, x))


@I.ir_module
class CalledInCalled:
    """A PrimFunc in a function in a function."""

    @T.prim_func(s_tir=True)
    def doubled(X: T.Buffer((4,), "float32"), Y: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.sblock("Y"):
                vi = T.axis.spatial(4, i)
                Y[vi] = X[vi] * T.float32(2)

    @R.function
    def inner(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = CalledInCalled
        b = R.call_tir(cls.doubled, (x,), R.Tensor((4,), "float32"))
        return b

    @R.function
    def layer(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = CalledInCalled
        a = R.add(x, x)
        deep = cls.inner(a)
        return deep

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = CalledInCalled
        once = R.nn.relu(x)
        twice = cls.layer(once)
        return twice


@I.ir_module
class NoParameters:
    """A function without parameters."""

    @R.function
    def main():
        ones = R.ones(R.shape([2, 2]), "float32")
        return ones


@I.ir_module
class SameTwice:
    """One value used twice by one operator."""

    @R.function
    def main(x: R.Tensor((2,), "float32")):
        y = R.add(x, x)
        return y


@I.ir_module
class TwoFunctions:
    """The same names in two functions, and a string that looks like a mark on a line."""

    @R.function(pure=False)
    def first(x: R.Tensor((2,), "float32")):
        y = R.add(x, x)
        said = R.print(x, format="{}  # irviz:0")
        z = R.multiply(y, y)
        return z

    @R.function
    def second(x: R.Tensor((2,), "float32")):
        y = R.subtract(x, x)
        z = R.call_pure_packed("env.f", y, R.str("  # irviz:1"), ty_args=R.Tensor((2,), "float32"))
        return z


@I.ir_module
class Impure:
    """Calls that may have effects, outside of dataflow blocks, between two of these."""

    @R.function(pure=False)
    def main(x: R.Tensor((2,), "float32")):
        with R.dataflow():
            y = R.add(x, x)
            R.output(y)
        said = R.print(y, format="{}")
        got = R.call_packed(
            "env.effect", y, R.const(3), R.str("a"), ty_args=R.Tensor((2,), "float32")
        )
        with R.dataflow():
            z = R.multiply(got, y)
            R.output(z)
        return z


@I.ir_module
class ReturnedConstants:
    """A function that returns constants beside a value."""

    @R.function
    def main(x: R.Tensor((2,), "float32")):
        y = R.add(x, x)
        return (y, R.const([1.0, 2.0], "float32"), R.const(3.0, "float32"))


@I.ir_module
class AllocatedByDtype:
    """A call with a dtype among its arguments, as the memory planner leaves them."""

    @R.function
    def main(x: R.Tensor((2,), "float32")):
        buffer = R.builtin.alloc_tensor(R.shape([2]), dtype="float32", runtime_device_index=0)
        return buffer


@I.ir_module
class SizeAsArgument:
    """A number among the parameters, used in sizes and by itself."""

    @R.function
    def main(x: R.Tensor((4,), "float32"), n: T.int64):
        zeros = R.zeros(R.shape([2, n, n * 2]), "float32")
        more = n * 2
        both = (more, n)
        return (zeros, both)


@I.ir_module
class Symbolic:
    """Sizes with names, and expressions of them."""

    @R.function
    def main(x: R.Tensor(("n", "m"), "float16"), s: R.Shape(["n"])):
        n, m = T.int64(), T.int64()
        flat = R.reshape(x, (n * m,))
        wide = R.concat((flat, flat), axis=0)
        return wide


@I.ir_module
class Closure:
    """A function inside of a function, using a variable of the outer one."""

    @R.function
    def main(x: R.Tensor((2,), "float32"), y: R.Tensor((2,), "float32")):
        @R.function
        def inner(a: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            b = R.add(a, y)
            return b

        z = inner(x)
        return z


@I.ir_module
class TwoOutputs:
    """A PrimFunc that writes two tensors of different dtypes."""

    @T.prim_func(s_tir=True)
    def split(
        X: T.Buffer((4,), "float32"), A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "int32")
    ):
        for i in range(4):
            with T.sblock("both"):
                vi = T.axis.spatial(4, i)
                A[vi] = X[vi] + T.float32(1)
                B[vi] = T.int32(2)

    @R.function
    def main(x: R.Tensor((4,), "float32")):
        cls = TwoOutputs
        with R.dataflow():
            both = R.call_tir(
                cls.split, (x,), out_ty=[R.Tensor((4,), "float32"), R.Tensor((4,), "int32")]
            )
            a = both[0]
            b = both[1]
            R.output(a, b)
        return (a, b)


@I.ir_module
class Half:
    """A call_tir on float16, of a PrimFunc with a number among its arguments and one without."""

    @T.prim_func(s_tir=True)
    def double(X: T.Buffer((1, 4), "float16"), Y: T.Buffer((1, 4), "float16")):
        for i, j in T.grid(1, 4):
            with T.sblock("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = X[vi, vj] + X[vi, vj]

    @T.prim_func(s_tir=True)
    def times(X: T.Buffer((1, 4), "float16"), k: T.int64, Y: T.Buffer((1, 4), "float16")):
        for i, j in T.grid(1, 4):
            with T.sblock("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = X[vi, vj] * T.Cast("float16", k)

    @R.function
    def main(x: R.Tensor((1, 4), "float16"), s: R.Shape(["k"])):
        k = T.int64()
        cls = Half
        doubled = R.call_tir(cls.double, (x,), R.Tensor((1, 4), "float16"))
        scaled = R.call_tir(cls.times, (doubled, k), R.Tensor((1, 4), "float16"))
        return scaled


@I.ir_module
class StaticAndSymbolic:
    """One call of fixed size and one of symbolic size, of PrimFuncs of either sort."""

    @T.prim_func(s_tir=True)
    def fixed(X: T.Buffer((4,), "float32"), Y: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.sblock("Y"):
                vi = T.axis.spatial(4, i)
                Y[vi] = X[vi] + T.float32(1)

    @T.prim_func(s_tir=True)
    def any_size(x: T.handle, y: T.handle):
        n = T.int64()
        X = T.match_buffer(x, (n,), "float32")
        Y = T.match_buffer(y, (n,), "float32")
        for i in range(n):
            with T.sblock("Y"):
                vi = T.axis.spatial(n, i)
                Y[vi] = X[vi] + T.float32(1)

    @R.function
    def main(x: R.Tensor((4,), "float32"), y: R.Tensor(("n",), "float32")):
        n = T.int64()
        cls = StaticAndSymbolic
        a = R.call_tir(cls.fixed, (x,), R.Tensor((4,), "float32"))
        b = R.call_tir(cls.any_size, (y,), R.Tensor((n,), "float32"))
        return (a, b)


@I.ir_module
class Dtypes:
    """Parameters of many dtypes, and a nested tuple of outputs."""

    @R.function
    def main(
        flags: R.Tensor((2,), "bool"),
        half: R.Tensor((2,), "float16"),
        small: R.Tensor((3,), "uint8"),
        scalar: R.Tensor((), "float32"),
    ):
        a = R.logical_not(flags)
        b = R.add(half, half)
        c = R.add(small, small)
        d = R.add(scalar, scalar)
        return (a, (b, (c, d)))


@I.ir_module
class Sizes:
    """Sizes known only as it runs, and returned."""

    @R.function
    def main(x: R.Tensor(("n", 2), "float32"), y: R.Tensor(("n",), "float32")):
        n = T.int64()
        size = R.shape_of(x)
        twice = R.add(y, y)
        return (size, twice)


@I.ir_module
class DataDependent:
    """An output whose shape depends on the values."""

    @R.function
    def main(x: R.Tensor((4,), "float32")):
        where = R.nonzero(x)
        return where


@I.ir_module
class RankOnly:
    """Tensors of known rank but no shape, of no dtype, and a number."""

    @R.function
    def main(x: R.Tensor("float32", ndim=2), y: R.Tensor(ndim=1), n: T.int64):
        return x


def lone_prim_func() -> IRModule:
    """Return a PrimFunc and nothing that calls it."""
    return IRModule({"double": EveryKind["double"]})


def chain(*names: str, function: str = "main") -> IRModule:
    """Return a module of additions, `names[1] = names[0] + names[0]` and so on, named as given."""
    type_ = relax.TensorType([2], "float32")
    variables = [relax.Var(name, type_) for name in names]
    bindings = [
        relax.VarBinding(new, relax.op.add(old, old)) for old, new in itertools.pairwise(variables)
    ]
    body = relax.SeqExpr([relax.BindingBlock(bindings)], variables[-1])
    made = relax.Function(variables[:1], body, type_)
    return relax.transform.Normalize()(IRModule({ir.GlobalVar(function): made}))


def shared_constant() -> IRModule:
    """Return a module that uses one constant three times, and another of equal numbers once."""
    x = relax.Var("x", relax.TensorType([2], "float32"))
    shared, other = (relax.const(np.array([1, 2], "float32")) for _ in range(2))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        y = builder.emit(relax.op.add(x, shared), "y")
        z = builder.emit(relax.op.multiply(shared, shared), "z")
        w = builder.emit(relax.op.add(z, other), "w")
        builder.emit_func_output(relax.Tuple([y, w]))
    return builder.get()


def wide(arguments: int) -> IRModule:
    """Return a module that concatenates one value with itself many times."""
    x = relax.Var("x", relax.TensorType([2], "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.concat([x] * arguments), "y"))
    return builder.get()


def unlike(length):
    """Return a chain of operators in an order that does not repeat itself."""
    ops = [relax.op.exp, relax.op.abs, relax.op.tanh, relax.op.sin, relax.op.cos, relax.op.sqrt]
    x = relax.Var("x", R.Tensor((2,), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        here = x
        for op in random.Random(length).choices(ops, k=length):
            here = builder.emit(op(here))
        builder.emit_func_output(here)
    return builder.get()


def stack(layers):
    """Return a stack of equal layers, 6 bindings and 4 parameters each, behind one of its own."""
    builder = relax.BlockBuilder()
    tensor = R.Tensor((2, 8), "float32")
    weight = R.Tensor((8, 8), "float32")
    x = relax.Var("x", tensor)
    params = [x]
    with builder.function("main"):
        with builder.dataflow():
            h = builder.emit(relax.op.exp(x))
            for layer in range(layers):
                norm = relax.Var(f"norm_{layer}", R.Tensor((8,), "float32"))
                up, down = (relax.Var(f"{name}_{layer}", weight) for name in ("up", "down"))
                bias = relax.Var(f"bias_{layer}", R.Tensor((8,), "float32"))
                params += [norm, up, down, bias]
                y = builder.emit(relax.op.nn.rms_norm(h, norm, axes=[-1]))
                y = builder.emit(relax.op.matmul(y, up))
                y = builder.emit(relax.op.nn.gelu(y))
                y = builder.emit(relax.op.matmul(y, down))
                y = builder.emit(relax.op.add(y, bias))
                h = builder.emit(relax.op.add(h, y))
            out = builder.emit_output(relax.op.tanh(h))
        builder.emit_func_output(out, params)
    return builder.get()


@st.composite
def programs(draw: st.DrawFn) -> IRModule:
    """Draw a module: operators, call_tir, library calls, nested tuples, constants, blocks."""
    type_ = relax.TensorType([2, 2], "float32")
    params = [relax.Var(name, type_) for name in draw(st.lists(_NAMES, min_size=1, max_size=3))]
    tensors: list[ir.Expr] = list(params)
    constants = [relax.const(np.full((2, 2), number, "float32")) for number in (1, 2)]
    builder = relax.BlockBuilder()
    operand = st.deferred(lambda: st.sampled_from([*tensors, *constants, relax.const(3.0)]))
    with builder.function("main", params):
        for is_dataflow in draw(st.lists(st.booleans(), min_size=1, max_size=3)):
            steps = draw(st.lists(st.sampled_from(_STEPS), min_size=1, max_size=4))
            if is_dataflow:
                with builder.dataflow():
                    made = [step(builder, draw, operand, tensors) for step in steps]
                    tensors.append(builder.emit_output(made[-1], draw(_NAMES)))
            else:
                tensors += [step(builder, draw, operand, tensors) for step in steps]
            # what a dataflow block does not give out is not seen after it
            tensors = [t for t in tensors if not isinstance(t, relax.DataflowVar)]
        outputs = draw(st.lists(operand, min_size=1, max_size=3))
        builder.emit_func_output(outputs[0] if len(outputs) == 1 else relax.Tuple(outputs))
    return builder.get()


_NAMES = st.sampled_from(["x", "y", "lv", "lv1", "x#2", "lv[0]", "return", ""])


def _operator(builder, draw, operand, tensors):
    make = draw(st.sampled_from([relax.op.add, relax.op.multiply, relax.op.matmul]))
    left = draw(st.sampled_from(tensors))  # one of the two has to be a tensor
    right = draw(st.sampled_from(tensors)) if make is relax.op.matmul else draw(operand)
    return _kept(builder, tensors, make(left, right), draw(_NAMES))


def _concatenation(builder, draw, operand, tensors):
    parts = draw(st.lists(st.sampled_from(tensors), min_size=2, max_size=5))
    wide = builder.emit(relax.op.concat(parts), draw(_NAMES))
    kept = relax.op.strided_slice(wide, [0], [0], [2])
    return _kept(builder, tensors, kept, draw(_NAMES))


def _call_tir(builder, draw, operand, tensors):
    left, right = draw(st.sampled_from(tensors)), draw(st.sampled_from(tensors))
    return _kept(builder, tensors, builder.call_te(topi.add, left, right), draw(_NAMES))


def _library_call(builder, draw, operand, tensors):
    arguments = draw(st.lists(operand, min_size=1, max_size=4))
    name = draw(st.sampled_from(["env.relu", "env.nowhere"]))
    call = relax.call_dps_packed(name, relax.Tuple(arguments), tensors[0].ty)
    return _kept(builder, tensors, call, draw(_NAMES))


def _tuple(builder, draw, operand, tensors):
    first, second, third = (draw(st.sampled_from(tensors)) for _ in range(3))
    packed = builder.emit(relax.Tuple([first, relax.Tuple([draw(operand), second]), third]))
    inner = builder.emit(relax.TupleGetItem(packed, 1), draw(_NAMES))
    return _kept(builder, tensors, relax.TupleGetItem(inner, 1), draw(_NAMES))


def _match_cast(builder, draw, operand, tensors):
    var = builder.match_cast(draw(st.sampled_from(tensors)), relax.TensorType([2, 2], "float32"))
    tensors.append(var)
    return var


_STEPS = [_operator, _concatenation, _call_tir, _library_call, _tuple, _match_cast]


def _kept(builder, tensors, value, name):
    var = builder.emit(value, name)
    tensors.append(var)
    return var
