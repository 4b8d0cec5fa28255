"""While a pass or a text takes long, the explorer answers; a cancelled pass leaves nothing."""

import asyncio
import gc
import threading
import time

import pytest
import tvm

from irviz.course.mlp import MyModule
from irviz.explorer import explorer as explorer_module
from irviz.explorer import selected_node
from irviz.explorer.actions import (
    Apply,
    Cancel,
    Checkout,
    CompareCopies,
    CompareLayers,
    OpenFile,
    Rename,
    ReplayBranch,
    ReplaySchedule,
    Say,
    SetField,
)
from irviz.explorer.background_actions import SLOW
from irviz.explorer.background_runner import CHANGE
from irviz.explorer.explorer import Explorer
from irviz.explorer.reducer import reduce
from irviz.explorer.state import State
from irviz.session.session import Session
from irviz.transforms.passes.pass_transform import as_transform
from tests.event_loop import LONG, in_kernel, until

pytestmark = pytest.mark.worker


def waits_for(path):
    """Return a pass that ends when a file is there."""

    @tvm.transform.module_pass(opt_level=0, name="Wait")
    def wait(mod, _context):
        while not path.exists():
            time.sleep(0.01)
        return mod

    return as_transform(wait)


@pytest.fixture
def explorer():
    """An explorer of the MLP whose picture is drawn, with its processes."""
    made = Explorer(Session(MyModule).apply("LegalizeOps"))
    yield made
    made.close()


@pytest.fixture
def frozen():
    """Nothing that was imported is looked at by the garbage collector, as in `irviz open`."""
    gc.collect()
    gc.freeze()


def labels(explorer):
    return [stage.label for stage in explorer.session.stages]


def test_while_a_pass_is_applied_messages_are_answered_and_cancel_leaves_nothing(
    explorer, tmp_path
):
    async def kernel():
        before, go = explorer.session, tmp_path / "go"
        explorer.dispatch(Apply(waits_for(go)))
        assert explorer.status["job"] == "applying Wait"
        explorer.dispatch(Rename("1", "lowered"))
        assert labels(explorer)[1:] == ["lowered"]
        explorer.dispatch(Cancel())
        assert explorer.status["words"] == "applying Wait was cancelled"
        assert explorer.status["job"] == ""
        explorer.dispatch(Apply(as_transform("ToNonDataflow")))
        go.touch()
        await until(lambda: len(explorer.session.stages) > 2)
        assert labels(explorer) == [before.stages[0].label, "lowered", "ToNonDataflow"]

    in_kernel(kernel)


def test_passes_are_applied_in_order_each_to_the_stage_it_was_chosen_for(explorer):
    async def kernel():
        explorer.dispatch(Apply(as_transform("FoldConstant")))
        explorer.dispatch(Apply(as_transform("ToNonDataflow")))
        explorer.dispatch(Checkout("0"))
        explorer.dispatch(Rename("1", "lowered"))
        await until(lambda: len(explorer.session.stages) == 4)
        assert labels(explorer)[1:] == ["lowered", "FoldConstant", "ToNonDataflow"]
        assert [stage.parent for stage in explorer.session.stages[2:]] == ["1", "1"]

    in_kernel(kernel)


def test_what_cannot_be_opened_is_told_and_what_was_asked_for_before_is_done(explorer):
    async def kernel():
        explorer.dispatch(Apply(as_transform("FoldConstant")))
        explorer.dispatch(OpenFile("notes.py", b"this is no module"))
        await until(lambda: explorer.status["isError"])
        assert "notes.py" in explorer.status["words"]
        assert labels(explorer)[2:] == ["FoldConstant"]

    in_kernel(kernel)


def test_a_text_that_takes_long_is_made_once_and_shown_when_it_is_there(explorer, monkeypatch):
    make, made, go = explorer_module.iter_text_data, [], threading.Event()

    def slow(state):
        made.append(state)
        go.wait(LONG)
        yield from make(state)

    monkeypatch.setattr(explorer_module, "iter_text_data", slow)

    async def kernel():
        explorer.dispatch(SetField("has_script", True))
        for words in ("one", "two", "three"):
            explorer.dispatch(Say(words))
        assert explorer.status["words"] == "three"
        assert explorer.scripts["current"] is None
        go.set()
        await until(lambda: explorer.scripts["current"])
        assert "def main" in explorer.scripts["current"]["text"]
        assert len(made) == 1

    in_kernel(kernel)


def test_what_is_known_of_a_selected_node_does_not_wait_for_its_history(explorer, monkeypatch):
    node_history, go = selected_node.node_history, threading.Event()

    def slow(*given):
        go.wait(LONG)
        return node_history(*given)

    monkeypatch.setattr(selected_node, "node_history", slow)

    async def kernel():
        explorer.set_state({"selection": {"node": "lv0", "side": "current"}})
        await until(lambda: explorer.details["code"])
        assert not explorer.details["history"]
        go.set()
        await until(lambda: explorer.details["history"])

    in_kernel(kernel)


def sleeps(mod):
    time.sleep(3)
    return mod


def in_the_kernel():
    """Return a pass that sleeps in a thread of this process, as it cannot be sent to another."""

    @tvm.transform.module_pass(opt_level=0, name="Sleep")
    def sleep(mod, _context):
        return sleeps(mod)

    return as_transform(sleep), lambda explorer: not explorer.status["job"]


def in_the_worker():
    """Return a function that sleeps in the worker, which is ended with it."""
    return as_transform(sleeps), lambda _: not CHANGE.turn.locked()


async def longest_wait(explorer, seconds):
    """Send messages all the time; return for how long one was not answered."""
    longest, end, number = 0.0, time.perf_counter() + seconds, 0
    while time.perf_counter() < end:
        sent = time.perf_counter()
        await asyncio.sleep(0)
        explorer.dispatch(Say(str(number)))
        assert explorer.status["words"] == str(number)
        longest, number = max(longest, time.perf_counter() - sent), number + 1
        await asyncio.sleep(0.005)
    return longest


@pytest.mark.usefixtures("frozen")
@pytest.mark.parametrize("slow", [in_the_kernel, in_the_worker])
def test_while_a_pass_sleeps_messages_take_50_ms_and_cancel_300_and_nothing_stays(explorer, slow):
    """Another process may hold up a trial, so the bars are to be met in one of several."""
    waits, cancels = [1.0], [1.0]

    async def trial():
        usual = await longest_wait(explorer, 0.5)
        transform, has_ended = slow()
        explorer.dispatch(Apply(transform))
        waits.append(await longest_wait(explorer, 2) - usual)
        assert explorer.status["job"] == f"applying {transform.label}"
        cancelled = time.perf_counter()
        explorer.dispatch(Cancel())
        await until(lambda: has_ended(explorer))
        cancels.append(time.perf_counter() - cancelled)
        await until(lambda: not CHANGE.turn.locked())

    async def kernel():
        explorer.dispatch(Apply(as_transform("FoldConstant")))  # the processes are ready by then
        await until(lambda: len(explorer.session.stages) == 3)
        await until(lambda: not (explorer.status["job"] or explorer.store.state.jobs.keys))
        before, runs = explorer.session, explorer.store.state.runs
        for _ in range(5):
            if min(waits) > 0.05 or min(cancels) > 0.3:
                await trial()
        await asyncio.sleep(0.1)
        assert explorer.session is before
        assert explorer.store.state.runs == runs

    in_kernel(kernel)
    assert min(waits) <= 0.05
    assert min(cancels) <= 0.3


def test_the_state_alone_transforms_and_opens_nothing():
    state, transform = State.of(Session(MyModule)), as_transform("LegalizeOps")
    slow = [
        *(Apply(transform), OpenFile("notes.py", b""), ReplayBranch("0"), ReplaySchedule("f", ())),
        *(CompareCopies("lv", 0, 1), CompareLayers("a", "b")),
    ]
    assert {type(one) for one in slow} == set(SLOW)
    assert all(reduce(state, one) is state for one in slow)
