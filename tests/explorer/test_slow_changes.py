"""While a pass or a text takes long, the explorer answers; a cancelled pass leaves nothing."""

import threading
import time

import pytest
import tvm

from irviz.course.mlp import MyModule
from irviz.explorer import explorer as explorer_module
from irviz.explorer.actions import Apply, Cancel, Checkout, OpenFile, Rename, Say, SetField
from irviz.explorer.explorer import Explorer
from irviz.session.session import Session
from irviz.transforms.passes.as_transform import as_transform
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
    make, made, go = explorer_module.text_data, [], threading.Event()

    def slow(state):
        made.append(state)
        go.wait(LONG)
        return make(state)

    monkeypatch.setattr(explorer_module, "text_data", slow)

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
