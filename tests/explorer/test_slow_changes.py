"""While a pass takes long, the explorer answers, and a cancelled pass leaves nothing behind."""

import asyncio
import time

import pytest
import tvm

from irviz.course.mlp import MyModule
from irviz.explorer.actions import Apply, Cancel, Checkout, OpenFile, Rename
from irviz.explorer.explorer import Explorer
from irviz.session.session import Session
from irviz.transforms.passes.as_transform import as_transform

pytestmark = pytest.mark.worker

SECONDS = 3.0
LONG = 30.0


@tvm.transform.module_pass(opt_level=0, name="Sleep")
def sleep(mod, _context):
    time.sleep(SECONDS)
    return mod


def in_kernel(test):
    """Run a test as a kernel runs cells: with an event loop in which widgets are told."""
    asyncio.run(test())


async def longest_wait(until):
    """Return how late a timer was at most, until something holds."""
    longest, end = 0.0, time.monotonic() + LONG
    while not until():
        began = time.monotonic()
        assert began < end, "it takes too long"
        await asyncio.sleep(0.005)
        longest = max(longest, time.monotonic() - began - 0.005)
    return longest


@pytest.fixture
def explorer():
    """An explorer of the MLP whose picture is drawn, with its processes."""
    made = Explorer(Session(MyModule).apply("LegalizeOps"))
    yield made
    made.close()


def labels(explorer):
    return [stage.label for stage in explorer.session.stages]


def test_while_a_pass_sleeps_messages_are_answered_and_cancel_leaves_nothing(explorer):
    """The figures are measured by bench/page.py; here a busy machine may be ten times as slow."""

    async def kernel():
        before = explorer.session
        explorer.dispatch(Apply(as_transform(sleep)))
        assert explorer.status["job"] == "applying Sleep"
        end = time.monotonic() + 1.0
        assert await longest_wait(lambda: time.monotonic() > end) < 0.5
        began = time.monotonic()
        explorer.dispatch(Cancel())
        assert time.monotonic() - began < 0.5 * SECONDS
        assert (explorer.status["job"], explorer.status["words"]) == (
            "",
            "applying Sleep was cancelled",
        )
        assert explorer.session is before
        explorer.dispatch(Apply(as_transform("ToNonDataflow")))
        await longest_wait(lambda: len(explorer.session.stages) > 2)
        await asyncio.sleep(1.2 * SECONDS)
        assert labels(explorer)[2:] == ["ToNonDataflow"]

    in_kernel(kernel)


def test_passes_are_applied_in_order_each_to_the_stage_it_was_chosen_for(explorer):
    async def kernel():
        explorer.dispatch(Apply(as_transform("FoldConstant")))
        explorer.dispatch(Apply(as_transform("ToNonDataflow")))
        explorer.dispatch(Checkout("0"))
        explorer.dispatch(Rename("1", "lowered"))
        await longest_wait(lambda: len(explorer.session.stages) == 4)
        assert labels(explorer)[1:] == ["lowered", "FoldConstant", "ToNonDataflow"]
        assert [stage.parent for stage in explorer.session.stages[2:]] == ["1", "1"]

    in_kernel(kernel)


def test_what_cannot_be_opened_is_told_and_what_was_asked_for_before_is_done(explorer):
    async def kernel():
        explorer.dispatch(Apply(as_transform("FoldConstant")))
        explorer.dispatch(OpenFile("notes.py", b"this is no module"))
        await longest_wait(lambda: explorer.status["isError"])
        assert "notes.py" in explorer.status["words"]
        assert labels(explorer)[2:] == ["FoldConstant"]

    in_kernel(kernel)
