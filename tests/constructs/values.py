# ruff: noqa: ARG002, F841, N805, N812
# TVMScript is read by TVM, not run by Python: it has its own rules for names.
"""Modules with each class of value: tuples, sizes, numbers, strings, constants, types, names."""

import itertools

import ml_dtypes
import numpy as np
import tvm
from tvm import IRModule, ir, relax, tirx
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

from .making import TENSOR, module, normalized


@I.ir_module
class Tuples:
    """Tuples in tuples, the empty one, and what is taken out of them."""

    @R.function
    def main(x: R.Tensor((2,), "float32"), t: R.Tuple(R.Tensor((2,), "float32"), R.Shape([3]))):
        flat = (x, x)
        nested = (x, (flat, (x, R.const(1.0, "float32"))), R.tuple())
        inner = nested[1]
        second = inner[1]
        first = second[0]
        size = t[1]
        empty = R.tuple()
        return (first, (nested, (size, empty)))


@I.ir_module
class Casts:
    """match_cast of a tensor, a shape, a tuple, a shape written out, and in a dataflow block."""

    @R.function
    def main(x: R.Tensor("float32", ndim=2), s: R.Shape(ndim=2), o: R.Object):
        n, m, k = T.int64(), T.int64(), T.int64()
        with R.dataflow():
            cast = R.match_cast(x, R.Tensor((n, m), "float32"))
            R.output(cast)
        shape = R.match_cast(s, R.Shape([k, 2]))
        known = R.match_cast(R.shape([n, 4]), R.Shape([n, 4]))
        pair = (cast, x)
        both = R.match_cast(pair, R.Tuple(R.Tensor((n, m), "float32"), R.Tensor((n, m), "float32")))
        thing = R.match_cast(o, R.Tensor((n, n), "float32"))
        return (both, shape, known, thing)


@I.ir_module
class Sizes:
    """Sizes as values and as arguments: written out, of parameters, of other sizes."""

    @R.function
    def main(x: R.Tensor(("m", 4), "float32"), n: T.int64, s: R.Shape(["k", 2])):
        m, k = T.int64(), T.int64()
        written = R.shape([2, 3])
        of_n = R.shape([n, n * 2, m])
        zeros = R.zeros(R.shape([n, k]), "float32")
        flat = R.reshape(x, R.shape([m * 4]))
        same = R.reshape(x, s)
        size = R.shape_of(flat)
        tensor = R.shape_to_tensor(size)
        back = R.tensor_to_shape(tensor)
        return (written, of_n, zeros, same, back)


@I.ir_module
class Primitives:
    """Numbers as values: parameters, expressions of them, written numbers, comparisons."""

    @R.function
    def main(n: T.int64, m: T.int64, f: T.float32, s: R.Shape(["k"])):
        k = T.int64()
        alias = n
        sum_ = n + m * 2
        three = R.prim_value(3)
        half = R.prim_value(T.float32(0.5))
        is_more = n > m
        size = k * 2
        larger = T.max(n, m)
        again = sum_ + alias
        packed = (sum_, (n, k), n + n)
        return (packed, three, half, is_more, larger, again, f)


@I.ir_module
class Texts:
    """Texts, dtypes and devices, as arguments and as values."""

    @R.function(pure=False)
    def main(x: R.Tensor((2,), "float32")):
        text = R.str('a "quoted" <b>\n\x00 text')
        empty = R.str("")
        dtype = R.dtype("float16")
        used = R.call_packed("env.f", x, text, R.str("direct"), R.dtype("int8"), ty_args=R.Object)
        return (text, dtype, used)


def opaque() -> IRModule:
    """Return a module with an OpaqueExpr: by itself, and as an argument."""
    x = relax.Var("x", TENSOR)
    hidden, used = relax.Var("hidden", TENSOR), relax.Var("used", TENSOR)
    call = ir.Call(relax.ExternFunc("env.f"), [x, ir.OpaqueExpr()], ty_args=[TENSOR])
    bindings = [relax.VarBinding(hidden, ir.OpaqueExpr()), relax.VarBinding(used, call)]
    return module([x], bindings, used, is_pure=False)


def constants() -> IRModule:
    """Return a module with constants of every dtype, some used more than once, some returned."""
    arrays = {
        "float16": np.array([1, np.nan], "float16"),
        "float32": np.array([np.inf, -np.inf], "float32"),
        "float64": np.array([[0.1], [1e300]], "float64"),
        "bfloat16": np.array([1, 2], ml_dtypes.bfloat16),
        "float8": np.array([1, 2], ml_dtypes.float8_e4m3fn),
        "bool": np.array([True, False]),
        "uint8": np.array([255], "uint8"),
        "int64": np.array([2**62, -(2**62)], "int64"),
        "nothing": np.zeros((0, 3), "float32"),
        "large": np.zeros((64, 64), "float32"),
    }
    tensors = {name: relax.const(array, str(array.dtype)) for name, array in arrays.items()}
    tensors["int4"] = relax.const(tvm.runtime.empty((4,), "int4"))
    tensors["float4"] = relax.const(tvm.runtime.empty((2,), "float4_e2m1fn"))
    return _using(tensors)


def scalars() -> IRModule:
    """Return a module with scalar constants of every dtype."""
    made = {
        "nan": relax.const(np.nan, "float32"),
        "inf": relax.const(-np.inf, "float32"),
        "half": relax.const(0.5, "float16"),
        "bfloat16": relax.const(np.array(1.5, ml_dtypes.bfloat16)),
        "float8": relax.const(np.array(1.5, ml_dtypes.float8_e5m2)),
        "int4": relax.const(tvm.runtime.empty((), "int4")),
        "true": relax.const(True, "bool"),
        "int8": relax.const(-1, "int8"),
        "uint64": relax.const(np.array(2**64 - 1, "uint64"), "uint64"),
    }
    return _using(made)


def _using(made: dict[str, ir.GenericConst]) -> IRModule:
    """Return a module that binds each constant, uses each as an argument, and returns some."""
    bindings, variables = [], []
    for name, constant in made.items():
        alias, used = relax.Var(name, constant.ty), relax.Var(f"used_{name}", relax.AnyType())
        call = relax.op.call_pure_packed(
            "env.f", constant, relax.Tuple([constant, alias]), ty_args=relax.AnyType()
        )
        bindings += [relax.VarBinding(alias, constant), relax.VarBinding(used, call)]
        variables += [used, constant]
    result = relax.Tuple(variables)
    type_ = ir.TupleType([each.ty for each in variables])
    return normalized(module([], bindings, result, type_=type_))


def shared_scalar() -> IRModule:
    """Return a module with one scalar that is returned by branches, used, and returned."""
    condition, type_ = relax.Var("c", relax.TensorType([], "bool")), relax.TensorType([], "float32")
    one = relax.const(1.0, "float32")
    names = [relax.Var(name, type_) for name in ("before", "chosen", "after")]
    before, chosen, after = names
    values = [
        relax.op.exp(one),
        relax.If(condition, relax.SeqExpr([], one), relax.SeqExpr([], before)),
        relax.op.add(chosen, one),
    ]
    bindings = [relax.VarBinding(*pair) for pair in zip(names, values, strict=True)]
    pair = ir.TupleType([type_, type_])
    return normalized(module([condition], bindings, relax.Tuple([after, one]), type_=pair))


def returned_constant() -> IRModule:
    """Return a module that has a constant for its whole body."""
    constant = relax.const([1.0, 2.0], "float32")
    return module([], [], constant, type_=constant.ty)


@I.ir_module
class Types:
    """Types of which little is known, or which are not tensors."""

    @R.function
    def main(
        o: R.Object,
        t: R.Tensor,
        d: R.Tensor("float16"),
        r: R.Tensor(ndim=3),
        s: R.Shape,
        f: R.Callable,
        p: R.Tuple(R.Object, R.Tuple(R.Tensor, R.Shape([2]))),
        b: T.bool,
    ):
        whole = R.add(t, t)
        some = R.multiply(r, r)
        first = p[0]
        called = R.call_pure_packed("env.f", o, s, b, ty_args=R.Tensor)
        return (whole, some, first, called, f)


def unusual_names() -> IRModule:
    """Return a module with names that only look like something else, and repeats of them."""
    names = [
        "x",
        "x",
        "x#2",
        "",
        "",
        "v",
        "return",
        "lv[0]",
        'a "b" <c> & d',
        "täglich 日本",
        "a\nb\t\x00",
        "{|}",
        "\\n",
        "n" * 200,
        "self",
    ]
    variables = [relax.Var(name, TENSOR) for name in names]
    bindings = [
        relax.VarBinding(new, relax.op.add(old, variables[0]))
        for old, new in itertools.pairwise(variables)
    ]
    return normalized(module(variables[:1], bindings, variables[-1]))


def unusual_function_names() -> IRModule:
    """Return a module whose functions and library functions have unusual names."""
    made = unusual_names()
    x, y = relax.Var("x", TENSOR), relax.Var("y", TENSOR)
    z = relax.Var("z", TENSOR)
    call = relax.op.call_dps_packed('a "b" <c>', relax.Tuple([x]), TENSOR)
    empty = relax.op.call_dps_packed("", relax.Tuple([y]), TENSOR)
    bindings = [relax.VarBinding(y, call), relax.VarBinding(z, empty)]
    (function,) = normalized(module([x], bindings, z)).functions.values()
    made[ir.GlobalVar("a <b> 日本")] = function.with_attr("global_symbol", "a <b> 日本")
    return made


def many_sizes() -> IRModule:
    """Return a module whose numbers stand in expressions of every form."""
    n, m = tirx.Var("n", "int64"), tirx.Var("m", "int64")
    number = ir.PrimType("int64")
    values = [
        n // m,
        n % m,
        tirx.Select(n > m, n, m),
        tirx.Cast("int64", n),
        tirx.if_then_else(tirx.And(n > 1, m > 1), n, m),
        tirx.min(n, m),
        tirx.ceildiv(n, m),
        -n,
        n << 1,
        n & m,
        tirx.popcount(n),
    ]
    names = [f"size{index}" for index in range(len(values))]
    variables = [relax.Var(name, number) for name in names]
    bindings = [relax.VarBinding(*pair) for pair in zip(variables, values, strict=True)]
    shape = relax.Var("shape", relax.ShapeType(ndim=3))
    bindings.append(relax.VarBinding(shape, relax.ShapeExpr([n // m, 2, tirx.min(n, m)])))
    return module([n, m], bindings, shape, type_=relax.ShapeType(ndim=3))


VALUES = {
    "tuples": Tuples,
    "casts": Casts,
    "sizes": Sizes,
    "primitives": Primitives,
    "texts": Texts,
    "opaque expressions": opaque,
    "tensor constants": constants,
    "scalar constants": scalars,
    "a scalar used and returned": shared_scalar,
    "a returned constant": returned_constant,
    "types": Types,
    "unusual names": unusual_names,
    "unusual function names": unusual_function_names,
    "expressions of numbers": many_sizes,
}
