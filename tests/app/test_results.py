"""What runs gave is kept for each function, until functions are called with something else."""

import asyncio
import threading
import time
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest

from irviz.app.results import Results
from irviz.model.result import RunResult, Verdict
from irviz.model.trace import Trace
from irviz.runtime.run import CancelledRunError, InputError, RunError

LONG = 20


@dataclass
class Stages:
    """Stands in for a session: runs give numbers at once, or what was said beforehand."""

    outputs: dict = field(default_factory=dict)
    failures: dict = field(default_factory=dict)
    broken: tuple = ()
    ran: list = field(default_factory=list)
    gates: dict = field(default_factory=dict)

    def stage(self, stage_id):
        return SimpleNamespace(id=stage_id, error="no such pass" if stage_id in self.broken else "")

    def run(self, *, stage, trace, case, heard):
        self.ran.append((stage, case) if trace else stage)
        heard("running")
        if stage in self.gates:
            assert self.gates[stage].wait(LONG)
        if (failure := self.failures.get((stage, trace), self.failures.get(stage))) is not None:
            raise failure
        output = np.full((3, 2), self.outputs.get(stage, 1.0), np.float32)
        recorded = Trace("main", {}, 1.0, 1.0, 1.0, case) if trace else None
        return RunResult((output,), 1e-3, trace=recorded)


def results():
    failures = []
    made = Results(lambda: None, failures.append)
    made.look_at("main")
    made.failures = failures
    return made


async def idle(*those):
    deadline = time.monotonic() + LONG
    while any(one.background.name for one in those):
        assert time.monotonic() < deadline, "it takes too long"
        await asyncio.sleep(0.002)


# --- runs --------------------------------------------------------------------------------------


def test_each_stage_is_run_once_and_its_result_kept_by_its_id():
    known, stages = results(), Stages()
    known.run(stages, ["0", "1", "0"])
    known.run(stages, ["0", "1"])
    assert stages.ran == ["0", "1"]
    assert list(known.results) == ["0", "1"]
    assert known.errors == {}


def test_a_stage_that_failed_is_not_run():
    known, stages = results(), Stages(broken=("1",))
    known.run(stages, ["0", "1"])
    assert stages.ran == ["0"]


def test_why_a_stage_could_not_be_run_is_kept_until_it_can():
    known, stages = results(), Stages(failures={"1": RunError("it crashed")})
    known.run(stages, ["0", "1"])
    assert known.errors == {"1": "it crashed"}
    assert "1" not in known.results
    stages.failures = {}
    known.run(stages, ["1"])
    assert known.errors == {}
    assert "1" in known.results


def test_what_a_stage_gave_before_is_not_known_any_more_when_it_fails():
    known, stages = results(), Stages()
    known.run(stages, ["0", "1"])
    assert known.comparison("1", "0").verdict is Verdict.EQUAL
    stages.failures = {"1": RunError("it crashed")}
    known.run(stages, ["1"], again=True)
    assert "1" not in known.results
    assert known.comparison("1", "0") is None


def test_an_error_without_words_is_told_by_its_class():
    known = results()
    known.run(Stages(failures={"0": AssertionError()}), ["0"])
    assert known.errors == {"0": "AssertionError"}


@pytest.mark.parametrize("cancelled", [CancelledRunError("'main' was cancelled")])
def test_a_run_that_was_cancelled_leaves_all_as_it_was_and_is_no_error(cancelled):
    known, stages = results(), Stages()
    known.run(stages, ["0"])
    before = known.results["0"]
    stages.failures = {"0": cancelled, "1": cancelled}
    known.run(stages, ["0", "1"], again=True)
    assert known.errors == {}
    assert known.results == {"0": before}


def test_a_stage_that_is_run_again_is_compared_again():
    known, stages = results(), Stages(outputs={"1": 1.0})
    known.run(stages, ["0", "1"])
    assert known.comparison("1", "0").verdict is Verdict.EQUAL
    assert known.comparison("1", "0") is known.comparison("1", "0")
    stages.outputs["1"] = 2.0
    known.run(stages, ["1"], again=True)
    assert known.comparison("1", "0").verdict is Verdict.DIFFERENT
    stages.outputs["0"] = 2.0
    known.run(stages, ["0"], again=True)
    assert known.comparison("1", "0").verdict is Verdict.EQUAL


def test_a_stage_is_not_compared_with_itself_or_with_one_that_was_not_run():
    known = results()
    known.run(Stages(), ["0"])
    assert known.comparison("0", "0") is None
    assert known.comparison("0", "1") is None


# --- functions and inputs ----------------------------------------------------------------------


def test_results_are_those_of_the_function_that_is_looked_at():
    known, stages = results(), Stages()
    known.run(stages, ["0"])
    known.trace(stages, ["0"], 0)
    known.look_at("other")
    assert (known.results, known.errors, known.traces) == ({}, {}, {})
    known.run(stages, ["0"])
    assert stages.ran == ["0", ("0", 0), "0"]
    known.look_at("main")
    assert list(known.results) == ["0"]
    assert list(known.traces) == ["0"]


def test_other_inputs_let_everything_be_forgotten():
    known, stages = results(), Stages(failures={"1": RunError("no")})
    known.run(stages, ["0", "1"])
    known.trace(stages, ["0"], 0)
    known.clear()
    assert (known.results, known.errors, known.traces) == ({}, {}, {})
    assert known.comparison("1", "0") is None


def test_a_run_that_ends_after_another_function_was_chosen_is_kept_for_its_own():
    async def kernel():
        known, stages = results(), Stages(gates={"1": threading.Event()})
        known.run(stages, ["1"])
        known.look_at("other")
        assert not known.is_running("1")  # there it is another run
        known.run(stages, ["0"])
        stages.gates["1"].set()
        await idle(known)
        assert list(known.results) == ["0"]
        known.look_at("main")
        assert list(known.results) == ["1"]

    asyncio.run(kernel())


def test_a_run_with_inputs_that_are_given_no_more_is_kept_nowhere():
    async def kernel():
        known, stages = results(), Stages(gates={"0": threading.Event()}, outputs={"0": 1.0})
        known.run(stages, ["0"])
        await asyncio.sleep(0.02)
        known.clear()
        now = Stages(outputs={"0": 5.0})
        known.run(now, ["0"])
        stages.gates["0"].set()
        await idle(known)
        assert known.results["0"].outputs[0][0, 0] == 5.0
        assert now.ran == ["0"]

    asyncio.run(kernel())


def test_a_stage_that_runs_or_waits_is_known_to_run_and_is_not_asked_for_again():
    async def kernel():
        known, stages = results(), Stages(gates={"0": threading.Event()})
        for _ in range(5):
            known.run(stages, ["0", "1"], again=True)
        assert known.is_running("0")
        assert known.is_running("1")
        assert not known.is_running("2")
        assert [known.is_waiting(one) for one in "012"] == [False, True, False]
        stages.gates["0"].set()
        await idle(known)
        assert stages.ran == ["0", "1"]
        assert not known.is_running("0")

    asyncio.run(kernel())


# --- traces ------------------------------------------------------------------------------------


def test_a_trace_is_of_one_input_and_recorded_anew_for_another():
    known, stages, done = results(), Stages(), []
    known.trace(stages, ["0", "1"], 2, lambda: done.append(known.traces["1"].case))
    assert done == [2]
    known.trace(stages, ["0", "1"], 2, lambda: done.append("at once"))
    assert done == [2, "at once"]
    assert stages.ran == [("0", 2), ("1", 2)]
    known.trace(stages, ["0"], 1)
    assert {stage: trace.case for stage, trace in known.traces.items()} == {"0": 1, "1": 2}


def test_the_values_of_the_stages_that_were_looked_at_last_are_kept():
    """A session may have any number of stages, and each trace takes memory."""
    known, stages = results(), Stages()
    ids = [str(number) for number in range(10)]
    for one in ids:
        known.trace(stages, ("0", one), 0)
    assert list(known.traces) == [*ids[3:9], "0", "9"]
    assert stages.ran.count(("0", 0)) == 1
    known.trace(stages, ("1",), 0)
    assert "1" in known.traces
    assert set(known.results) == set(ids)


def test_a_trace_is_a_run_whose_results_are_kept_without_it():
    known, stages = results(), Stages()
    known.trace(stages, ["0"], 0)
    assert known.results["0"].trace is None
    known.run(stages, ["0"])
    assert stages.ran == [("0", 0)]


def test_a_stage_that_runs_but_cannot_be_traced_has_not_failed():
    known, stages, done = results(), Stages(), []
    stages.failures = {("1", True): RunError("runs, but cannot be traced")}
    known.run(stages, ["0", "1"])
    known.trace(stages, ["0", "1"], 0, lambda: done.append(list(known.traces)))
    assert known.errors == {}
    assert known.untraced == {"1": "runs, but cannot be traced"}
    assert "1" in known.results
    assert done == [["0"]]  # so that it can be told


def test_a_prim_func_has_no_trace_and_that_is_no_failure_of_a_run():
    known = results()
    known.trace(Stages(failures={"0": InputError("'f' is a PrimFunc")}), ["0"], 0)
    assert known.errors == {}
    assert known.untraced == {"0": "'f' is a PrimFunc"}


def test_a_stage_that_crashes_as_it_is_recorded_for_the_first_time_has_failed():
    known = results()
    known.trace(Stages(failures={"0": RunError("it crashed")}), ["0"], 0)
    assert known.errors == {"0": "it crashed"}


def test_a_trace_that_is_asked_for_many_times_is_recorded_once_and_followed_once():
    async def kernel():
        known, stages, done = results(), Stages(gates={"0": threading.Event()}), []

        def then():
            done.append(list(known.traces))

        for _ in range(5):
            known.trace(stages, ["0", "1"], 0, then)
        stages.gates["0"].set()
        await idle(known)
        assert stages.ran == [("0", 0), ("1", 0)]
        assert done == [["0", "1"]]

    asyncio.run(kernel())


def test_what_was_to_follow_a_trace_does_not_when_it_is_cancelled():
    async def kernel():
        known, stages, done = results(), Stages(gates={"0": threading.Event()}), []
        known.trace(stages, ["0", "1"], 0, lambda: done.append("then"))
        await asyncio.sleep(0.02)
        known.cancel()
        stages.gates["0"].set()
        await idle(known)
        assert done == []
        assert known.traces == {}
        assert known.errors == {}
        assert known.untraced == dict.fromkeys("01", "it was cancelled")
        known.trace(stages, ["0"], 0, lambda: done.append("again"))
        await idle(known)
        assert done == ["again"]
        assert known.untraced == {"1": "it was cancelled"}

    asyncio.run(kernel())


def test_what_was_to_follow_a_trace_does_not_when_somebody_else_cancelled_it():
    known, done = results(), []
    stages = Stages(failures={"0": CancelledRunError("'main' was cancelled")})
    known.trace(stages, ["0"], 0, lambda: done.append("then"))
    assert done == []
    assert (known.errors, known.untraced) == ({}, {"0": "it was cancelled"})


def test_what_was_to_follow_a_trace_does_not_when_another_function_is_looked_at():
    async def kernel():
        known, stages, done = results(), Stages(gates={"0": threading.Event()}), []
        known.trace(stages, ["0"], 0, lambda: done.append("then"))
        known.look_at("other")
        stages.gates["0"].set()
        await idle(known)
        assert done == []

    asyncio.run(kernel())


def test_what_follows_a_trace_and_fails_is_told():
    known = results()
    known.trace(Stages(), ["0"], 0, lambda: 1 / 0)
    assert [type(one) for one in known.failures] == [ZeroDivisionError]
