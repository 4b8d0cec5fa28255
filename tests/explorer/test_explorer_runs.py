# ruff: noqa: F841, N805, N812, RET504
# TVMScript is read by TVM, not run by Python: it has its own rules for names.
"""The explorer stays alive and true to what it shows, whatever runs and while it runs."""

import re
import threading
import time

import numpy as np
import pytest
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R

import irviz
from irviz.course.digits import digits, mlp_params
from irviz.course.mlp import MyModule
from irviz.explorer import explorer as explorer_module
from irviz.explorer.actions import FindPass, SetField, SetSession
from irviz.explorer.background_runner import RUN, Jobs
from irviz.model.runs.execution_trace import Trace
from irviz.model.runs.run_result import Origin, OriginRun
from irviz.session.session import Session
from tests.event_loop import LONG, in_kernel, until

pytestmark = pytest.mark.worker

PARAMS, DIGITS = mlp_params(), digits()


@I.ir_module
class Told:
    """A function with an effect."""

    @R.function(pure=False)
    def main(x: R.Tensor((2,), "float32")):
        y = R.add(x, x)
        said = R.print(y, format="so it is {}")
        z = R.multiply(y, y)
        return z


@I.ir_module
class Two:
    """Two functions, of which one takes as long as a test likes."""

    @R.function
    def other(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = R.add(x, x)
        return y

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        z = R.call_dps_packed("env.slow", (x,), R.Tensor((4,), "float32"))
        return z


@I.ir_module
class Rooted:
    """The root of negative numbers, whose sum is no number either; and a function that is fine."""

    @R.function
    def fine(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = R.exp(x)
        return y

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = R.subtract(x, R.const(1000.0, "float32"))
        z = R.sqrt(y)
        w = R.add(z, z)
        return w


@pytest.fixture
def registered(forgets_registrations):  # noqa: ARG001 - it undoes the registration
    """Registers a kernel that is known while a test lasts."""
    return lambda name, function: irviz.library.register(name, "(...)->(...)")(function)


def mlp(**facts):
    inputs = DIGITS.images[:5]
    return Session(
        MyModule, params=PARAMS, inputs=inputs, labels=DIGITS.labels[:5], isolate=False, **facts
    )


async def idle(explorer):
    await until(lambda: not explorer.state.jobs.name)


async def shown(explorer, stage):
    """Choose a stage, and wait for its picture."""
    explorer.choose(stage)
    await until(lambda: explorer.state.stage_id == stage)


# --- whatever runs -----------------------------------------------------------------------------


def test_a_prim_func_alone_runs_and_is_not_recorded(opened, modules):
    explorer = opened(modules.lone_prim_func())
    explorer.explorer.run()
    assert list(explorer.explorer.results) == ["0"]
    explorer.select("Y")
    assert explorer.button("Record values") is None
    assert "Inside a PrimFunc no values are recorded" in explorer.text("irviz-record-cost")
    explorer.colour("time")
    assert not explorer.is_coloured
    assert "failed" not in explorer.badge("0")


class Other(Origin):
    """A program that returns something else."""

    name, is_isolated = "another one", False

    def run(self, *_):
        return OriginRun((np.ones((1, 10), "float32"),), Trace("main", {}, 0, 0, 0))


def test_a_model_with_other_numbers_than_its_origin_says_so_beside_its_stage(opened):
    explorer = opened(mlp(origin=Other()))
    explorer.explorer.run()
    assert "against another one: different" in explorer.badge("0")
    assert explorer.message.startswith("Stage 0 differs from another one, max |Δ| ")


def test_a_function_without_parameters_runs_and_is_recorded(opened, modules):
    explorer = opened(Session(modules.NoParameters, isolate=False))
    explorer.explorer.run()
    assert explorer.explorer.results["0"].outputs[0].shape == (1, 2, 2)
    explorer.colour("time")
    assert explorer.is_coloured


def test_a_function_with_effects_runs_and_is_recorded(opened, capfd):
    explorer = opened(Session(Told, isolate=False))
    explorer.colour("time")
    assert explorer.explorer.run_errors == {}
    assert explorer.is_coloured
    assert "so it is" in capfd.readouterr().out


def test_the_passes_of_a_recording_are_run_compared_and_coloured(opened):
    with irviz.record() as recording:
        relax.transform.ToNonDataflow()(relax.transform.LegalizeOps()(MyModule))
    session = recording.session()
    explorer = opened(session.with_params(PARAMS).with_run_config(isolate=False))
    explorer.choose(session.stages[-1].id)
    explorer.explorer.run()
    assert len(explorer.explorer.results) == 2
    explorer.colour("time")
    assert explorer.is_coloured
    explorer.part()
    assert "do not diverge" in explorer.message


def test_a_function_has_results_of_its_own(opened, modules):
    inputs = {"x": np.ones(4, np.float32)}
    explorer = opened(Session(modules.CalledInCalled, inputs=inputs, isolate=False))
    explorer.explorer.run()
    explorer.focus("layer")
    assert explorer.explorer.results == {}
    assert "not run" in explorer.badge("0")
    explorer.explorer.run()
    np.testing.assert_array_equal(explorer.explorer.results["0"].outputs[0][0], 4 * np.ones(4))
    explorer.focus("main")
    assert list(explorer.explorer.results) == ["0"]


# --- what is being done ------------------------------------------------------------------------


def test_what_runs_is_said_with_its_progress_and_how_much_waits(opened):
    explorer = opened(mlp())
    for jobs in (
        Jobs("stage 1"),
        Jobs("stage 1", "running input 3 of 20"),
        Jobs("stage 1", "building <b>", 2),
        Jobs(),
    ):
        explorer.explorer.dispatch(SetField("jobs", jobs))
        status = explorer.status
        said = status["job"], status["progress"], status["waiting"]
        assert said == (jobs.name, jobs.progress, jobs.waiting)


# --- while it runs -----------------------------------------------------------------------------


class Slow:
    """A kernel that waits until a test lets it go on."""

    def __init__(self):
        self.calls, self.open = 0, threading.Event()

    def __call__(self, x, out):
        self.calls += 1
        assert self.open.wait(LONG)
        np.maximum(x, 0, out=out)


@pytest.fixture
def slow(registered):
    kernel = Slow()
    registered("env.slow", kernel)
    yield kernel
    kernel.open.set()


def test_to_click_often_runs_once(opened, slow):
    async def kernel():
        explorer = opened(mlp().swap("relu0", "env.slow"))
        for _ in range(30):
            explorer.run()
        assert "… running" in explorer.badge("0")
        assert "… waiting" in explorer.badge("1")
        await until(lambda: slow.calls)
        assert "… running" in explorer.badge("1")
        slow.open.set()
        await idle(explorer)
        assert slow.calls == 5  # once for each input

    in_kernel(kernel)


def test_a_new_stage_runs_while_it_is_drawn(opened, monkeypatch):
    explorer, order = opened(mlp()).explorer, []
    draw, run = explorer_module.picture_data, Session.run
    monkeypatch.setattr(
        explorer_module, "picture_data", lambda state: order.append("drawn") or draw(state)
    )
    monkeypatch.setattr(
        Session, "run", lambda *a, **options: order.append("run") or run(*a, **options)
    )
    explorer.dispatch(SetSession(explorer.session.bind()))
    assert order[:2] == ["run", "run"], "the stage, and the first one to compare it with"
    assert "drawn" in order


def test_other_stages_are_shown_and_made_while_one_runs(opened, slow):
    async def kernel():
        explorer = opened(mlp().swap("relu0", "env.slow"))
        explorer.explorer.run()
        await until(lambda: slow.calls)
        assert "stage 1" in explorer.doing
        explorer.choose("0")
        explorer.apply("ToNonDataflow")
        await until(lambda: explorer.explorer.session.current_id == "2")
        assert explorer.status["waiting"] > 0
        slow.open.set()
        await idle(explorer)
        assert set(explorer.explorer.results) == {"0", "1", "2"}
        assert explorer.doing == ""

    in_kernel(kernel)


def test_a_stage_that_is_dropped_while_it_runs_is_known_when_it_is_back(opened, slow):
    async def kernel():
        explorer = opened(mlp().swap("relu0", "env.slow"))
        explorer.explorer.run()
        await until(lambda: slow.calls)
        explorer.send(action="Drop", stage="1")
        slow.open.set()
        await idle(explorer)
        assert [row["id"] for row in explorer.rows] == ["0"]
        explorer.send(action="Undo")
        assert "equal" in explorer.badge("1")

    in_kernel(kernel)


def test_inputs_that_change_while_it_runs_are_those_that_count(opened, slow):
    async def kernel():
        explorer = opened(mlp().swap("relu0", "env.slow"))
        explorer.explorer.run()
        await until(lambda: slow.calls)
        explorer.inputs("zeros")
        slow.open.set()
        await idle(explorer)
        assert {one: result.cases for one, result in explorer.explorer.results.items()} == {
            "0": 1,
            "1": 1,
        }
        assert explorer.explorer.run_errors == {}

    in_kernel(kernel)


def test_a_function_that_is_chosen_while_another_runs_is_run_too(opened, slow):
    async def kernel():
        inputs = {"x": np.ones(4, np.float32)}
        explorer = opened(Session(Two, inputs=inputs, isolate=False))
        explorer.explorer.run()
        await until(lambda: slow.calls)
        explorer.focus("other")
        await until(lambda: explorer.state.function == "other")
        assert "running" not in explorer.badge("0")
        explorer.explorer.run()
        slow.open.set()
        await idle(explorer)
        np.testing.assert_array_equal(explorer.explorer.results["0"].outputs[0][0], 2 * np.ones(4))
        explorer.focus("main")
        await until(lambda: explorer.state.function == "main")
        np.testing.assert_array_equal(explorer.explorer.results["0"].outputs[0][0], np.ones(4))

    in_kernel(kernel)


def test_an_explorer_that_is_closed_while_it_runs_complains_of_nothing(opened, slow, capfd):
    async def kernel():
        explorer = opened(mlp().swap("relu0", "env.slow"))
        explorer.explorer.run()
        await until(lambda: slow.calls)
        explorer.explorer.close()
        slow.open.set()
        await until(lambda: not RUN.turn.locked())
        assert explorer.explorer.run_errors == {}
        assert explorer.message == ""

    in_kernel(kernel)
    assert "Traceback" not in capfd.readouterr().err


def test_to_look_at_many_stages_in_colours_records_each_of_them_once(opened, slow):
    async def kernel():
        explorer = opened(mlp().bind().swap("relu0", "env.slow"))
        explorer.colour("time")
        for stage in "01201201":
            await shown(explorer, stage)
        assert explorer.state.jobs.waiting <= 2
        slow.open.set()
        await idle(explorer)
        assert set(explorer.traces) == {"0", "1", "2"}
        assert explorer.is_coloured

    in_kernel(kernel)


def test_what_was_cancelled_is_not_recorded_again_before_it_is_asked_for(opened, slow):
    async def kernel():
        explorer = opened(mlp().swap("relu0", "env.slow"))
        explorer.colour("time")
        await until(lambda: slow.calls)
        explorer.cancel()
        assert "cancelling" in explorer.doing
        slow.open.set()
        await idle(explorer)
        assert explorer.explorer.run_errors == {}
        await shown(explorer, "0")
        await idle(explorer)
        await shown(explorer, "1")
        assert explorer.doing == ""
        explorer.record()
        await idle(explorer)
        assert explorer.is_coloured

    in_kernel(kernel)


def test_what_goes_wrong_as_an_answer_is_shown_is_said(opened):
    async def kernel():
        explorer = opened(mlp())

        def broken(_):
            raise RuntimeError("no room to draw")

        explorer.explorer.store.subscribe(lambda state, _: state.function_runs.traces and broken(0))
        explorer.record()
        await idle(explorer)
        assert "no room to draw" in explorer.message
        assert explorer.status["isError"]

    in_kernel(kernel)


def test_a_run_that_never_ends_is_cancelled_and_the_next_one_works(opened, registered):
    def endless(_, __):
        while True:
            time.sleep(0.05)

    registered("env.endless", endless)

    async def kernel():
        session = Session(MyModule, params=PARAMS, inputs=DIGITS.images[:5])
        explorer = opened(session.swap("relu0", "env.endless"))
        explorer.explorer.run()
        await until(lambda: "stage 1: running input 1 of 5" in explorer.doing)
        other = opened(session)
        other.explorer.run()
        await until(lambda: "waiting for what another explorer runs" in other.doing)
        other.cancel()
        await idle(other)
        assert "running input 1 of 5" in explorer.doing  # it is not the other's to cancel
        other.explorer.run()
        explorer.cancel()
        await idle(explorer)
        await idle(other)
        assert list(other.explorer.results) == ["0"]
        assert (list(explorer.explorer.results), explorer.explorer.run_errors) == (["0"], {})
        await shown(explorer, "0")
        explorer.run()
        await idle(explorer)
        assert list(explorer.explorer.results) == ["0"]

    in_kernel(kernel)


# --- what is said of it ------------------------------------------------------------------------


def test_nan_are_counted_and_said_to_come_from_the_first_node_that_has_one(opened):
    explorer = opened(Session(Rooted, isolate=False))
    explorer.open("Results")
    explorer.run()
    assert explorer.status["answer"].startswith("⚠ 4 NaN, first at z · ")
    assert explorer.status["answerKind"] == "warn"
    assert explorer.text("irviz-answer") == explorer.status["answer"]
    assert "⚠" in explorer.badge("0")


def test_the_answer_of_one_function_is_not_that_of_another(opened):
    explorer = opened(Session(Rooted, isolate=False))
    explorer.open("Results")
    explorer.run()
    explorer.focus("fine")
    assert explorer.status["answer"] == ""
    assert explorer.text("irviz-answer") == ""
    explorer.run()
    assert explorer.status["answer"].startswith("✓ ran · ")
    explorer.focus("main")
    assert explorer.status["answer"].startswith("⚠ 4 NaN")


def test_a_stage_is_said_to_equal_the_one_that_it_is_compared_with(opened):
    explorer = opened(mlp().apply("ToNonDataflow").apply("LegalizeOps"))
    explorer.run()
    assert re.match(r"✓ equal to 0 · \d of 5 right · \d", explorer.status["answer"])
    explorer.compare("1")
    explorer.explorer.run()
    assert explorer.status["answer"].startswith("✓ equal to 1 · ")


def test_run_of_the_form_is_cancel_while_something_runs(opened, registered):
    entered, go_on = threading.Event(), threading.Event()

    def slow(x, out):
        entered.set()
        go_on.wait(LONG)
        out[:] = x

    registered("env.slow", slow)
    explorer = opened(Session(Two, isolate=False))
    explorer.open("Results")

    @in_kernel
    async def look():
        explorer.press("Run")
        await until(entered.is_set)
        explorer.press("Cancel")
        go_on.set()
        await idle(explorer)

    assert explorer.explorer.results == {}
    assert explorer.button("Run") is not None


def test_the_pass_that_was_found_is_said_until_another_is_looked_for(opened):
    explorer = opened(Session(Rooted, isolate=False).apply("ToNonDataflow"))
    assert explorer.status["found"] == ""
    explorer.explorer.dispatch(FindPass("values"))
    assert explorer.status["found"].startswith("It is none of the passes: ")
    explorer.focus("fine")
    assert explorer.status["found"] == ""
