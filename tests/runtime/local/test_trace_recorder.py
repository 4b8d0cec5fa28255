# ruff: noqa: N805, RET504
# TVMScript is read by TVM, not run by Python: it has its own rules for names.
"""A trace has the value at every binding that was reached, exactly, and its time."""

import time

import numpy as np
import pytest
import tvm
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tvm import ir, relax
from tvm.script import ir as I  # noqa: N812
from tvm.script import relax as R  # noqa: N812

from irviz.course.digits import digits, mlp_params
from irviz.course.mlp import MODULES, MyModule
from irviz.errors import InputError, RunError
from irviz.ir.node_ids import identify
from irviz.model.graph.graph import inlined_id
from irviz.model.runs.execution_trace import Trace
from irviz.runtime.run import CallInputs, RunConfig, TraceRequest, run
from irviz.transforms.kernels import library

pytestmark = pytest.mark.build

HERE = RunConfig(isolate=False)
PARAMS, DIGITS = mlp_params(), digits()


def trace(mod, function="main", *, wish=None, config=HERE, **given_) -> Trace:
    result = run(mod, function, CallInputs(**given_), trace=wish or TraceRequest(), config=config)
    assert result.trace is not None
    return result.trace


def array(found, node):
    (kept,) = found[node].value.arrays
    return kept


OPERATIONS = {
    "relax.add": lambda a, b: a + b,
    "relax.subtract": lambda a, b: a - b,
    "relax.multiply": lambda a, b: a * b,
    "relax.matmul": lambda a, b: a @ b,
    "relax.concat": np.concatenate,
    "relax.strided_slice": lambda a, *_: a[:2],
    "relax.call_tir": lambda _, inputs: inputs[0] + inputs[1],
    "relax.call_dps_packed": lambda _, inputs: np.maximum(inputs[0], 0),
}


class Evaluator:
    """A second, slow way to run Relax: NumPy, binding by binding, for the operators used here."""

    def __init__(self, mod):
        self.mod, self.values = mod, {}

    def call(self, function, arguments, prefix=""):
        frame = _Frame(self, function, prefix)
        for param, argument in zip(function.params, arguments, strict=True):
            frame.keep(param, argument)
        return frame.body(function.body)


class _Frame:
    """One call of a function."""

    def __init__(self, evaluator, function, prefix):
        self.evaluator, self.prefix = evaluator, prefix
        self.ids, self.here = identify(function), {}

    def path(self, var):
        return inlined_id(self.prefix, self.ids[var]) if self.prefix else self.ids[var]

    def keep(self, var, value):
        self.here[var] = self.evaluator.values[self.path(var)] = value

    def body(self, seq):
        for block in seq.blocks:
            for binding in block.bindings:
                self.keep(binding.var, self.of(binding.value, binding.var))
        return self.of(seq.body)

    def of(self, expr, var=None):
        match expr:
            case ir.Var():
                return self.here[expr]
            case ir.GenericConst():
                return expr.value.numpy()
            case relax.If():
                return self.body(expr.true_branch if self.of(expr.cond) else expr.false_branch)
            case ir.Tuple():
                return tuple(self.of(one) for one in expr.fields)
            case relax.TupleGetItem():
                return self.of(expr.tuple_value)[expr.index]
            case ir.Call(op=ir.GlobalVar()):
                arguments = [self.of(one) for one in expr.args]
                return self.evaluator.call(self.evaluator.mod[expr.op], arguments, self.path(var))
            case ir.Call():
                return OPERATIONS[expr.op.name](*(self.of(one) for one in expr.args[:]))
        return None


def leaves(value):
    if isinstance(value, tuple):
        return [leaf for item in value for leaf in leaves(item)]
    return [value]


def assert_equal(found: Trace, expected):
    assert set(found.visits) == set(expected)
    for node, value in expected.items():
        kept = found[node].value.arrays
        assert len(kept) == len(leaves(value)), node
        for one, wanted in zip(kept, leaves(value), strict=True):
            np.testing.assert_allclose(one, wanted, rtol=1e-5, atol=1e-5, err_msg=node)


@I.ir_module
class Paths:
    """Branches, one of them with a call, and a function that is called twice and calls another."""

    @R.function
    def inner(u: R.Tensor((2, 2), "float32")) -> R.Tensor((2, 2), "float32"):
        with R.dataflow():
            v = R.add(u, R.const(1.0, "float32"))
            w = R.multiply(v, v)
            R.output(w)
        return w

    @R.function
    def outer(x: R.Tensor((2, 2), "float32")) -> R.Tensor((2, 2), "float32"):
        cls = Paths
        y = cls.inner(x)
        z = R.subtract(y, x)
        return z

    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor((2, 2), "float32")):
        cls = Paths
        first = cls.outer(x)
        if c:
            a = R.add(first, x)
            chosen = cls.outer(a)
        else:
            b = R.subtract(first, x)
            chosen = R.multiply(b, b)
        both = (first, (chosen, x))
        last = R.matmul(chosen, first)
        return (last, both)


@pytest.mark.parametrize("taken", [True, False])
@pytest.mark.parametrize("place", [HERE, RunConfig()], ids=["here", "in the worker"])
def test_branches_and_called_functions_have_their_values(taken, place):
    x = np.array([[1, 2], [3, 4]], "float32")
    inputs = {"c": np.array(taken), "x": x}
    found = trace(Paths, inputs=inputs, config=place)
    oracle = Evaluator(Paths)
    oracle.call(Paths["main"], [inputs["c"], x])
    assert_equal(found, oracle.values)
    assert ("a" in found.visits) == taken
    assert ("b" in found.visits) != taken
    deepest = inlined_id(inlined_id("first", "y"), "w")
    np.testing.assert_array_equal(array(found, deepest), (x + 1) ** 2)


def test_what_was_not_reached_is_said_when_it_is_asked_for():
    found = trace(Paths, inputs={"c": np.array(True), "x": np.zeros((2, 2), "float32")})
    with pytest.raises(KeyError, match="stands in a branch that was not taken"):
        found["b"]


@settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_random_programs_have_the_values_that_numpy_finds(modules, data):
    mod = data.draw(modules.programs())
    try:
        found = trace(mod)
    except RunError:  # a library function that is not there, or takes another number of tensors
        assume(False)
    inputs = [array(found, identify(mod["main"])[param]) for param in mod["main"].params]
    oracle = Evaluator(mod)
    oracle.call(mod["main"], inputs)
    assert_equal(found, oracle.values)


@pytest.mark.parametrize("name", MODULES)
def test_the_courses_modules_have_the_values_that_numpy_finds(name):
    x = DIGITS.images[:3]
    found = trace(MODULES[name], inputs=x, params=PARAMS, wish=TraceRequest(case=2))
    hidden = x[2:3] @ PARAMS["w0"].T + PARAMS["b0"]
    values = [visit.value.arrays[0] for visit in found.visits.values()]
    scores = np.maximum(hidden, 0) @ PARAMS["w1"].T + PARAMS["b1"]
    for wanted in (hidden, np.maximum(hidden, 0), scores):
        there = [one for one in values if one.shape == wanted.shape]
        assert any(np.allclose(one, wanted, rtol=1e-4, atol=1e-4) for one in there)
    assert found.case == 2


def test_after_fusion_what_remains_has_its_values():
    mod = tvm.transform.Sequential(
        [
            relax.transform.LegalizeOps(),
            relax.transform.AnnotateTIROpPattern(),
            relax.transform.FuseOps(),
            relax.transform.FuseTIR(),
        ]
    )(MODULES["MyModuleHighLevel"])
    given_ = {"inputs": DIGITS.images[:1], "params": PARAMS}
    before, after = trace(MODULES["MyModuleHighLevel"], **given_), trace(mod, **given_)
    last = list(before.visits)[-1]
    assert 4 < len(after.visits) < len(before.visits)
    np.testing.assert_allclose(
        array(after, list(after.visits)[-1]), array(before, last), rtol=1e-5, atol=1e-5
    )


def test_the_traced_run_gives_the_outputs_of_the_untraced_one_bit_by_bit():
    result = run(
        MyModule,
        inputs=CallInputs(DIGITS.images[:1], PARAMS),
        trace=TraceRequest(),
        config=RunConfig(isolate=False),
    )
    np.testing.assert_array_equal(array(result.trace, "out"), result.outputs[0][0])


def test_a_buffer_that_is_written_again_keeps_the_value_that_it_had():
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType([4], "float32"))
    with builder.function("main", [x]):
        y = builder.emit(relax.op.add(x, relax.const(1.0)), "y")
        for _ in range(4):  # TVM puts each into the storage of the one before the last
            y = builder.emit(relax.op.add(y, relax.const(1.0)), "y")
        builder.emit_func_output(y)
    found = trace(builder.get(), inputs=np.zeros(4, "float32"))
    assert [float(v.value.arrays[0][0]) for v in found.visits.values()] == [0, 1, 2, 3, 4, 5]


def test_a_function_that_calls_itself_has_the_last_values_and_how_often(modules):
    found = trace(modules.TwoOutputs)
    assert {visit.count for visit in found.visits.values()} == {1}


def test_a_value_that_is_too_large_is_summarised_and_fetched_when_it_is_wanted():
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType([1000], "float32"))
    with builder.function("main", [x]):
        wide = builder.emit(relax.op.broadcast_to(x, (100, 1000)), "wide")
        builder.emit_func_output(builder.emit(relax.op.sum(wide), "total"))
    mod, ones = builder.get(), np.ones(1000, "float32")
    small = trace(mod, inputs=ones, wish=TraceRequest(budget=80_000))
    assert small["wide"].value.arrays == (None,)
    assert small["wide"].value.summaries[0].nbytes == 400_000
    assert small["wide"].value.summaries[0].mean == 1
    assert array(small, "x").shape == (1000,)
    whole = trace(mod, inputs=ones, wish=TraceRequest(kept=["wide"]))
    np.testing.assert_array_equal(array(whole, "wide"), np.ones((100, 1000), "float32"))
    assert whole["wide"].value.is_same(small["wide"].value)
    assert whole["x"].value.arrays == (None,)


def test_what_is_kept_never_takes_more_than_the_budget():
    found = trace(
        MyModule, inputs=DIGITS.images[:1], params=PARAMS, wish=TraceRequest(budget=10_000)
    )
    kept = [one for v in found.visits.values() for one in v.value.arrays if one is not None]
    assert 0 < sum(one.nbytes for one in kept) <= 10_000


def test_not_finite_numbers_are_found_where_they_first_appear():
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType([3], "float32"))
    with builder.function("main", [x]):
        y = builder.emit(relax.op.subtract(x, relax.const(1.0)), "y")
        root = builder.emit(relax.op.sqrt(y), "root")
        builder.emit_func_output(builder.emit(relax.op.add(root, y), "z"))
    found = trace(builder.get(), inputs=np.array([0, 1, 2], "float32"))
    assert found.first_not_finite == "root"
    assert found["root"].value.summaries[0].nans == 1
    fine = trace(builder.get(), inputs=np.array([3, 1, 2], "float32"))
    assert fine.first_not_finite is None


def test_the_time_is_where_it_was_spent():
    @library.register("test.slow", "(n)->(n)")
    def slow(x, out):
        time.sleep(0.05)
        np.copyto(out, x)

    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType([3], "float32"))
    with builder.function("main", [x]):
        y = builder.emit(relax.op.add(x, x), "y")
        z = builder.emit(relax.call_dps_packed("test.slow", relax.Tuple([y]), x.ty), "z")
        builder.emit_func_output(builder.emit(relax.op.add(z, x), "last"))
    found = trace(builder.get())
    assert 0.05 <= found["z"].seconds < 0.2
    assert found.share("z") > 0.9
    assert found.share("x") is None
    total = sum(v.seconds for v in found.visits.values() if v.seconds is not None)
    assert found.seconds == pytest.approx(total)
    assert found.untraced >= 0.05


def test_a_call_of_a_function_takes_the_time_of_what_is_done_in_it():
    found = trace(Paths, inputs={"c": np.array(True), "x": np.ones((2, 2), "float32")})
    within_first = [v.seconds for node, v in found.visits.items() if node.startswith("first")]
    taken = sum(seconds for seconds in within_first if seconds is not None)
    assert found.taken("first") == pytest.approx(taken)
    assert found.taken("first") > found["first"].seconds
    assert found.share("first") == pytest.approx(taken / found.seconds)
    every = [v.seconds for v in found.visits.values() if v.seconds is not None]
    assert found.seconds == pytest.approx(sum(every))


def test_what_recording_cost_is_known():
    found = trace(MyModule, inputs=DIGITS.images[:1], params=PARAMS)
    assert 0 < found.cost < 1
    assert 0 < found.untraced < 1


def test_a_case_that_is_not_there_is_an_error():
    with pytest.raises(InputError, match="there is no case 3: give one of 0 to 2"):
        trace(MyModule, inputs=DIGITS.images[:3], params=PARAMS, wish=TraceRequest(case=3))


def test_a_module_is_as_it_was_after_a_trace():
    before = MyModule.script()
    trace(MyModule, inputs=DIGITS.images[:1], params=PARAMS)
    assert MyModule.script() == before


def test_tuples_have_the_tensors_in_them_and_other_values_their_text():
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType([2, 3], "float32"))
    with builder.function("main", [x]):
        shape = builder.emit(relax.op.shape_of(x), "shape")
        pair = builder.emit(relax.Tuple([x, relax.Tuple([x])]), "pair")
        builder.emit_func_output(builder.emit(relax.Tuple([pair, shape]), "all"))
    found = trace(builder.get())
    assert len(found["pair"].value.arrays) == 2
    assert "2, 3" in found["shape"].value.text.replace("[", "").replace("]", "")
    assert (len(found["all"].value.arrays), found["all"].value.text != "") == (2, True)
