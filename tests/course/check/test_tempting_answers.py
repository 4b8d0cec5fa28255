"""Answers that come near: each gets the verdict it deserves, and none a traceback."""

from __future__ import annotations

import bisect
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import IRModule, relax, te, topi
from tvm.relax import transform
from tvm.relax.dpl import is_op, rewrite_call, wildcard
from tvm.script import from_source

import irviz
from irviz.course import check
from irviz.course.check import Mark
from irviz.course.digits import mlp_params
from irviz.course.mlp import MyModule, MyModuleHighLevel, MyModuleMixture, MyModuleStatic
from irviz.course.mlp_symbolic import calling
from irviz.course.te_functions import vector_add
from tests.course.check.test_end_to_end import activation
from tests.course.check.test_find_the_pass import halving
from tests.course.check.test_graph_optimisation import fuse, use_fma
from tests.course.check.test_inside_compile import pipeline
from tests.course.check.test_integration import leaky, linear
from tests.course.check.test_mixed_precision import half_products, store

pytestmark = pytest.mark.worker


MOST_LINES = 10
MOST_CHARACTERS = 220


@dataclass(frozen=True)
class Case:
    """An answer to an exercise, and what the verdict has to say; "" if the answer is right."""

    exercise: str
    name: str
    answer: Any
    given: str = ""


def then(*steps):
    def steps_on(mod):
        for step in steps:
            mod = step(mod)
        return mod

    return steps_on


def in_place(step):
    """Return a pass that puts what a step makes of main into the module that it was given."""

    def change(mod):
        mod.update_func(mod.get_global_var("main"), step(mod)["main"])
        return mod

    return change


def with_the_result_twice(step):
    """Return a pass whose main gives a tuple of two equal arrays."""

    def change(mod):
        made = step(mod)
        main = made["main"]
        builder = relax.BlockBuilder(made)
        body = relax.SeqExpr(main.body.blocks, relax.Tuple([main.body.body] * 2))
        made.update_func(
            made.get_global_var("main"),
            relax.Function(main.params, builder.normalize(body), attrs=main.attrs),
        )
        return made

    return change


# --- leaky_relu ---

LEAKY = """
@T.prim_func(s_tir=True)
def leaky(x: T.handle, y: T.handle):
    n = T.int64()
    X = T.match_buffer(x, (1, n), "float32")
    Y = T.match_buffer(y, (1, n), "float32")
    for i, j in T.grid(1, {extent}):
        with T.sblock("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = {value}
"""


def leaky_source(value, extent="n"):
    return from_source(LEAKY.format(value=value, extent=extent))


NEGATIVE = "X[vi, vj] * T.float32(0.1)"
BRANCH = f"T.if_then_else(X[vi, vj] > T.float32(0), X[vi, vj], {NEGATIVE})"
NO_PARAMETERS = """
@T.prim_func(s_tir=True)
def nothing():
    T.evaluate(0)
"""
INTEGERS = LEAKY.replace("float32", "int32")
ALSO_X = LEAKY + "            X[vi, vj] = T.float32(0)\n"
EACH_SIGN = f"T.max(X[vi, vj], T.float32(0)) + T.min({NEGATIVE}, T.float32(0))"

LEAKY_RELU = (
    Case("leaky_relu", "a branch", leaky_source(BRANCH)),
    Case(
        "leaky_relu",
        "128 and no more",
        leaky_source(f"T.if_then_else(vj < 128, {BRANCH}, T.max(X[vi, vj], T.float32(0)))"),
        "other values",
    ),
    Case(
        "leaky_relu",
        "min instead of max",
        leaky_source(f"T.min(X[vi, vj], {NEGATIVE})"),
        "other values",
    ),
    Case("leaky_relu", "another slope", activation(0.2), "other values"),
    Case("leaky_relu", "NaN", leaky_source("T.log(T.float32(-1))"), "other values"),
    Case("leaky_relu", "a tenth of everything", leaky_source(NEGATIVE), "other values"),
    Case("leaky_relu", "no parameters", from_source(NO_PARAMETERS), "parameters"),
    Case(
        "leaky_relu",
        "integers",
        from_source(INTEGERS.format(extent="n", value="X[vi, vj]")),
        "int32",
    ),
    Case("leaky_relu", "each sign by itself", leaky_source(EACH_SIGN)),
    Case(
        "leaky_relu",
        "X too",
        from_source(ALSO_X.format(extent="n", value=BRANCH)),
        "leaky_relu gives 2 arrays",
    ),
    Case("leaky_relu", "relu0 of the lecture", MyModuleStatic["relu0"], "(1, 128)"),
    Case("leaky_relu", "a module", MyModule, "IRModule"),
    Case("leaky_relu", "a function of Python", leaky, "function"),
)


# --- other_mixture ---


def swapped(mod, **given):
    session = irviz.Session(mod, **given)
    session = session.bind() if given else session
    return session.swap("linear0", "env.linear", node="lv0")


MIXTURE = (
    Case("other_mixture", "with weights", swapped(MyModule, params=mlp_params()).current.module),
    Case("other_mixture", "of fixed sizes", swapped(MyModuleStatic).current.module),
    Case("other_mixture", "a session", swapped(MyModule), "Session"),
    Case("other_mixture", "a stage", swapped(MyModule).current, "Stage"),
    Case("other_mixture", "the lecture's", MyModuleMixture, "main calls linear0 (PrimFunc)"),
    Case(
        "other_mixture",
        "NumPy's linear",
        calling("numpy.linear", "relu0", "linear0"),
        "numpy.linear",
    ),
    Case(
        "other_mixture",
        "the ReLU by the library",
        calling("env.linear", "env.relu", "linear0"),
        "env.relu (library)",
    ),
    Case(
        "other_mixture",
        "all PrimFuncs",
        calling("linear0", "relu0", "linear0"),
        "linear0 (PrimFunc)",
    ),
    Case("other_mixture", "a call of nothing", calling("env.linear", "relu1", "linear0"), "relu1"),
    Case("other_mixture", "operators", MyModuleHighLevel, "main calls nothing"),
    Case("other_mixture", "a PrimFunc", MyModule["relu0"], "PrimFunc"),
)


# --- te_linear, leaky_relu_rule ---


def te_columns(x, w, b):
    k = te.reduce_axis((0, x.shape[1]), name="k")
    product = te.compute(
        (x.shape[0], w.shape[1]), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k), name="product"
    )
    return te.compute(product.shape, lambda i, j: product[i, j] + b[j])


def te_fixed(x, w, b):
    k = te.reduce_axis((0, 3), name="k")
    product = te.compute((1, 4), lambda i, j: te.sum(x[i, k] * w[j, k], axis=k), name="product")
    return te.compute(product.shape, lambda i, j: product[i, j] + b[j])


def te_bias_of_rows(x, w, b):
    product = linear(x, w, te.compute(b.shape, lambda _: te.const(0, "float32")))
    return te.compute(product.shape, lambda i, j: product[i, j] + b[i])


def te_in_float64(x, w, b):
    made = linear(x, w, b)
    return te.compute(made.shape, lambda i, j: made[i, j].astype("float64"))


def te_bias_in_the_sum(x, w, b):
    k = te.reduce_axis((0, x.shape[1]), name="k")
    return te.compute(
        (x.shape[0], w.shape[0]), lambda i, j: te.sum(x[i, k] * w[j, k] + b[j], axis=k)
    )


TE_LINEAR = (
    Case("te_linear", "TOPI's", topi.nn.dense),
    Case("te_linear", "by transposing", lambda x, w, b: topi.matmul(x, topi.transpose(w)) + b),
    Case("te_linear", "a bias for each product", te_bias_in_the_sum, "other values"),
    Case("te_linear", "w not transposed", te_columns, "The layer of"),
    Case("te_linear", "one size", te_fixed, "The layer of 5 inputs"),
    Case("te_linear", "a bias for each row", te_bias_of_rows, "values"),
    Case("te_linear", "a list", lambda *given: [linear(*given)], "list"),
    Case(
        "te_linear",
        "a PrimFunc",
        lambda x, w, b: te.create_prim_func([x, w, b, linear(x, w, b)]),
        "PrimFunc",
    ),
    Case("te_linear", "an operand", lambda *given: given[2], "returned its argument b"),
    Case("te_linear", "double", te_in_float64, "float64"),
    Case("te_linear", "already called", MyModule, "IRModule"),
)


def rule_of(build):
    return lambda builder, operands, module: builder.emit(build(operands[0], module.negative_slope))


def of_relus(x, slope):
    relu, constant = relax.op.nn.relu, relax.const(slope, "float32")
    return relax.op.subtract(relu(x), relax.op.multiply(constant, relu(relax.op.negative(x))))


def keeps_the_first_slope(builder, operands, module):
    module.negative_slope = 0.1
    return builder.emit(relax.op.nn.leakyrelu(operands[0], module.negative_slope))


def of_one_size(builder, operands, module):
    slope = module.negative_slope
    return builder.emit_te(
        lambda x: te.compute((1, 128), lambda i, j: te.max(x[i, j], x[i, j] * slope)), operands[0]
    )


LEAKY_RULE = (
    Case("leaky_relu_rule", "of two ReLUs", rule_of(of_relus)),
    Case(
        "leaky_relu_rule",
        "an expression",
        lambda builder, operands, module: builder.emit_te(
            topi.nn.leaky_relu, operands[0], module.negative_slope
        ),
    ),
    Case("leaky_relu_rule", "a changed module", keeps_the_first_slope, "With a slope of 0.5"),
    Case("leaky_relu_rule", "one size", of_one_size, "the shape (1, 128)"),
    Case(
        "leaky_relu_rule",
        "the end of main",
        lambda builder, operands, _: builder.emit_func_output(operands[0]),
        "no block is being built",
    ),
    Case("leaky_relu_rule", "the operator", rule_of(relax.op.nn.leakyrelu)),
    Case(
        "leaky_relu_rule",
        "not emitted",
        lambda _, operands, module: relax.op.nn.leakyrelu(operands[0], module.negative_slope),
        "Call",
    ),
    Case(
        "leaky_relu_rule",
        "min",
        rule_of(
            lambda x, slope: relax.op.minimum(
                x, relax.op.multiply(x, relax.const(slope, "float32"))
            )
        ),
        "other values",
    ),
    Case(
        "leaky_relu_rule",
        "the default slope",
        rule_of(lambda x, _: relax.op.nn.leakyrelu(x)),
        "With a slope of 0.1",
    ),
    Case("leaky_relu_rule", "an operand", lambda _, operands, __: operands[0], "other values"),
    Case(
        "leaky_relu_rule",
        "two arguments",
        lambda builder, operands: (builder, operands),
        "TypeError",
    ),
    Case(
        "leaky_relu_rule",
        "another variable",
        lambda *_: relax.Var("y", relax.TensorType((2, 3), "float32")),
        "y is not defined",
    ),
    Case("leaky_relu_rule", "a module", MyModule, "IRModule"),
)


# --- pure_calls, fused_pipeline ---

FUSED = ("LegalizeOps", "AnnotateTIROpPattern", "FuseOps", "FuseTIR")


def lowered():
    return transform.LegalizeOps()(MyModuleHighLevel)


def rewritten():
    steps = (transform.ToNonDataflow, transform.RemovePurityChecking, transform.CallTIRRewrite)
    return then(*(step() for step in steps))(lowered())


def with_no_relu(mod):
    a = wildcard()
    main = rewrite_call(is_op("relax.nn.relu")(a), lambda _, found: found[a], mod["main"])
    return IRModule({"main": main})


def with_another_relu(mod):
    """Return the module with a PrimFunc for relu that gives the lesser of a number and 0."""
    lesser = from_source(LESSER).with_attr("global_symbol", "relu")
    return IRModule({g: lesser if g.name_hint == "relu" else f for g, f in mod.functions.items()})


LESSER = """
@T.prim_func(s_tir=True)
def relu(X: T.Buffer((1, 128), "float32"), Y: T.Buffer((1, 128), "float32")):
    for i, j in T.grid(1, 128):
        with T.sblock("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = T.min(X[vi, vj], T.float32(0))
"""
PURE = (
    Case("pure_calls", "no dataflow block", transform.ToNonDataflow()(lowered())),
    Case("pure_calls", "another ReLU", with_another_relu(lowered()), "other values"),
    Case("pure_calls", "a session", irviz.Session(lowered()), "Session"),
    Case("pure_calls", "the lecture's", MyModuleStatic, "3 relax.call_tir"),
    Case("pure_calls", "annotated too", transform.AnnotateTIROpPattern()(lowered())),
    Case("pure_calls", "fused", pipeline(*FUSED)(MyModuleHighLevel), "call_tir"),
    Case("pure_calls", "rewritten", rewritten(), "7 relax.builtin.alloc_tensor"),
    Case("pure_calls", "the function", lowered()["main"], "Function"),
    Case("pure_calls", "a pass", transform.LegalizeOps(), "is ModulePass"),
    Case("pure_calls", "the label", "LegalizeOps", "str"),
)
PIPELINE = (
    Case(
        "fused_pipeline",
        "folded too",
        pipeline("LegalizeOps", "AnnotateTIROpPattern", "FoldConstant", "FuseOps", "FuseTIR"),
    ),
    Case("fused_pipeline", "no ReLU", then(with_no_relu, pipeline(*FUSED)), "other values"),
    Case(
        "fused_pipeline",
        "no ReLU, in place",
        then(in_place(with_no_relu), pipeline(*FUSED)),
        "other values",
    ),
    Case(
        "fused_pipeline",
        "a tuple",
        with_the_result_twice(pipeline(*FUSED)),
        "main gives 2 arrays",
    ),
    Case("fused_pipeline", "TVM's own", relax.get_pipeline("zero")),
    Case("fused_pipeline", "a ready module", lambda _: MyModuleStatic, "another network"),
    Case(
        "fused_pipeline",
        "its own result",
        lambda _: pipeline(*FUSED)(MyModuleHighLevel),
        "another network",
    ),
    Case("fused_pipeline", "lowered only", pipeline("LegalizeOps"), "7 relax.call_tir"),
    Case(
        "fused_pipeline",
        "annotated too late",
        pipeline("LegalizeOps", "FuseOps", "AnnotateTIROpPattern", "FuseTIR"),
        "7 relax.call_tir",
    ),
    Case("fused_pipeline", "no main", lambda _: IRModule(), "main"),
    Case("fused_pipeline", "a list of passes", [transform.LegalizeOps()], "list"),
    Case("fused_pipeline", "a module", MyModuleStatic, "IRModule"),
)


# --- half_weights, exact_sums ---


def outlined(mod):
    """Move each matmul of main into a function of its own."""
    a, b = wildcard(), wildcard()
    return transform.FuseOpsByPattern([("product", is_op("relax.matmul")(a, b))])(mod)


def on_ready(step):
    """Return a function that ignores its module, and transforms the MLP of the course."""
    ready = transform.BindParams("main", mlp_params())(MyModuleHighLevel)
    return lambda _: step(ready)


EXACT = half_products(128)


@relax.expr_functor.mutator
class HalfMatrices(relax.PyExprMutator):
    def visit_generic_const_(self, constant):
        if len(constant.ty.shape) < 2:
            return constant
        half = relax.const(constant.value.numpy(), "float16")
        return self.builder_.emit(relax.op.astype(half, "float32"))


@tvm.transform.module_pass(opt_level=0, name="HalfPass")
class HalfPass:
    def transform_module(self, mod, _context):
        return store()(mod)


HALF = (
    Case("half_weights", "a pass", HalfPass()),
    Case("half_weights", "a pass that is not called", HalfPass, "the class"),
    Case("half_weights", "in place", in_place(store())),
    Case("half_weights", "zeros in place", in_place(store(scale=0)), "differ by 100.0%"),
    Case("half_weights", "nothing returned", lambda mod: store()(mod) and None, "gave None"),
    Case("half_weights", "a tuple", with_the_result_twice(store()), "main gives 2 arrays"),
    Case(
        "half_weights",
        "matrices only",
        lambda mod: IRModule({"main": HalfMatrices(mod).visit_expr(mod["main"])}),
        "float16, float32, float16, float32",
    ),
    Case("half_weights", "a product in a function of its own", then(store(), outlined)),
    Case("half_weights", "lowered after it", then(store(), transform.LegalizeOps())),
    Case("half_weights", "products of float16", then(store(), half_products(10, 128)), "float16"),
    Case("half_weights", "casts folded again", then(store(), transform.FoldConstant()), "float32"),
    Case("half_weights", "operands of a product", EXACT, "float32"),
    Case("half_weights", "another MLP", on_ready(store()), "Given other weights"),
    Case("half_weights", "weights that are zero", store(scale=0), "of the largest"),
    Case("half_weights", "no main", lambda _: IRModule(), "gone"),
    Case("half_weights", "a module", MyModule, "IRModule"),
    Case("half_weights", "a pair", lambda mod: (store()(mod), 1), "tuple"),
)
SUMS = (
    Case("exact_sums", "casts of weights folded", then(EXACT, transform.FoldConstant())),
    Case("exact_sums", "half weights too", then(store(), EXACT)),
    Case("exact_sums", "in place", in_place(EXACT)),
    Case("exact_sums", "a tuple", with_the_result_twice(EXACT), "main gives 2 arrays"),
    Case("exact_sums", "the other layer", half_products(10), "first layer takes float32"),
    Case("exact_sums", "a product in a function of its own", then(EXACT, outlined)),
    Case(
        "exact_sums",
        "float16 products in a function of their own",
        then(transform.ToMixedPrecision(out_dtype="float16"), outlined),
        "gives float16",
    ),
    Case("exact_sums", "only moved", outlined, "takes float32 and float32"),
    Case("exact_sums", "lowered", then(EXACT, transform.LegalizeOps()), "0 matmul"),
    Case("exact_sums", "weights only", store(back="float16"), "same datatype"),
    Case("exact_sums", "another MLP", on_ready(EXACT), "Given other weights"),
    Case("exact_sums", "a module", MyModule, "IRModule"),
)


# --- multiply_add, fuse_unless_shared ---


def use_fma_anywhere(*operators, clean=True):
    """Rewrite both orders, of any of these operators as if it were an addition."""

    def rewrite(mod):
        function = mod["main"]
        for name in operators:
            a, b, c = wildcard(), wildcard(), wildcard()
            product = is_op("relax.multiply")(a, b)
            for operands in ((product, c), (c, product)):
                function = rewrite_call(
                    is_op(name)(*operands),
                    lambda _, found, a=a, b=b, c=c: relax.op.ewise_fma(*map(found.get, (a, b, c))),
                    function,
                )
        return IRModule({"main": relax.analysis.remove_all_unused(function) if clean else function})

    return rewrite


@relax.expr_functor.mutator
class DeadFma(relax.PyExprMutator):
    def visit_call_(self, call):
        call = self.visit_expr_post_order(call)
        if call.op.name != "relax.add":
            return call
        for first, second in (call.args, [*call.args][::-1]):
            product = self.lookup_binding(first)
            if isinstance(product, relax.Call) and product.op.name == "relax.multiply":
                return relax.op.ewise_fma(*product.args, second)
        return call


@relax.expr_functor.mutator
class AnyFma(relax.PyExprMutator):
    def visit_call_(self, call):
        call = self.visit_expr_post_order(call)
        for first, second in (call.args, [*call.args][::-1]):
            value = self.lookup_binding(first)
            if call.op.name == "relax.add" and isinstance(value, relax.Call):
                return relax.op.ewise_fma(*value.args, second)
        return call


def mutated(mutator, clean):
    def mutate(mod):
        function = mutator(mod).visit_expr(mod["main"])
        return IRModule({"main": relax.analysis.remove_all_unused(function) if clean else function})

    return mutate


def returns_nothing(mod):
    builder = relax.BlockBuilder()
    parameters = [relax.Var(each.name, each.ty) for each in mod["main"].params]
    with builder.function("main", parameters):
        builder.emit_func_output(relax.Tuple([]))
    return builder.get()


FMA = (
    Case("multiply_add", "factors exchanged", use_fma("bac")),
    Case("multiply_add", "in place", in_place(use_fma("abc"))),
    Case("multiply_add", "a tuple", with_the_result_twice(use_fma("abc")), "main gives 2 arrays"),
    Case("multiply_add", "a mutator", mutated(DeadFma, clean=True)),
    Case(
        "multiply_add",
        "the dead product",
        mutated(DeadFma, clean=False),
        "x * y + z has 1 multiply",
    ),
    Case("multiply_add", "any operand", mutated(AnyFma, clean=True), "x + y + z"),
    Case(
        "multiply_add",
        "differences too",
        use_fma_anywhere("relax.add", "relax.subtract"),
        "x * y - z",
    ),
    Case("multiply_add", "operands exchanged", use_fma("cab"), "other values"),
    Case("multiply_add", "lowered", lambda mod: transform.LegalizeOps()(mod), "0 ewise_fma"),
    Case("multiply_add", "nothing returned", returns_nothing, "main gives no array"),
    Case("multiply_add", "a class", DeadFma, "DeadFma"),
    Case("multiply_add", "a function", lambda mod: mod["main"], "Function"),
    Case("multiply_add", "no main", lambda _: IRModule(), "main"),
    Case("multiply_add", "a module", MyModule, "IRModule"),
)


UNLESS_SHARED = (
    Case(
        "fuse_unless_shared",
        "a ready module without weights",
        lambda _: fuse("linear_relu")(MyModuleHighLevel),
        "has other values",
    ),
    Case(
        "fuse_unless_shared",
        "main only, in place",
        in_place(fuse("linear_relu")),
        "not well-formed",
    ),
    Case(
        "fuse_unless_shared",
        "a tuple",
        with_the_result_twice(fuse("linear_relu")),
        "main gives 2 arrays",
    ),
    Case("fuse_unless_shared", "TVM's pass", fuse("linear_relu", "linear")),
    Case(
        "fuse_unless_shared",
        "nothing fused",
        lambda mod: mod,
        "functions beside main have: nothing",
    ),
    Case("fuse_unless_shared", "a ready module", on_ready(fuse("linear_relu")), "parameters"),
    Case(
        "fuse_unless_shared", "the second layer alone", fuse("linear"), "functions beside main have"
    ),
    Case("fuse_unless_shared", "lowered", pipeline("LegalizeOps"), "nothing"),
    Case("fuse_unless_shared", "nothing returned", returns_nothing, "gives no array"),
    Case("fuse_unless_shared", "no main", lambda _: IRModule(), "main"),
    Case("fuse_unless_shared", "a module", MyModule, "IRModule"),
)


# --- first_wrong_pass, small_program ---


def reads_defaults(_, holds):
    return holds.__defaults__[-1]


def reads_state(_, holds):
    return max(value for value in vars(holds.__self__).values() if isinstance(value, int))


def by_floats(count, holds):
    low, high = 0, count
    while high - low > 1:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return high


def asks_the_ends(count, holds):
    if not holds(0) or holds(count):
        raise ValueError
    return halving(count, holds)


def never_ends(_, holds):
    while holds(0):
        pass


def before_it(count, holds):
    return halving(count, holds) - 1


def by_the_library(count, holds):
    return bisect.bisect_left(range(1, count), True, key=lambda k: not holds(k=k)) + 1


def in_thirds(count, holds):
    low, high = 0, count
    while high - low > 1:
        middle = low + max(1, (high - low) // 3)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return high


BISECTION = (
    Case("first_wrong_pass", "Python's bisect", by_the_library),
    Case("first_wrong_pass", "60 passes", lambda _, holds: halving(60, holds), "For 1 pass holds"),
    Case("first_wrong_pass", "thirds", in_thirds, "For 7 passes holds was asked 5 times"),
    Case("first_wrong_pass", "a float", lambda *given: float(halving(*given)), "no whole number"),
    Case("first_wrong_pass", "the defaults", reads_defaults, "raised TypeError"),
    Case("first_wrong_pass", "the state", reads_state, "the answer gave 2"),
    Case("first_wrong_pass", "halves of a number", by_floats, "whole number"),
    Case("first_wrong_pass", "the ends too", asks_the_ends, "asked"),
    Case("first_wrong_pass", "the last that is right", before_it, "the answer gave 0"),
    Case("first_wrong_pass", "the last", lambda count, _: count, "the answer gave 2"),
    Case("first_wrong_pass", "a list", lambda count, holds: [halving(count, holds)], "list: [1]"),
    Case("first_wrong_pass", "an array", lambda *_: np.arange(3), "array"),
    Case(
        "first_wrong_pass", "NumPy's number", lambda count, holds: np.int64(halving(count, holds))
    ),
    Case("first_wrong_pass", "no end", never_ends, "no end"),
    Case("first_wrong_pass", "the number", 3, "int"),
    Case("first_wrong_pass", "a module", MyModule, "IRModule"),
)


def tiny(build, name="main"):
    """Return a module of what is built of two parameters."""
    builder = relax.BlockBuilder()
    x, b = (relax.Var(name, relax.TensorType((2,), "float32")) for name in "xb")
    with builder.function(name, [x, b]):
        with builder.dataflow():
            out = builder.emit_output(builder.normalize(build(x, b)))
        builder.emit_func_output(out)
    return builder.get()


def relu_of_sum(x, b):
    return relax.op.nn.relu(relax.op.add(x, b))


def relu_of_constants(*_):
    return relu_of_sum(*(relax.const([1.0, 2.0], "float32") for _ in "xb"))


UNCHANGED = "computes what it did before"
SMALL = (
    Case("small_program", "of itself", tiny(lambda x, _: relu_of_sum(x, x))),
    Case("small_program", "no main", tiny(relax.op.add, "other"), "ends with an error"),
    Case("small_program", "not a number", tiny(lambda x, _: relax.op.log(x)), UNCHANGED),
    Case(
        "small_program",
        "what cannot be built",
        tiny(lambda x, b: relax.op.ewise_fma(x, x, b)),
        "could not be built",
    ),
    Case("small_program", "a session", irviz.Session(tiny(relu_of_sum)), "Session"),
    Case("small_program", "a ReLU of a sum", tiny(relu_of_sum)),
    Case(
        "small_program",
        "a sum of a ReLU",
        tiny(lambda x, b: relax.op.add(relax.op.nn.relu(x), b)),
        UNCHANGED,
    ),
    Case("small_program", "never negative", tiny(relu_of_constants), UNCHANGED),
    Case(
        "small_program",
        "three bindings",
        tiny(lambda x, b: relu_of_sum(relax.op.add(x, x), b)),
        "3 bindings",
    ),
    Case(
        "small_program",
        "PrimFuncs alone",
        IRModule({"relu0": MyModule["relu0"]}),
        "not a Relax function",
    ),
    Case("small_program", "an empty module", IRModule(), "it is empty"),
    Case("small_program", "a function", MyModuleHighLevel["main"], "Function"),
)


# --- loop_order, batch_schedule ---


def rows(sch, *, split=False, decompose=False):
    i, j, k = sch.get_loops(sch.get_sblock("Y"))
    if split:
        j0, j = sch.split(j, factors=[1, None])
        sch.reorder(i, j0, k, j)
        return
    sch.reorder(i, k, j)
    if decompose:
        sch.decompose_reduction(sch.get_sblock("Y"), k)


def of_c(sch):
    i, j = sch.get_loops(sch.get_sblock("C"))
    sch.reorder(j, i)


def fused(sch):
    i, j, k = sch.get_loops(sch.get_sblock("Y"))
    sch.reorder(i, k, j)
    sch.fuse(i, k)


def split_rows(sch):
    i, j, k = sch.get_loops(sch.get_sblock("Y"))
    j0, j1 = sch.split(j, factors=[None, 16])
    sch.reorder(i, k, j0, j1)


def block_of_rows(sch):
    rows(sch)
    sch.blockize(sch.get_loops(sch.get_sblock("Y"))[2])


def there_and_back(sch):
    rows(sch)
    i, k, j = sch.get_loops(sch.get_sblock("Y"))
    sch.reorder(i, j, k)


def inner_two(sch):
    _, j, k = sch.get_loops("Y")
    sch.reorder(k, j)


ORDER = (
    Case("loop_order", "by the block's name", inner_two),
    Case("loop_order", "there and back", there_and_back, "vi, vj, vk"),
    Case("loop_order", "an old name", lambda sch: sch.get_block("Y"), "no primitive 'get_block'"),
    Case("loop_order", "a schedule", tvm.s_tir.Schedule(MyModule), "Schedule"),
    Case("loop_order", "decomposed too", lambda sch: rows(sch, decompose=True)),
    Case(
        "loop_order",
        "a loop of one step",
        lambda sch: rows(sch, split=True),
        "the 4 loops of Y run over vi, vj, vk, vj",
    ),
    Case("loop_order", "j in parts", split_rows, "vi, vk, vj, vj"),
    Case("loop_order", "fused", fused, "vi and vk, vj"),
    Case("loop_order", "the other block", of_c, "vi, vj, vk"),
    Case(
        "loop_order",
        "rfactor",
        lambda sch: sch.rfactor(sch.get_loops(sch.get_sblock("Y"))[2], 0),
        "vi, vj, vk",
    ),
    Case("loop_order", "a block of blocks", block_of_rows, "run over vi_o, vk_o"),
    Case("loop_order", "called", MyModule, "IRModule"),
)


def batch(*, rows=None, columns=None, last=False):
    """Return a schedule that is right, but for a factor of a split, and which part is marked."""

    def schedule(sch):
        matmul = sch.get_sblock("matmul")
        n, i, j, k = sch.get_loops(matmul)
        sch.reorder(k, j)
        outer = n
        if rows is not None:
            outer, n = sch.split(n, factors=rows)
        inner = j
        if columns is not None:
            j, inner = sch.split(j, factors=columns)
        sch.reverse_compute_at(sch.get_sblock("relu"), outer)
        sch.parallel(i if last else outer)
        sch.vectorize(inner)
        sch.decompose_reduction(matmul, k)

    return schedule


def of_rows(sch):
    """Make one parallel loop of the batches and the rows."""
    matmul = sch.get_sblock("matmul")
    n, i, j, k = sch.get_loops(matmul)
    sch.reorder(k, j)
    outer = sch.fuse(n, i)
    sch.reverse_compute_at(sch.get_sblock("relu"), outer)
    sch.parallel(outer)
    sch.vectorize(j)
    sch.decompose_reduction(matmul, k)


BATCH = (
    Case("batch_schedule", "rows of all batches", of_rows),
    Case(
        "batch_schedule",
        "for a GPU",
        lambda sch: sch.bind(sch.get_loops("matmul")[0], "blockIdx.x"),
        "bound to blockIdx.x",
    ),
    Case("batch_schedule", "eight columns", batch(columns=[None, 8])),
    Case("batch_schedule", "pairs of batches", batch(rows=[2, None])),
    Case(
        "batch_schedule",
        "parallel over one step",
        batch(rows=[1, None]),
        "The parallel loop n_0 has one step",
    ),
    Case(
        "batch_schedule",
        "vectors of one",
        batch(columns=[None, 1]),
        "The vectorized loop j_1 has one step",
    ),
    Case("batch_schedule", "rows in parallel", batch(last=True), "The loops of matmul are"),
    Case(
        "batch_schedule", "a block that is not there", lambda sch: sch.get_sblock("Y"), "get-block"
    ),
    Case(
        "batch_schedule",
        "one primitive",
        lambda sch: sch.parallel(sch.get_loops(sch.get_sblock("matmul"))[0]),
        "The loops of matmul are",
    ),
    Case(
        "batch_schedule",
        "compute_inline",
        lambda sch: sch.compute_inline(sch.get_sblock("matmul")),
        "is not legal here",
    ),
    Case("batch_schedule", "called", MyModule, "IRModule"),
)

CASES = (
    *LEAKY_RELU,
    *MIXTURE,
    *TE_LINEAR,
    *LEAKY_RULE,
    *PURE,
    *PIPELINE,
    *HALF,
    *SUMS,
    *FMA,
    *UNLESS_SHARED,
    *BISECTION,
    *SMALL,
    *ORDER,
    *BATCH,
)


# --- Every exercise ---


class CannotBeShown:
    def __repr__(self):
        raise ValueError


def raises(*_):
    raise ValueError("a long story " * 100)


def leaves(*_):
    sys.exit("bye")


EXERCISES = [name for name in vars(check) if callable(vars(check)[name]) and name.islower()]
NEVER_RIGHT = (
    ("a class", CannotBeShown),
    ("cannot be shown", CannotBeShown()),
    ("raises", raises),
    ("leaves", leaves),
    ("a PrimFunc", vector_add()),
    ("its input", lambda *given: given[0]),
    ("its last input", lambda *given: given[-1]),
)


@pytest.mark.parametrize("name", EXERCISES)
@pytest.mark.parametrize("answer", NEVER_RIGHT, ids=lambda answer: answer[0])
def test_what_is_no_answer_to_any_exercise_is_told_in_two_short_sentences(name, answer):
    verdict = getattr(check, name)(answer[1])
    assert verdict.mark is Mark.WRONG, verdict
    assert 0 < len(verdict.given) <= MOST_CHARACTERS
    assert 0 < len(verdict.hint) <= MOST_CHARACTERS


def test_each_exercise_has_an_answer_that_is_right_in_another_way_and_ten_that_are_marked():
    for name in {case.exercise for case in CASES}:
        marked = [case for case in CASES if case.exercise == name]
        assert len(marked) >= 10, name
        assert any(not case.given for case in marked), name


def test_no_answer_changes_the_modules_of_the_course():
    before = IRModule(dict(MyModuleHighLevel.functions), MyModuleHighLevel.attrs)
    for name in ("fused_pipeline", "fuse_unless_shared", "half_weights", "exact_sums"):
        getattr(check, name)(in_place(with_no_relu))
    assert tvm_ffi.structural_equal(MyModuleHighLevel, before)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.exercise}: {case.name}")
def test_an_answer_gets_the_verdict_it_deserves(case):
    verdict = getattr(check, case.exercise)(case.answer)
    assert verdict.mark is (Mark.WRONG if case.given else Mark.RIGHT), verdict
    assert case.given in verdict.given
    assert len(verdict.given) <= MOST_CHARACTERS >= len(verdict.hint)
    assert len(repr(verdict).splitlines()) <= MOST_LINES, "no program is printed"
