"""The rail of stages does what the page asks for, and shows what it is told as text."""

import numpy as np
import pytest

from irviz.course.digits import mlp_params
from irviz.course.mlp import MyModule
from irviz.session.session import Session

pytestmark = pytest.mark.worker


@pytest.fixture
def explorer(opened):
    inputs = np.zeros((3, 784), "float32")
    return opened(Session(MyModule, params=mlp_params(), inputs=inputs, isolate=False).bind())


def can_undo_and_redo(explorer):
    return explorer.explorer.canUndo, explorer.explorer.canRedo


def test_what_a_page_refuses_is_said(explorer):
    explorer.send(action="Say", words="a <b> file has more than 8 MB", isError=True)
    assert explorer.message == "a <b> file has more than 8 MB"
    assert explorer.status["isError"]


def test_what_can_be_undone_is_offered(explorer):
    assert can_undo_and_redo(explorer) == (True, False)
    explorer.send(action="Undo")
    assert [row["id"] for row in explorer.rows] == ["0"]
    assert can_undo_and_redo(explorer) == (False, True)
    explorer.send(action="Redo")
    assert [row["id"] for row in explorer.rows] == ["0", "1"]


def test_a_label_that_is_none_is_refused_in_words(explorer):
    explorer.send(action="Rename", stage="1", label=" ")
    assert "needs a label" in explorer.message
    assert explorer.status["isError"]
    explorer.send(action="Rename", stage="1", label="bound")
    assert [row["label"] for row in explorer.rows][1] == "bound"
    assert explorer.message == ""


def test_what_is_open_is_named_after_its_file_or_its_first_stage(explorer, opened, tmp_path):
    explorer.send(action="Rename", stage="0", label="the lecture's")
    assert explorer.explorer.title == "the lecture's"
    path = tmp_path / "saved.irviz"
    explorer.state.session.save(path)
    assert opened(path).explorer.title == "saved.irviz"


def test_a_stage_says_how_many_nodes_differ_from_those_it_was_made_from(explorer):
    explorer.apply("ToNonDataflow")
    assert [row["changes"] for row in explorer.rows] == [-1, 8, 1]
    assert [row["id"] for row in explorer.rows if row["isShown"]] == ["2"]


def test_the_functions_that_can_be_drawn_are_offered_with_their_kinds(explorer):
    functions = {one["name"]: one["kind"] for one in explorer.explorer.functions}
    assert functions == {"main": "Relax", "linear0": "PrimFunc", "relu0": "PrimFunc"}


@pytest.mark.parametrize(
    "content",
    [
        *({}, {"action": "Checkout"}, {"action": "Checkout", "stage": 1}, {"action": "Runs"}),
        *({"action": "Drop", "stage": "0", "a": "b"}, {"action": "OpenFile", "name": "x.py"}),
    ],
)
def test_what_a_page_may_not_ask_for_changes_nothing(explorer, content):
    before = explorer.state
    explorer.send(**content)
    assert explorer.state is before


def test_a_file_that_the_page_sends_is_opened_as_another_first_stage(explorer, modules):
    text = modules.SameTwice.script(show_meta=True)
    explorer.send(action="OpenFile", name="same.py", buffers=[memoryview(text.encode())])
    assert explorer.message == ""
    last = explorer.rows[-1]
    assert (last["label"], last["parent"], last["isShown"]) == ("opened same.py", "", True)
