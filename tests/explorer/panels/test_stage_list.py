"""The list of stages does what the page asks for, and shows what it is told as text."""

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


def test_what_a_page_refuses_is_said(explorer):
    explorer.send(explorer.tree, action="Say", words="a <b> file has more than 8 MB", is_error=True)
    assert "a &lt;b&gt; file has more than 8 MB" in explorer.html("irviz-message")


def test_what_can_be_undone_is_offered(explorer):
    tree = explorer.tree
    assert (tree.undoable, tree.redoable) == (True, False)
    explorer.send(tree, action="Undo")
    assert [row["id"] for row in tree.rows] == ["0"]
    assert (tree.undoable, tree.redoable) == (False, True)
    explorer.send(tree, action="Redo")
    assert [row["id"] for row in tree.rows] == ["0", "1"]


def test_a_label_that_is_none_is_refused_in_words(explorer):
    explorer.send(explorer.tree, action="Rename", stage="1", label=" ")
    assert "needs a label" in explorer.message
    explorer.send(explorer.tree, action="Rename", stage="1", label="bound")
    assert [row["label"] for row in explorer.tree.rows][1] == "bound"
    assert explorer.message == ""


@pytest.mark.parametrize(
    "content",
    [
        *({}, {"action": "Checkout"}, {"action": "Checkout", "stage": 1}, {"action": "Run"}),
        *({"action": "Drop", "stage": "0", "a": "b"}, {"action": "OpenFile", "name": "x.py"}),
    ],
)
def test_what_a_page_may_not_ask_for_changes_nothing(explorer, content):
    before = explorer.state
    explorer.send(explorer.tree, **content)
    assert explorer.state is before
