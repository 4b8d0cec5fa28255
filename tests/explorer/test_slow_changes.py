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

LONG = 30.0


def waits_for(path):
    """Return a pass that ends when a file is there."""

    @tvm.transform.module_pass(opt_level=0, name="Wait")
    def wait(mod, _context):
        while not path.exists():
            time.sleep(0.01)
        return mod

    return as_transform(wait)


def in_kernel(test):
    """Run a test as a kernel runs cells: with an event loop in which widgets are told."""
    asyncio.run(test())


async def until(check):
    end = time.monotonic() + LONG
    while not check():
        assert time.monotonic() < end, "it takes too long"
        await asyncio.sleep(0.005)


@pytest.fixture
def explorer():
    """An explorer of the MLP whose picture is drawn, with its processes."""
    made = Explorer(Session(MyModule).apply("LegalizeOps"))
    yield made
    made.close()


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
