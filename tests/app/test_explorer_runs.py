# ruff: noqa: F841, N805, N812, RET504
# TVMScript is read by TVM, not run by Python: it has its own rules for names.
"""The explorer stays alive and true to what it shows, whatever runs and while it runs."""

import asyncio
import re
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R

import irviz
from irviz.app.session import Session
from irviz.course.digits import digits, mlp_params
from irviz.course.mlp import MyModule
from irviz.transforms.kernels import library

PARAMS, DIGITS = mlp_params(), digits()
LONG = 30


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


@pytest.fixture
def registered():
    """Registers a kernel that is known while a test lasts."""
    before = dict(library._kernels)
    yield lambda name, function: irviz.library.register(name, "(...)->(...)")(function)
    for name in library._kernels.keys() - before.keys():
        del library._kernels[name]


def mlp(**facts):
    inputs = DIGITS.images[:5]
    return Session(
        MyModule, params=PARAMS, inputs=inputs, labels=DIGITS.labels[:5], isolate=False, **facts
    )


def said(explorer):
    return re.sub("<[^>]*>", "", explorer._message.widget.value)


def part(explorer):
    explorer._evidence.part.click()


def colour(explorer, by):
    explorer._evidence.colours.value = by


def badge(explorer, stage):
    return next(row["badge"] for row in explorer._stages.widget.rows if row["id"] == stage)


def doing(explorer):
    hidden = explorer._runs.status.layout.display == "none"
    return "" if hidden else re.sub("<[^>]*>", "", explorer._runs._run._doing.value)


def overlaid(explorer):
    return "tinted" in explorer._pane.canvas.svg


def in_kernel(test):
    """Run a test as a kernel runs cells: with an event loop in which widgets are told."""
    asyncio.run(test())


async def until(check):
    deadline = time.monotonic() + LONG
    while not check():
        assert time.monotonic() < deadline, "it takes too long"
        await asyncio.sleep(0.005)


async def idle(explorer):
    await until(lambda: not explorer._runs.results.background.name)


# --- whatever runs -----------------------------------------------------------------------------


def test_a_prim_func_alone_runs_and_is_not_recorded(modules):
    explorer = irviz.explore(modules.lone_prim_func())
    explorer.run()
    assert list(explorer.results) == ["0"]
    assert explorer._evidence._recording.layout.display == "none"
    colour(explorer, "time")
    assert not overlaid(explorer)
    assert "failed" not in badge(explorer, "0")


def test_a_function_without_parameters_runs_and_is_recorded(modules):
    explorer = irviz.explore(Session(modules.NoParameters, isolate=False))
    explorer.run()
    assert explorer.results["0"].outputs[0].shape == (1, 2, 2)
    colour(explorer, "time")
    assert overlaid(explorer)


def test_a_function_with_effects_runs_and_is_recorded(capfd):
    explorer = irviz.explore(Session(Told, isolate=False))
    colour(explorer, "time")
    assert explorer.run_errors == {}
    assert overlaid(explorer)
    assert "so it is" in capfd.readouterr().out


def test_the_passes_of_a_recording_are_run_compared_and_coloured():
    with irviz.record() as recording:
        relax.transform.ToNonDataflow()(relax.transform.LegalizeOps()(MyModule))
    session = recording.session()
    explorer = irviz.explore(replace(session, params=PARAMS, isolate=False))
    explorer._choose(session.stages[-1].id)
    explorer.run()
    assert len(explorer.results) == 2
    colour(explorer, "time")
    assert overlaid(explorer)
    part(explorer)
    assert "do not part" in said(explorer)


def test_a_function_has_results_of_its_own(modules):
    inputs = {"x": np.ones(4, np.float32)}
    explorer = irviz.explore(Session(modules.CalledInCalled, inputs=inputs, isolate=False))
    explorer.run()
    explorer._focus("layer")
    assert explorer.results == {}
    assert "not run" in badge(explorer, "0")
    explorer.run()
    np.testing.assert_array_equal(explorer.results["0"].outputs[0][0], 4 * np.ones(4))
    explorer._focus("main")
    assert list(explorer.results) == ["0"]


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


def test_to_click_often_runs_once(slow):
    async def kernel():
        explorer = irviz.explore(mlp().swap("relu0", "env.slow"))
        for _ in range(30):
            explorer._runs._run._button.click()
        assert "… running" in badge(explorer, "0")
        assert "… waiting" in badge(explorer, "1")
        await until(lambda: slow.calls)
        assert "… running" in badge(explorer, "1")
        slow.open.set()
        await idle(explorer)
        assert slow.calls == 5  # once for each input

    in_kernel(kernel)


def test_other_stages_are_shown_and_made_while_one_runs(slow):
    async def kernel():
        explorer = irviz.explore(mlp().swap("relu0", "env.slow"))
        explorer.run()
        await until(lambda: slow.calls)
        assert "stage 1" in doing(explorer)
        explorer._choose("0")
        explorer._act(lambda session: session.apply("ToNonDataflow"))
        assert explorer.session.shown_id == "2"
        assert "more to do" in doing(explorer)
        slow.open.set()
        await idle(explorer)
        assert set(explorer.results) == {"0", "1", "2"}
        assert doing(explorer) == ""

    in_kernel(kernel)


def test_a_stage_that_is_dropped_while_it_runs_is_known_when_it_is_back(slow):
    async def kernel():
        explorer = irviz.explore(mlp().swap("relu0", "env.slow"))
        explorer.run()
        await until(lambda: slow.calls)
        explorer._act(lambda session: session.drop("1"))
        slow.open.set()
        await idle(explorer)
        assert [row["id"] for row in explorer._stages.widget.rows] == ["0"]
        explorer._act(Session.undo)
        assert "equal" in badge(explorer, "1")

    in_kernel(kernel)


def test_inputs_that_change_while_it_runs_are_those_that_count(slow):
    async def kernel():
        explorer = irviz.explore(mlp().swap("relu0", "env.slow"))
        explorer.run()
        await until(lambda: slow.calls)
        explorer._runs._give("zeros", 0, {})
        slow.open.set()
        await idle(explorer)
        assert {one: result.cases for one, result in explorer.results.items()} == {"0": 1, "1": 1}
        assert explorer.run_errors == {}

    in_kernel(kernel)


def test_a_function_that_is_chosen_while_another_runs_is_run_too(slow):
    async def kernel():
        inputs = {"x": np.ones(4, np.float32)}
        explorer = irviz.explore(Session(Two, inputs=inputs, isolate=False))
        explorer.run()
        await until(lambda: slow.calls)
        explorer._focus("other")
        assert "running" not in badge(explorer, "0")
        explorer.run()
        slow.open.set()
        await idle(explorer)
        np.testing.assert_array_equal(explorer.results["0"].outputs[0][0], 2 * np.ones(4))
        explorer._focus("main")
        np.testing.assert_array_equal(explorer.results["0"].outputs[0][0], np.ones(4))

    in_kernel(kernel)


def test_an_explorer_that_is_closed_while_it_runs_complains_of_nothing(slow, capfd):
    async def kernel():
        explorer = irviz.explore(mlp().swap("relu0", "env.slow"))
        explorer.run()
        await until(lambda: slow.calls)
        for widget in (explorer.widget, explorer._pane.canvas, explorer._stages.widget):
            widget.close()
        slow.open.set()
        await idle(explorer)
        assert explorer.run_errors == {}
        assert said(explorer) == ""

    in_kernel(kernel)
    assert "Traceback" not in capfd.readouterr().err


def test_to_look_at_many_stages_in_colours_records_each_of_them_once(slow):
    async def kernel():
        explorer = irviz.explore(mlp().bind().swap("relu0", "env.slow"))
        colour(explorer, "time")
        for stage in "01201201":
            explorer._choose(stage)
        assert explorer._runs.results.background.waiting == 2
        slow.open.set()
        await idle(explorer)
        assert set(explorer._runs.results.traces) == {"0", "1", "2"}
        assert overlaid(explorer)

    in_kernel(kernel)


def test_what_was_cancelled_is_not_recorded_again_before_it_is_asked_for(slow):
    async def kernel():
        explorer = irviz.explore(mlp().swap("relu0", "env.slow"))
        colour(explorer, "time")
        await until(lambda: slow.calls)
        explorer._runs._run._cancel.click()
        assert "cancelling" in doing(explorer)
        slow.open.set()
        await idle(explorer)
        assert explorer.run_errors == {}
        explorer._choose("0")
        await idle(explorer)
        explorer._choose("1")
        assert doing(explorer) == ""
        explorer._evidence._recording.click()
        await idle(explorer)
        assert overlaid(explorer)

    in_kernel(kernel)


def test_what_goes_wrong_as_an_answer_is_shown_is_said(monkeypatch):
    async def kernel():
        explorer = irviz.explore(mlp())

        def broken():
            raise RuntimeError("no room to draw")

        monkeypatch.setattr(explorer._evidence, "_redraw", broken)
        explorer._evidence._recording.click()
        await idle(explorer)
        assert "no room to draw" in said(explorer)
        assert "irviz-error" in explorer._message.widget.value

    in_kernel(kernel)


def test_a_run_that_never_ends_is_cancelled_and_the_next_one_works(registered):
    def endless(_, __):
        while True:
            time.sleep(0.05)

    registered("env.endless", endless)

    async def kernel():
        session = Session(MyModule, params=PARAMS, inputs=DIGITS.images[:5])
        explorer = irviz.explore(session.swap("relu0", "env.endless"))
        explorer.run()
        await until(lambda: "stage 1: running input 1 of 5" in doing(explorer))
        other = irviz.explore(session)
        other.run()
        await until(lambda: "waiting for what another explorer runs" in doing(other))
        other._runs._run._cancel.click()
        await idle(other)
        assert "running input 1 of 5" in doing(explorer)  # it is not the other's to cancel
        other.run()
        explorer._runs._run._cancel.click()
        await idle(explorer)
        await idle(other)
        assert list(other.results) == ["0"]
        assert (list(explorer.results), explorer.run_errors) == (["0"], {})
        explorer._choose("0")
        explorer._runs.run_again()
        await idle(explorer)
        assert list(explorer.results) == ["0"]

    in_kernel(kernel)
