# ruff: noqa: N803, N805, N806, N812
# TVMScript is read by TVM, not run by Python: it has its own rules for names.
"""A PrimFunc is run and measured by itself, and can neither end nor stop this process."""

import threading

import numpy as np
import pytest
import tvm
from tvm.script import ir as I
from tvm.script import tirx as T

from irviz.course.mlp import MODULES
from irviz.course.mm_relu import MyModule, lecture_schedule
from irviz.errors import CancelledRunError, InputError, RunError
from irviz.ir.module_functions import NoFunctionError
from irviz.ir.parameter_values import TypeMismatchError
from irviz.ir.symbolic_shapes import symbolic_sizes
from irviz.model.loop_nest import LoopAddress
from irviz.model.runs.run_result import Verdict, compare_runs
from irviz.runtime import run_jobs
from irviz.runtime.call_inputs import own_inputs
from irviz.runtime.run import CallInputs, RunConfig, TraceRequest, run
from irviz.transforms.schedules.schedule_step import schedule_step
from irviz.transforms.schedules.schedule_trace import record_schedule
from irviz.worker.supervisor import RUNS

pytestmark = pytest.mark.worker

LINEAR = MODULES["MyModuleMixture"]
HERE = RunConfig(isolate=False)


@I.ir_module
class Odd:
    """What may go wrong, and what takes other parameters."""

    @T.prim_func(s_tir=True)
    def outside(A: T.Buffer((4,), "float32")):
        for i in T.serial(4):
            with T.sblock("A"):
                vi = T.axis.spatial(4, i)
                A[vi * 100000000] = T.float32(1)

    @T.prim_func
    def endless(A: T.Buffer((4,), "int32")):
        while A[0] < 1000:
            A[0] = A[0] * 0

    @T.prim_func
    def shifted(n: T.int32, A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
        for i in range(4):
            B[i] = A[i] + n

    @T.prim_func
    def count(A: T.Buffer((4,), "bool"), B: T.Buffer((1,), "int8")):
        B[0] = T.int8(0)
        for i in range(4):
            B[0] = B[0] + T.Cast("int8", A[i])

    @T.prim_func(private=True)
    def inner(a: T.handle("float32"), b: T.handle("float32")):
        A = T.decl_buffer((4,), "float32", data=a)
        B = T.decl_buffer((4,), "float32", data=b)
        for i in range(4):
            B[i] = A[i] * T.float32(2)

    @T.prim_func
    def unbuilt(n: T.int32, A: T.Buffer((4,), "float32")):
        for i in T.vectorized(n):
            A[i] = T.float32(1)

    @T.prim_func
    def narrow(a: T.handle):
        k = T.int32()
        A = T.match_buffer(a, (k, k * 2), "float32")
        for i in range(k):
            A[i, i] = T.float32(1)

    @T.prim_func
    def missing(A: T.Buffer((4,), "float32")):
        T.call_packed("there.is.none", A[0])

    @T.prim_func
    def python(A: T.Buffer((2,), "float32"), B: T.Buffer((1,), "int64")):
        B[0] = T.int64(0)
        for i in range(2):
            B[0] = B[0] + T.call_packed("test.lone.callee", A[i], dtype="int64")

    @T.prim_func
    def unused(A: T.Buffer((2,), "float32")):
        A[0] = T.float32(1)
        T.call_packed("test.lone.tied", A[0])

    @T.prim_func
    def large(A: T.Buffer((50_000_000,), "float32")):
        A[0] = T.float32(3)

    @T.prim_func
    def outer(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        Odd.inner(A.data, B.data)


def call(mod, name, inputs=None, sizes=None, seed=0, **limits):
    """Call a PrimFunc by itself, and return its result."""
    return run(
        mod, name, CallInputs(inputs, seed=seed, sizes=sizes or {}), config=RunConfig(**limits)
    )


def test_the_buffers_that_are_written_are_the_outputs():
    a, b = np.ones((2, 128, 128), "float32") / 16
    result = call(MyModule, "mm_relu", {"A": a, "B": -b})
    assert [output.shape for output in result.outputs] == [(1, 128, 128)]
    assert not result.outputs[0].any()
    result = call(MyModule, "mm_relu", {"A": a, "B": b})
    np.testing.assert_allclose(result.outputs[0][0], a @ b, rtol=1e-6)


def test_random_inputs_are_the_same_each_time_so_that_schedules_can_be_compared():
    module = MyModule
    for step in record_schedule(MyModule, "mm_relu", lecture_schedule, isolate=False):
        module = step(module)
    result, reference = call(module, "mm_relu"), call(MyModule, "mm_relu")
    assert compare_runs(result, reference).verdict in (Verdict.EQUAL, Verdict.CLOSE)
    assert reference.outputs[0].std() > 0.01
    wrong = schedule_step("mm_relu", "unsafe_set_dtype", "Y", 0, "float16")(MyModule)
    assert compare_runs(call(wrong, "mm_relu"), reference).verdict is Verdict.DIFFERENT


def test_a_run_takes_as_long_as_its_calls_usually_do():
    assert 0 < call(MyModule, "mm_relu").seconds < 0.1
    seconds = iter([5e-3, 1e-3, 9e-3, *[2e-3] * 8])
    asked = []

    def times(count):
        asked.append(count)
        return next(seconds)

    assert run_jobs.median_seconds(times) == 2e-3
    assert asked == [1] + [2] * 10


def test_a_long_call_is_made_once(monkeypatch):
    monkeypatch.setattr(run_jobs, "TIMING_SECONDS", 0.0)  # with which each is long
    monkeypatch.setattr(run_jobs, "median_seconds", None)
    assert run(Odd, "count", CallInputs("zeros"), config=HERE).seconds > 0


def test_inputs_may_be_zeros_or_random_by_a_seed():
    assert not call(MyModule, "mm_relu", "zeros").outputs[0].any()
    first, same, other = (call(MyModule, "mm_relu", seed=n).outputs[0] for n in (0, 0, 1))
    assert (first == same).all()
    assert (first != other).any()
    half = call(MyModule, "mm_relu", {"A": "zeros"})
    assert not half.outputs[0].any()


def test_a_prim_func_takes_what_is_named_as_its_own():
    function = LINEAR["linear0"]
    x = np.ones((1, 5), "float32")
    random = dict.fromkeys("XWBZ", "random")
    assert own_inputs(function, {"X": x, "x": x}) == {**random, "X": x}
    assert own_inputs(function, x) == own_inputs(function, None) == random
    assert own_inputs(function, "zeros") == "zeros"


def test_symbolic_sizes_are_given_or_read_from_the_inputs():
    assert symbolic_sizes(LINEAR["linear0"]) == ("m", "n")
    assert symbolic_sizes(MyModule["mm_relu"]) == ()
    assert symbolic_sizes(Odd["shifted"]) == ("n",)
    assert call(LINEAR, "linear0").outputs[0].shape == (1, 1, 8)
    assert call(Odd, "narrow", sizes={"k": 3}).outputs[0].shape == (1, 3, 6)
    result = call(LINEAR, "linear0", sizes={"m": 6, "n": 3})
    assert result.outputs[0].shape == (1, 1, 3)
    x, w = np.ones((1, 5), "float32"), np.ones((2, 5), "float32")
    result = call(LINEAR, "linear0", {"X": x, "W": w, "B": np.zeros(2, "float32")})
    assert result.outputs[0].tolist() == [[[5.0, 5.0]]]


@pytest.mark.parametrize(
    ("name", "inputs", "sizes", "words"),
    [
        ("linear0", {}, {"m": 4, "n": 0}, "the size of 'n' is 0: give an integer of 1 or more"),
        ("linear0", {}, {"m": 10**12}, "which is more than 2,147,483,648: give smaller sizes"),
        ("linear0", "ones", {}, "'ones' is neither an array nor a keyword"),
        (
            *("linear0", {"X": np.ones((1, 4))}, {"m": 4, "n": 2}),
            "'X' has dtype float64, the function wants float32",
        ),
        (
            *("linear0", {"X": np.ones((1, 5), "float32")}, {"m": 4, "n": 2}),
            "the size of 'm' is 4, but the given values make it 5",
        ),
        (
            *("linear0", {"X": np.ones((3, 5), "float32")}, {}),
            "there are 3 cases, and 'linear0' is called once: give one",
        ),
        ("other", {}, {}, "the module has no function 'other'"),
    ],
)
def test_wrong_inputs_are_told_with_what_would_be_right(name, inputs, sizes, words):
    with pytest.raises((InputError, TypeMismatchError, NoFunctionError)) as refused:
        call(LINEAR, name, inputs, sizes)
    assert words in str(refused.value)


def test_numbers_are_given_and_other_dtypes_made_up():
    given = {"n": 3, "A": np.arange(4, dtype="int32")}
    assert call(Odd, "shifted", given).outputs[0].tolist() == [[3, 4, 5, 6]]
    assert (call(Odd, "shifted", "zeros", {"n": 5}).outputs[0] == 5).all()
    with pytest.raises(InputError, match="'a' of 'inner' is a pointer to memory of unknown size"):
        call(Odd, "inner")
    assert call(Odd, "count").outputs[0].dtype == "int8"


def test_a_function_is_built_with_those_it_calls_and_no_others():
    array = np.arange(4, dtype="float32")
    assert call(Odd, "outer", {"A": array}).outputs[-1].tolist() == [[0, 2, 4, 6]]


def test_a_crash_is_an_error_and_the_next_run_works():
    with pytest.raises(
        RunError, match=r"'outside' cannot be run: it ended the process .*SIGSEGV.*It may read or"
    ):
        call(Odd, "outside")
    assert call(Odd, "count").cases == 1


def test_a_function_that_does_not_end_is_stopped():
    call(Odd, "endless", {"A": np.full(4, 1000, "int32")})  # it is built, which may take long
    words = r"'endless' cannot be run: it took longer than 1 s .*while running"
    with pytest.raises(RunError, match=words):
        call(Odd, "endless", {"A": np.zeros(4, "int32")}, seconds=1)


def test_a_run_can_be_cancelled_and_says_what_it_does():
    messages = []

    def cancel(words):
        messages.append(words)
        if words == "running":
            threading.Thread(target=RUNS.cancel).start()

    given = CallInputs({"A": np.zeros(4, "int32")})
    with pytest.raises(CancelledRunError, match="'endless' was cancelled while running"):
        run(Odd, "endless", given, on_progress=cancel)
    assert call(Odd, "count").cases == 1


@pytest.mark.parametrize("memory", [100_000_000, 225_000_000], ids=["to send", "to copy"])
def test_what_takes_more_memory_than_it_may_is_told(memory):
    with pytest.raises(RunError, match=r"^'large' needs more memory than the \d+ MB that it "):
        call(Odd, "large", "zeros", memory=memory)


def test_too_little_memory_here_is_told(monkeypatch):
    def refuse(*_):
        raise MemoryError

    monkeypatch.setattr("irviz.runtime.run_jobs.run_job", refuse)
    with pytest.raises(RunError, match="'count' needs more memory than there is"):
        run(Odd, "count", config=HERE)


@pytest.mark.parametrize("place", [RunConfig(), HERE], ids=["isolated", "here"])
def test_functions_in_python_are_called_and_what_calls_them_is_called_once(place, capfd):
    def callee(x):
        print("called with", x)
        return int(x) + 1

    def tied(*_, lock=threading.Lock()):  # noqa: ARG001, B008 - what cannot be sent
        raise AssertionError

    tvm.register_global_func("test.lone.callee", callee, override=True)
    tvm.register_global_func("test.lone.tied", tied, override=True)
    result = run(Odd, "python", CallInputs({"A": np.array([2, 5], "float32")}), config=place)
    assert result.outputs[0].tolist() == [[9]]
    assert capfd.readouterr().out.splitlines() == ["called with 2.0", "called with 5.0"]
    with pytest.raises(RunError, match=r"'test\.lone\.tied' cannot be sent"):
        call(Odd, "unused")


def test_a_prim_func_has_no_trace():
    with pytest.raises(InputError, match="'count' is a PrimFunc, which has no bindings: trace a "):
        run(Odd, "count", trace=TraceRequest())


def test_it_gives_the_same_in_this_process():
    there, here = (run(MyModule, "mm_relu", config=place) for place in (RunConfig(), HERE))
    assert compare_runs(there, here).verdict is Verdict.EQUAL
    assert 0 < here.seconds < 0.1


def test_what_is_bound_to_a_gpu_or_cannot_be_built_says_so():
    bound = schedule_step("mm_relu", "bind", LoopAddress("C", 0), "threadIdx.x")(MyModule)
    with pytest.raises(RunError, match=r"its loops are bound to threadIdx\.x of a GPU"):
        call(bound, "mm_relu")
    with pytest.raises(RunError, match=r"'unbuilt' could not be built: .*vectorize"):
        call(Odd, "unbuilt", {"n": 4})
    with pytest.raises(RunError, match=r"'missing' failed as it ran: .*there\.is\.none"):
        call(Odd, "missing")


def test_the_module_itself_is_not_changed():
    before = tvm.ir.save_json(MyModule)
    call(MyModule, "mm_relu")
    assert tvm.ir.save_json(MyModule) == before
