# ruff: noqa: N803, N805, N812
# TVMScript is read by TVM, not run by Python: it has its own rules for names.
"""Stages are measured in turn: what takes longer is found to, what fails is named."""

import collections
import re
from functools import partial

import numpy as np
import pytest
from tvm import relax
from tvm.script import ir as I
from tvm.script import tirx as T

from irviz.course.digits import digits, mlp_params
from irviz.course.mlp import MODULES
from irviz.errors import InputError, RunError
from irviz.model.runs.timing_statistics import Measurement, Timing
from irviz.runtime import run_jobs as measuring
from irviz.runtime.run import CallInputs, RunConfig, measure
from irviz.runtime.run_jobs import (
    LEAST_ROUNDS,
    CalledFunction,
    TimedCall,
    call_order,
    time_in_turn,
)

HERE = RunConfig(isolate=False)


def multiplying(times):
    """Return a module that multiplies matrices so many times."""
    x = relax.Var("x", relax.TensorType([160, 160], "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        value = x
        for _ in range(times):
            value = builder.emit(relax.op.matmul(value, x))
        builder.emit_func_output(value)
    return builder.get()


@I.ir_module
class Once:
    @T.prim_func(s_tir=True)
    def work(X: T.Buffer((100_000,), "float32"), Y: T.Buffer((1,), "float32")):
        for i in T.serial(100_000):
            Y[0] = Y[0] * T.float32(0.5) + X[i]


@I.ir_module
class EightTimes:
    @T.prim_func(s_tir=True)
    def work(X: T.Buffer((100_000,), "float32"), Y: T.Buffer((1,), "float32")):
        for _ in T.serial(8):
            for i in T.serial(100_000):
                Y[0] = Y[0] * T.float32(0.5) + X[i]


def beside(found):
    return Measurement(tuple(Timing(str(n), "", seconds) for n, seconds in enumerate(found)))


@pytest.mark.worker
@pytest.mark.parametrize("place", [RunConfig(), HERE], ids=["isolated", "here"])
def test_eight_times_the_work_is_found_to_take_clearly_longer(place):
    found = measure([multiplying(1), multiplying(8)], rounds=16, seconds=1, config=place)
    assert [len(one) for one in found] == [16, 16]
    assert beside(found).ratio("1").median < 0.5
    assert beside(found).is_clear("1")


@pytest.mark.worker
@pytest.mark.parametrize("place", [RunConfig(), HERE], ids=["isolated", "here"])
def test_prim_funcs_are_measured_in_turn_as_well(place):
    found = measure([Once, EightTimes], "work", rounds=16, seconds=0.5, config=place)
    assert [len(one) for one in found] == [16, 16]
    assert beside(found).ratio("1").median < 0.5
    assert beside(found).is_clear("1")


@pytest.mark.worker
def test_stages_of_the_course_are_measured_with_one_of_the_inputs():
    mods = [MODULES["MyModule"], MODULES["MyModuleHighLevel"]]
    given = CallInputs(digits().images[:5], mlp_params())
    found = measure(mods, inputs=given, case=4, rounds=6, seconds=0.1)
    assert [len(one) for one in found] == [6, 6]
    assert all(0 < second < 0.1 for one in found for second in one)


@pytest.mark.parametrize("case", [-1, 5])
def test_a_case_that_is_not_there_is_told(case):
    given = CallInputs(digits().images[:5], mlp_params())
    with pytest.raises(InputError, match=f"there is no case {case}: give one of 0 to 4"):
        measure([MODULES["MyModule"]], inputs=given, case=case)


def test_a_prim_func_has_one_case():
    with pytest.raises(InputError, match="there is no case 1: give one of 0 to 0"):
        measure([Once], "work", case=1)


def test_no_rounds_are_refused():
    with pytest.raises(InputError, match="there are 0 rounds: give 1 or more"):
        measure([Once], "work", rounds=0)


def test_no_stages_take_no_time():
    assert measure([], config=HERE) == []


# --- what fails ----------------------------------------------------------------------------------


@pytest.mark.worker
@pytest.mark.parametrize("place", [RunConfig(), HERE], ids=["isolated", "here"])
def test_a_stage_that_cannot_be_built_is_named(modules, place):
    one, x = modules.chain("x", "y"), np.ones(2, "float32")
    call = relax.call_dps_packed("nowhere", relax.Tuple([one["main"].params[0]]), _pair())
    builder = relax.BlockBuilder()
    with builder.function("main", one["main"].params):
        builder.emit_func_output(builder.emit(call))
    names = ["0 as given", "1 Wrong"]
    with pytest.raises(RunError, match=r"^1 Wrong: the module could not be built: .*nowhere"):
        measure([one, builder.get()], inputs=CallInputs(x), names=names, config=place)
    assert len(measure([one, one], inputs=CallInputs(x), rounds=6, seconds=0.05, config=place)) == 2


def _pair():
    return relax.TensorType([2], "float32")


def test_a_stage_that_the_inputs_do_not_fit_is_named(modules):
    x = np.ones(2, "float32")
    with pytest.raises(ValueError, match=r"^module 2 of 2: 'x' .*"):
        measure([modules.chain("x"), multiplying(1)], inputs=CallInputs({"x": x}))


@pytest.mark.worker
def test_measuring_ends_when_its_time_is_up():
    with pytest.raises(RunError, match=r"took longer than 0\.5 s .* while round \d+ of \d+"):
        measure([multiplying(1)], seconds=1_000, config=RunConfig(seconds=0.5))
    assert len(measure([multiplying(1)], rounds=6, seconds=0.1)) == 1


# --- the rounds, with machines that are made up --------------------------------------------------


class Clockwork:
    """A machine whose calls take what they are said to take, and none of it in fact."""

    def __init__(self, name, seconds, calls):
        self.name, self.took, self.calls, self.copied = name, seconds, calls, 0

    def copy_arguments(self, arguments):
        self.copied += 1
        return arguments

    def seconds(self, function, placed, count):  # noqa: ARG002 - as machines are called
        self.calls.append((self.name, count))
        if self.took is None:
            raise RunError("it broke")
        return self.took


def clockwork(monkeypatch, **seconds):
    calls = []
    machines = {name: Clockwork(name, took, calls) for name, took in seconds.items()}
    monkeypatch.setattr(measuring, "build", lambda callee, _: machines[callee.key])
    return calls, [
        TimedCall(CalledFunction(name, "main", RunConfig()), (), f"stage {name}")
        for name in seconds
    ]


def test_in_each_round_each_stage_is_called_as_often_as_makes_its_share_of_the_time(monkeypatch):
    calls, jobs = clockwork(monkeypatch, short=0.001, long=0.1)
    timed = time_in_turn(jobs, {}.__getitem__, rounds=10, budget=2.0)
    assert timed() == [(0.001,) * 10, (0.1,) * 10]
    rounds = calls[4:]  # after two calls of each
    assert collections.Counter(rounds) == {("short", 100): 10, ("long", 1): 10}
    pairs = [{rounds[n][0], rounds[n + 1][0]} for n in range(0, 20, 2)]
    assert pairs == [{"short", "long"}] * 10


def test_a_stage_that_takes_long_is_called_once_before_the_rounds(monkeypatch):
    calls, jobs = clockwork(monkeypatch, long=0.5)
    time_in_turn(jobs, {}.__getitem__, rounds=6)()
    assert calls == [("long", 1)] * 7


def test_the_very_same_arguments_are_copied_once(monkeypatch):
    calls = []
    machines = [Clockwork(name, 0.1, calls) for name in "abc"]
    monkeypatch.setattr(measuring, "build", lambda callee, _: machines[int(callee.key)])
    shared = [np.ones(2)]
    arguments = (shared, shared, [np.ones(2)])
    time_in_turn(
        [
            TimedCall(CalledFunction(str(n), "main", RunConfig()), one)
            for n, one in enumerate(arguments)
        ],
        {}.__getitem__,
    )()
    assert [one.copied for one in machines] == [1, 0, 1]


def test_prim_funcs_with_the_same_parameters_get_the_very_same_arguments(monkeypatch):
    jobs = []
    kept = lambda found, *_, **__: partial(jobs.extend, found)  # noqa: E731
    monkeypatch.setattr(measuring, "time_in_turn", kept)
    measure([Once, EightTimes], "work", config=HERE)
    assert jobs[0].arguments is jobs[1].arguments


def test_too_little_memory_here_is_told(monkeypatch):
    def refuse(*_, **__):
        raise MemoryError

    monkeypatch.setattr(measuring, "time_in_turn", refuse)
    with pytest.raises(RunError, match="'work' needs more memory than there is"):
        measure([Once], "work", config=HERE)


def test_calls_that_take_long_have_fewer_rounds_but_enough_for_an_interval(monkeypatch):
    _, jobs = clockwork(monkeypatch, one=1.0, other=1.0)
    assert [len(one) for one in time_in_turn(jobs, {}.__getitem__, rounds=20)()] == [10, 10]
    _, jobs = clockwork(monkeypatch, one=100.0)
    assert [len(one) for one in time_in_turn(jobs, {}.__getitem__, rounds=20)()] == [LEAST_ROUNDS]
    assert [len(one) for one in time_in_turn(jobs, {}.__getitem__, rounds=2)()] == [2]


def test_a_stage_that_fails_as_it_is_called_is_named(monkeypatch):
    _, jobs = clockwork(monkeypatch, well=1.0, broken=None)
    with pytest.raises(RunError, match=re.escape("stage broken: it broke")):
        time_in_turn(jobs, {}.__getitem__)()


@pytest.mark.parametrize("count", [2, 3, 5])
def test_each_stage_begins_as_often_and_none_always_follows_the_same(count):
    rounds = [call_order(count, number) for number in range(2 * count)]
    assert all(sorted(one) == list(range(count)) for one in rounds)
    begun = collections.Counter(one[0] for one in rounds)
    assert set(begun.values()) == {2}
    for stage in range(count):
        before = [one[one.index(stage) - 1] for one in rounds if one.index(stage) > 0]
        assert count == 2 or len(set(before)) > 1
