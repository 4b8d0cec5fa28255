"""A module is built and run on the CPU, case by case; what fails says what TVM said."""

import re

import ml_dtypes
import numpy as np
import pytest
import tvm
from tvm import ir, relax

import irviz
from irviz.course.digits import digits, mlp_params
from irviz.course.mlp import MODULES, MyModule
from irviz.errors import InputError, RunError
from irviz.model.runs.run_result import Verdict, compare_runs
from irviz.runtime.run import CallInputs, RunConfig, run
from irviz.transforms.kernels import library

pytestmark = pytest.mark.worker

PARAMS, DIGITS = mlp_params(), digits()


def numpy_mlp(x):
    return np.maximum(x @ PARAMS["w0"].T + PARAMS["b0"], 0) @ PARAMS["w1"].T + PARAMS["b1"]


@pytest.mark.parametrize("name", MODULES)
def test_a_module_of_the_course_gives_numpys_scores(name):
    images = DIGITS.images[:20]
    result = run(
        MODULES[name],
        inputs=CallInputs(inputs=images, params=PARAMS, labels=DIGITS.labels[:20]),
    )
    (scores,) = result.outputs
    assert (scores.shape, scores.dtype) == ((20, 1, 10), "float32")
    np.testing.assert_allclose(scores[:, 0], numpy_mlp(images), rtol=1e-4, atol=1e-4)
    assert result.classes.tolist() == numpy_mlp(images).argmax(axis=1).tolist()
    assert result.correct == (result.classes == DIGITS.labels[:20]).sum()
    assert result.cases == 20
    assert 0 < result.seconds < 1


def test_the_modules_of_the_course_agree():
    results = [
        run(m, inputs=CallInputs(inputs=DIGITS.images[:5], params=PARAMS)) for m in MODULES.values()
    ]
    verdicts = {compare_runs(result, results[0]).verdict for result in results}
    assert verdicts <= {Verdict.EQUAL, Verdict.CLOSE}


def test_nested_tuples_are_outputs_one_by_one(modules):
    given = {
        "flags": np.array([[True, False], [False, False]]),
        "half": np.ones((2, 2), "float16"),
        "small": np.ones((2, 3), "uint8"),
        "scalar": np.arange(2, dtype="float32"),
    }
    result = run(modules.Dtypes, inputs=CallInputs(inputs=given))
    assert [(o.shape, str(o.dtype)) for o in result.outputs] == [
        ((2, 2), "bool"),
        ((2, 2), "float16"),
        ((2, 3), "uint8"),
        ((2,), "float32"),
    ]
    assert result.outputs[0].tolist() == [[False, True], [True, True]]
    assert result.outputs[3].tolist() == [0, 2]


def test_a_scalar_stays_a_scalar(modules):
    result = run(modules.Dtypes)
    assert result.outputs[3].shape == (1,)


def test_sizes_that_are_returned_are_outputs(modules):
    result = run(
        modules.Sizes,
        inputs=CallInputs(inputs={"x": np.ones((3, 2), "float32"), "y": np.ones(3, "float32")}),
    )
    assert [output.tolist() for output in result.outputs] == [[3], [2], [[2.0, 2.0, 2.0]]]


def test_memory_layout_does_not_matter():
    images = DIGITS.images[:3]
    backwards = images[::-1][::-1]
    expected = run(MyModule, inputs=CallInputs(inputs=images, params=PARAMS)).outputs[0]
    for x in (np.asfortranarray(images), backwards, images.tolist()):
        if isinstance(x, list):
            x = np.array(x, "float32")
        result = run(
            MyModule,
            inputs=CallInputs(
                inputs=x, params={k: np.asfortranarray(v) for k, v in PARAMS.items()}
            ),
        )
        assert result.outputs[0].tobytes() == expected.tobytes()


def test_inputs_stay_as_they_are():
    x = DIGITS.images[:1].copy()
    run(MyModule, inputs=CallInputs(inputs=x, params=PARAMS))
    assert (x == DIGITS.images[:1]).all()


def test_random_inputs_give_the_same_result_every_time():
    first, second = (run(MyModule, inputs=CallInputs(params=PARAMS)).outputs[0] for _ in range(2))
    assert first.tobytes() == second.tobytes()


def test_any_function_of_the_module_can_be_run(modules):
    once, twice = modules.chain("x", "y", function="once"), modules.chain("x", "y", "z")
    both = ir.IRModule({**once.functions, **twice.functions})
    x = np.array([1, 2], "float32")
    assert run(both, "once", inputs=CallInputs(inputs=x)).outputs[0].tolist() == [[2, 4]]
    assert run(both, inputs=CallInputs(inputs=x)).outputs[0].tolist() == [[4, 8]]


def test_a_function_that_returns_nothing_has_no_outputs(modules):
    builder = relax.BlockBuilder()
    with builder.function("main", modules.chain("x")["main"].params):
        builder.emit_func_output(relax.Tuple([]))
    result = run(builder.get())
    assert (result.outputs, result.cases, result.classes) == ((), 0, None)


def test_a_module_is_built_once_while_it_is_among_the_last_sixteen(modules):
    passes = []

    @tvm.instrument.pass_instrument
    class Witness:
        def run_before_pass(self, mod, info):  # noqa: ARG002 - as TVM calls it
            passes.append(info.name)

    def built(mod):
        passes.clear()
        with tvm.transform.PassContext(instruments=[Witness()]):
            run(mod, config=RunConfig(isolate=False))
        return bool(passes)

    mods = [modules.chain("x", *"y" * count) for count in range(1, 18)]
    assert [built(mod) for mod in mods[:2]] == [True, True]
    assert [built(mod) for mod in mods[:2]] == [False, False]
    assert all(built(mod) for mod in mods[2:])
    assert not built(mods[-1])
    assert built(mods[0])


def test_many_modules_are_built_one_after_another(modules):
    for count in range(20):
        mod = modules.chain(*(f"v{index}" for index in range(count + 2)))
        result = run(mod, inputs=CallInputs(inputs=np.ones(2, "float32")))
        assert result.outputs[0].tolist() == [[2.0 ** (count + 1)] * 2]


def test_short_inputs_are_told_together_and_none_is_left_out(told, modules):
    inputs = CallInputs(np.ones((500, 2), "float32"))
    run(modules.chain("x"), inputs=inputs, config=RunConfig(isolate=False))
    running = [words for words in told() if words.startswith("running")]
    assert running[0] == "running input 1 of 500"
    assert len(running) < 100
    numbers = [list(map(int, re.findall(r"\d+", words)))[:-1] for words in running]
    run_inputs = [one for span in numbers for one in range(span[0], span[-1] + 1)]
    assert run_inputs == [*range(1, 501)]


# --- what fails --------------------------------------------------------------------------------


def test_a_missing_function_of_a_library_is_a_module_that_could_not_be_built(modules):
    words = r"^the module could not be built: it calls 'env\.f', which nothing defines: replace"
    with pytest.raises(RunError, match=words):
        run(modules.TwoFunctions, "first")


@pytest.mark.parametrize("operator", ["equal", "cumsum"])
def test_a_prim_func_that_cannot_be_built_is_named_with_the_nodes_it_was_made_of(operator):
    """TVM takes bools for floats, and says neither which operator nor which node that is."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType([2], "bool"))
    with builder.function("main", [x]):
        with builder.dataflow():
            other = builder.emit(relax.op.logical_not(x))
            same = relax.op.equal(other, x) if operator == "equal" else relax.op.cumsum(other, 0)
            last = builder.emit_output(relax.op.logical_not(builder.emit(same)))
        builder.emit_func_output(last)
    words = rf"PrimFunc '\w*{operator}\w*' could not be built: .*; it was made of .*\(relax\.\w+\)"
    with pytest.raises(RunError, match=words):
        run(builder.get())


@pytest.mark.parametrize("isolate", [True, False])
def test_what_tvm_warns_of_as_it_builds_is_told_once_without_time_and_place(isolate):
    builder = relax.BlockBuilder()
    x, index = (relax.Var(name, relax.TensorType([2], of)) for name, of in TWO)
    with builder.function("main", [x, index]):
        taken = builder.emit(relax.op.take(x, index, mode="fast"))
        builder.emit_func_output(builder.emit(relax.op.take(taken, index, mode="fast")))
    inputs = CallInputs(inputs={"x": np.ones(2, "float32"), "index": np.zeros(2, "int64")})
    found = run(builder.get(), inputs=inputs, config=RunConfig(isolate=isolate)).warnings
    assert [words.partition(" when")[0] for words in found] == ["Fast mode segfaults"]


TWO = (("x", "float32"), ("index", "int64"))


def test_it_can_be_built_once_the_function_is_registered(modules):
    mod = modules.chain("x")
    call = relax.call_dps_packed("test.late", relax.Tuple([mod["main"].params[0]]), _pair())
    builder = relax.BlockBuilder()
    with builder.function("main", mod["main"].params):
        builder.emit_func_output(builder.emit(call))
    late = builder.get()
    with pytest.raises(RunError, match=r"test\.late"):
        run(late)

    @library.register("test.late", "(n)->(n)")
    def copy(x, out):
        out[:] = x

    assert run(late, inputs=CallInputs(inputs=np.ones(2, "float32"))).outputs[0].tolist() == [
        [1, 1]
    ]


def _pair():
    return relax.TensorType([2], "float32")


def test_what_raises_as_it_runs_is_one_line_without_a_traceback(modules):
    @library.register("env.effect", "(n),(n)->(n)")
    def effect(*_):
        raise ValueError("first line\n\nlast line\n")

    with pytest.raises(RunError) as caught:
        run(modules.Impure, inputs=CallInputs(inputs=np.ones(2, "float32")))
    assert str(caught.value).startswith("'main' failed as it ran: ")
    assert "\n" not in str(caught.value)
    assert "Traceback" not in str(caught.value)
    assert caught.value.__cause__ is not None


def test_outputs_of_different_shapes_are_not_stacked(modules):
    x = np.array([[1, 0, 1, 0], [1, 1, 1, 1]], "float32")
    with pytest.raises(
        RunError,
        match=re.escape("output 0 has shape (1, 2) in one case and (1, 4) in another"),
    ):
        run(modules.DataDependent, inputs=CallInputs(inputs=x))
    assert run(modules.DataDependent, inputs=CallInputs(inputs=x[1])).outputs[0].tolist() == [
        [[0, 1, 2, 3]]
    ]


@pytest.mark.parametrize("count", [0, 1, 4, 6])
def test_there_is_a_label_for_each_case(count):
    labels = np.zeros(count, "int64")
    with pytest.raises(InputError, match=f"there are {count} labels and 5 cases: give one label"):
        run(MyModule, inputs=CallInputs(inputs=DIGITS.images[:5], params=PARAMS, labels=labels))


def test_a_function_that_is_not_there_is_named_with_those_that_are():
    with pytest.raises(ValueError, match="no function 'other'; its Relax functions are 'main'"):
        run(MyModule, "other")


@pytest.mark.build
def test_large_arrays_of_a_dtype_that_numpy_lacks_are_arguments_and_constants():
    """As they are large, the worker sees them in shared memory."""
    builder = relax.BlockBuilder()
    x, w = (relax.Var(name, relax.TensorType((256, 256), "bfloat16")) for name in "xw")
    with builder.function("main", [x, w]):
        builder.emit_func_output(builder.emit(relax.op.add(x, w)))
    ones = np.ones((256, 256), ml_dtypes.bfloat16)
    session = irviz.Session(builder.get(), params={"w": ones}, inputs={"x": ones + ones})
    for one in (session, session.bind()):
        (output,) = one.run().outputs
        np.testing.assert_array_equal(output[0].astype("float32"), 3.0)
