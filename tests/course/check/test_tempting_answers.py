"""Answers that come near: each gets the verdict it deserves, and none a traceback."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tvm import IRModule, relax, te
from tvm.relax import transform
from tvm.relax.dpl import is_op, rewrite_call, wildcard
from tvm.script import from_source

from irviz.course import check
from irviz.course.check import Mark
from irviz.course.mlp import MyModule, MyModuleHighLevel, MyModuleStatic
from irviz.course.mlp_symbolic import calling
from tests.course.check.test_end_to_end import activation
from tests.course.check.test_find_the_pass import halving
from tests.course.check.test_graph_optimisation import fuse, use_fma
from tests.course.check.test_inside_compile import pipeline
from tests.course.check.test_integration import leaky, linear
from tests.course.check.test_mixed_precision import half_products, store

pytestmark = pytest.mark.worker


MOST_LINES = 10


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
    Case("leaky_relu", "a module", MyModule, "IRModule"),
    Case("leaky_relu", "a function of Python", leaky, "function"),
)


# --- other_mixture ---

MIXTURE = (
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


TE_LINEAR = (
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
    Case("te_linear", "an operand", lambda *given: given[2], "could not be built"),
    Case("te_linear", "double", te_in_float64, "float64"),
    Case("te_linear", "already called", MyModule, "IRModule"),
)


def rule_of(build):
    return lambda builder, operands, module: builder.emit(build(operands[0], module.negative_slope))


LEAKY_RULE = (
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


PURE = (
    Case("pure_calls", "annotated too", transform.AnnotateTIROpPattern()(lowered())),
    Case("pure_calls", "fused", pipeline(*FUSED)(MyModuleHighLevel), "call_tir"),
    Case("pure_calls", "rewritten", rewritten(), "7 relax.builtin.alloc_tensor"),
    Case("pure_calls", "the function", lowered()["main"], "Function"),
    Case("pure_calls", "a pass", transform.LegalizeOps(), "gave ModulePass"),
    Case("pure_calls", "the label", "LegalizeOps", "str"),
)
PIPELINE = (
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
    from irviz.course.digits import mlp_params

    ready = transform.BindParams("main", mlp_params())(MyModuleHighLevel)
    return lambda _: step(ready)


EXACT = half_products(128)
HALF = (
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


BISECTION = (
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


def tiny(build):
    """Return a module of what is built of two parameters."""
    builder = relax.BlockBuilder()
    x, b = (relax.Var(name, relax.TensorType((2,), "float32")) for name in "xb")
    with builder.function("main", [x, b]):
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
    Case("small_program", "a ReLU of a sum", tiny(relu_of_sum)),
    Case("small_program", "a ReLU alone", tiny(lambda x, _: relax.op.nn.relu(x)), UNCHANGED),
    Case("small_program", "a sum alone", tiny(relax.op.add), UNCHANGED),
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


ORDER = (
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


BATCH = (
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


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.exercise}: {case.name}")
def test_an_answer_gets_the_verdict_it_deserves(case):
    verdict = getattr(check, case.exercise)(case.answer)
    assert verdict.mark is (Mark.WRONG if case.given else Mark.RIGHT), verdict
    assert case.given in verdict.given
    assert len(repr(verdict).splitlines()) <= MOST_LINES, "no program is printed"
