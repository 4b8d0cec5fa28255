"""What runs gave is kept for each function, until functions are called with something else."""

import asyncio
import threading
import time

import numpy as np
import pytest

from irviz.errors import CancelledRunError, InputError, RunError
from irviz.explorer.actions import (
    Cancel,
    Checkout,
    ColourBy,
    Focus,
    RecordValues,
    Report,
    Run,
    SetField,
    SetInputs,
    ShowFirstDifference,
)
from irviz.explorer.effects import Effects
from irviz.explorer.stage_rows import comparison
from irviz.explorer.state import RunKey, Runs, State
from irviz.explorer.store import Store
from irviz.model.runs.execution_trace import Trace
from irviz.model.runs.run_result import RunResult, Verdict
from irviz.session.session import Session
from irviz.transforms.stage import Stage

LONG = 20


class Explored:
    """A store with its effects, on stages that give numbers at once, or what is said beforehand."""

    def __init__(self, modules, monkeypatch, count=3, broken=()):
        session = Session(modules.TwoFunctions, function="first")
        stages = [
            Stage(str(n), session.current.module, parent="0", error="x" * (str(n) in broken))
            for n in range(1, count)
        ]
        self.outputs, self.failures, self.gates, self.ran = {}, {}, {}, []
        monkeypatch.setattr(Session, "run", lambda *_, **asked: self.run(**asked))
        self.store = Store(State.of(session.add_stages(stages).checkout("0")))
        self.effects = Effects(self.store)
        self.dispatch(SetField("runs_new_stages", False))

    def run(self, *, stage, trace, on_progress):
        self.ran.append(stage if trace is None else (stage, trace.case))
        on_progress("running")
        if stage in self.gates:
            assert self.gates[stage].wait(LONG)
        is_traced = trace is not None
        failure = self.failures.get((stage, is_traced), self.failures.get(stage))
        if failure is not None:
            raise failure
        output = np.full((3, 2), self.outputs.get(stage, 1.0), np.float32)
        recorded = Trace("first", {}, 1.0, 1.0, 1.0, trace.case) if is_traced else None
        return RunResult((output,), 1e-3, trace=recorded)

    def dispatch(self, action):
        self.store.dispatch(action)

    def start(self, *stages):
        self.dispatch(Run(stages))

    def record(self, stage):
        self.dispatch(Checkout(stage))
        self.dispatch(RecordValues())

    def record_anew(self, stage):
        """Run a stage once more, though it was run."""
        self.dispatch(Checkout(stage))
        self.dispatch(Run(again=True))

    @property
    def state(self):
        return self.store.state

    @property
    def runs(self):
        return self.state.function_runs

    @property
    def message(self):
        return self.state.message.words if self.state.message else ""

    def compared(self, stage, reference="0"):
        return comparison(self.state, stage, reference)


@pytest.fixture
def explored(modules, monkeypatch):
    return lambda **options: Explored(modules, monkeypatch, **options)


async def idle(explored):
    deadline = time.monotonic() + LONG
    while explored.state.jobs.name:
        assert time.monotonic() < deadline, "it takes too long"
        await asyncio.sleep(0.002)


# --- runs --------------------------------------------------------------------------------------


def test_each_stage_is_run_once_and_its_result_kept_by_its_id(explored):
    known = explored()
    known.start("0", "1", "0")
    known.start("0", "1")
    assert known.ran == ["0", "1"]
    assert set(known.runs.results) == {"0", "1"}
    assert known.runs.errors == {}


def test_a_stage_that_failed_is_not_run(explored):
    known = explored(broken=("1",))
    known.start("0", "1")
    assert known.ran == ["0"]


def test_why_a_stage_could_not_be_run_is_kept_until_it_can(explored):
    known = explored()
    known.failures = {"1": RunError("it crashed")}
    known.start("0", "1")
    assert known.runs.errors == {"1": "it crashed"}
    assert "1" not in known.runs.results
    known.failures = {}
    known.start("1")
    assert known.runs.errors == {}
    assert "1" in known.runs.results


def test_what_a_stage_gave_before_is_not_known_any_more_when_it_fails(explored):
    known = explored()
    known.start("0", "1")
    assert known.compared("1").verdict is Verdict.EQUAL
    known.failures = {"1": RunError("it crashed")}
    known.record_anew("1")
    assert "1" not in known.runs.results
    assert known.compared("1") is None


def test_an_error_without_words_is_told_by_its_class(explored):
    known = explored()
    known.failures = {"0": AssertionError()}
    known.start("0")
    assert known.runs.errors == {"0": "AssertionError"}


def test_a_run_that_was_cancelled_leaves_all_as_it_was_and_is_no_error(explored):
    known = explored()
    known.start("0")
    before = known.runs.results["0"]
    cancelled = CancelledRunError("'main' was cancelled")
    known.failures = {"0": cancelled, "1": cancelled}
    known.record_anew("0")
    known.start("1")
    assert known.runs.errors == {}
    assert known.runs.results == {"0": before}


def test_a_stage_that_is_run_again_is_compared_again(explored):
    known = explored()
    known.start("0", "1")
    assert known.compared("1").verdict is Verdict.EQUAL
    assert known.compared("1") is known.compared("1")
    known.outputs["1"] = 2.0
    known.record_anew("1")
    assert known.compared("1").verdict is Verdict.DIFFERENT
    known.outputs["0"] = 2.0
    known.record_anew("0")
    assert known.compared("1").verdict is Verdict.EQUAL


def test_a_stage_is_not_compared_with_itself_or_with_one_that_was_not_run(explored):
    known = explored()
    known.start("0")
    assert known.compared("0", "0") is None
    assert known.compared("0", "1") is None


# --- functions and inputs ----------------------------------------------------------------------


def test_results_are_those_of_the_function_that_is_looked_at(explored):
    known = explored()
    known.start("0")
    known.record("0")
    known.dispatch(Focus("second"))
    assert (known.runs.results, known.runs.errors, known.runs.traces) == ({}, {}, {})
    known.start("0")
    assert known.ran == ["0", ("0", 0), "0"]
    known.dispatch(Focus("first"))
    assert list(known.runs.results) == ["0"]
    assert list(known.runs.traces) == ["0"]


def test_other_inputs_let_everything_be_forgotten(explored):
    known = explored()
    known.failures = {"1": RunError("no")}
    known.start("0", "1")
    known.record("0")
    known.dispatch(SetInputs("zeros"))
    assert (known.runs.results, known.runs.errors, known.runs.traces) == ({}, {}, {})
    assert known.compared("1") is None


def test_a_run_that_ends_after_another_function_was_chosen_is_kept_for_its_own(explored):
    async def kernel():
        known = explored()
        known.gates = {"0": threading.Event()}
        known.start("0")
        known.dispatch(Focus("second"))
        assert not is_running(known.state, "0")  # there it is another run
        known.start("1")
        known.gates["0"].set()
        await idle(known)
        assert set(known.runs.results) == {"0", "1"}
        known.dispatch(Focus("first"))
        assert list(known.runs.results) == ["0"]

    asyncio.run(kernel())


def test_a_run_with_inputs_that_are_given_no_more_is_kept_nowhere(explored):
    async def kernel():
        known, gate = explored(), threading.Event()
        known.gates = {"0": gate}
        known.start("0")
        while not known.ran:
            await asyncio.sleep(0.002)
        known.dispatch(SetInputs("zeros"))
        known.gates, known.outputs = {}, {"0": 5.0}
        known.start("0")
        gate.set()
        await idle(known)
        assert known.runs.results["0"].outputs[0][0, 0] == 5.0
        assert known.ran == ["0", "0"]

    asyncio.run(kernel())


def test_a_result_for_inputs_that_are_given_no_more_changes_nothing(explored):
    known = explored()
    known.dispatch(SetInputs("zeros"))
    before = known.state
    known.dispatch(Report(RunKey("first", "0", None, 0), RunResult((np.ones((1, 1)),), 1.0)))
    assert known.state is before


def is_running(state, stage):
    return state.is_run_by(stage, state.jobs.keys)


def test_a_stage_that_runs_or_waits_is_known_to_run_and_is_not_asked_for_again(explored):
    async def kernel():
        known = explored()
        known.gates = {"0": threading.Event()}
        for _ in range(5):
            known.start("0", "1")
        state = known.state
        assert [is_running(state, one) for one in "012"] == [True, True, False]
        assert [state.is_run_by(one, [state.jobs.key]) for one in "012"] == [True, False, False]
        known.gates["0"].set()
        await idle(known)
        assert known.ran == ["0", "1"]
        assert not is_running(known.state, "0")

    asyncio.run(kernel())


# --- traces ------------------------------------------------------------------------------------


def test_a_trace_is_of_one_input_and_recorded_anew_for_another(explored):
    known = explored()
    known.dispatch(SetField("case", 2))
    known.record("0")
    known.record("1")
    known.record("1")
    assert known.ran == [("0", 2), ("1", 2)]
    known.dispatch(SetField("case", 1))
    known.record("0")
    cases = {stage: trace.case for stage, trace in known.runs.traces.items()}
    assert cases == {"0": 1, "1": 2}


def test_the_values_of_the_stages_that_were_looked_at_last_are_kept(explored):
    """A session may have any number of stages, and each trace takes memory."""
    known = explored(count=11)
    for stage in map(str, range(1, 11)):
        known.record("0")
        known.record(stage)
    assert list(known.runs.traces) == [*map(str, range(4, 10)), "0", "10"]
    assert known.ran.count(("0", 0)) == 1
    known.record("1")
    assert "1" in known.runs.traces
    assert set(known.runs.results) == set(map(str, range(11)))


def test_a_trace_is_a_run_whose_results_are_kept_without_it(explored):
    known = explored()
    known.record("0")
    assert known.runs.results["0"].trace is None
    known.start("0")
    assert known.ran == [("0", 0)]


def test_a_stage_that_runs_but_cannot_be_traced_has_not_failed(explored):
    known = explored()
    known.failures = {("1", True): RunError("runs, but cannot be traced")}
    known.start("0", "1")
    known.record("1")
    assert known.runs.errors == {}
    assert known.runs.untraced == {"1": "runs, but cannot be traced"}
    assert "1" in known.runs.results
    assert known.message == "the values of stage 1 are not known: runs, but cannot be traced"
    assert known.state.message.is_error


def test_a_prim_func_has_no_trace_and_that_is_no_failure_of_a_run():
    runs = Runs().add("0", 0, InputError("'f' is a PrimFunc"))
    assert runs.errors == {}
    assert runs.untraced == {"0": "'f' is a PrimFunc"}


def test_a_stage_that_crashes_as_it_is_recorded_for_the_first_time_has_failed(explored):
    known = explored()
    known.failures = {"0": RunError("it crashed")}
    known.record("0")
    assert known.runs.errors == {"0": "it crashed"}


def test_colours_do_not_try_again_and_again_what_cannot_be_recorded(explored):
    known = explored()
    known.failures = {("0", True): RunError("no values")}
    known.dispatch(ColourBy("time"))
    for stage in "1010":
        known.dispatch(Checkout(stage))
    assert known.ran == [("0", 0), ("1", 0)]
    known.dispatch(ColourBy("size"))  # the reader asks for it once more
    assert known.ran == [("0", 0), ("1", 0), ("0", 0)]


def test_a_trace_that_is_asked_for_many_times_is_recorded_once(explored):
    async def kernel():
        known = explored()
        known.gates = {"1": threading.Event()}
        known.dispatch(Checkout("1"))
        for _ in range(3):
            known.dispatch(ShowFirstDifference())
            known.dispatch(RecordValues())
        known.dispatch(ShowFirstDifference())
        known.gates["1"].set()
        await idle(known)
        assert known.ran == [("1", 0), ("0", 0)]
        assert set(known.runs.traces) == {"0", "1"}

    asyncio.run(kernel())


def test_what_was_cancelled_is_not_gone_on_with_until_it_is_asked_for(explored):
    async def kernel():
        known = explored()
        known.gates = {"1": threading.Event()}
        known.dispatch(Checkout("1"))
        known.dispatch(ShowFirstDifference())
        await asyncio.sleep(0.02)
        known.dispatch(Cancel())
        known.gates["1"].set()
        await idle(known)
        assert (known.message, known.state.is_dimmed) == ("", False)
        assert (known.runs.traces, known.runs.errors) == ({}, {})
        assert known.runs.untraced == dict.fromkeys("10", "it was cancelled")
        known.record("0")
        await idle(known)
        assert list(known.runs.traces) == ["0"]
        assert known.runs.untraced == {"1": "it was cancelled"}

    asyncio.run(kernel())


def test_what_somebody_else_cancelled_is_no_failure_and_says_nothing(explored):
    known = explored()
    known.failures = {"0": CancelledRunError("'main' was cancelled")}
    known.record("0")
    assert known.message == ""
    assert (known.runs.errors, known.runs.untraced) == ({}, {"0": "it was cancelled"})


def test_what_was_to_follow_a_trace_does_not_when_another_function_is_looked_at(explored):
    async def kernel():
        known = explored()
        known.gates = {"1": threading.Event()}
        known.failures = {("1", True): RunError("no values")}
        known.dispatch(Checkout("1"))
        known.dispatch(RecordValues())
        known.dispatch(Focus("second"))
        known.gates["1"].set()
        await idle(known)
        assert known.message == ""

    asyncio.run(kernel())
