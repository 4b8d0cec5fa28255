"""What cannot be drawn is said where the picture would be, and no other picture stays there."""

import re

import pytest
import tvm

from irviz.explorer.actions import SaveStage
from irviz.explorer.view_model import node_facts
from irviz.session import stage_cache
from irviz.session.session import Session
from irviz.session.visible_function import StageView
from irviz.view.graph import graph_figure as figures

pytestmark = pytest.mark.worker


@tvm.transform.module_pass(opt_level=0, name="KeepPrimFuncs")
def keep_prim_funcs(mod, _):
    """Leave no Relax function, as the second half of a build does."""
    return tvm.IRModule({g: f for g, f in mod.functions_items() if g.name_hint != "main"})


@tvm.transform.module_pass(opt_level=0, name="KeepNothing")
def keep_nothing(_, __):
    return tvm.IRModule({})


@pytest.fixture
def explorer(opened, modules):
    """The explorer on five stages: as given, legalised, its PrimFuncs, nothing, legalised again."""
    session = Session(modules.SameTwice).apply("LegalizeOps")
    session = session.apply(keep_prim_funcs).apply(keep_nothing).checkout("1")
    return opened(session.apply("LegalizeOps").checkout("0"))


def current(explorer):
    """Return the parts of the current stage's picture."""
    return explorer.pictures[0]


def beside(explorer):
    """Return the parts of the picture of the stage that it is compared with."""
    return explorer.pictures[1]


def compare(explorer, stage_id):
    explorer.find("irviz-compare-with").value = stage_id


def check_drawn(shown, stage_id):
    assert f"stage {stage_id}:" in shown.caption.value
    assert 'class="node' in shown.canvas.svg
    assert f"stage {stage_id}" in shown.canvas.label
    assert shown.canvas.layout.display == ""
    assert "cannot be drawn" not in shown.words.value


def check_failed(shown, stage_id, words):
    assert f"stage {stage_id}:" in shown.caption.value
    assert shown.canvas.svg == ""
    assert f"stage {stage_id}" in shown.canvas.label
    assert shown.canvas.layout.display == "none"
    assert (shown.canvas.selected, shown.canvas.highlighted, shown.canvas.dimmed) == ("", [], [])
    assert 'role="alert"' in shown.words.value
    assert re.search(words, shown.words.value)


@pytest.fixture
def unreadable(monkeypatch):
    """Let reading a module fail, other than as a refusal."""
    broken = []

    def read(module, *rest, now=stage_cache.read_function):
        if any(module.same_as(one) for one in broken):
            raise RuntimeError("no such <expression>")
        return now(module, *rest)

    monkeypatch.setattr(stage_cache, "read_function", read)
    stage_cache._read.cache_clear()
    return broken.append


# --- the shown stage ---------------------------------------------------------------------------


def test_a_stage_without_a_function_says_so_in_the_pictures_place_and_the_next_one_is_drawn(
    explorer,
):
    shown = current(explorer)
    shown.canvas.selected = "y"
    explorer.choose("3")
    check_failed(shown, "3", "This stage cannot be drawn: the module has no function")
    assert explorer.state.session.current_id == "3"
    assert explorer.find("irviz-functions").value == ""
    explorer.choose("1")
    check_drawn(shown, "1")
    assert explorer.state.session.function == explorer.find("irviz-functions").value == "main"


def test_a_pass_that_leaves_no_function_makes_a_stage_that_says_so(explorer):
    explorer.explorer.session = explorer.state.session.apply(keep_nothing)
    check_failed(current(explorer), "5", "has no function")
    explorer.send(explorer.tree, action="Undo")
    check_drawn(current(explorer), "0")


def test_a_stage_that_cannot_be_read_says_so_in_the_pictures_place(explorer, unreadable):
    unreadable(explorer.state.session.stage("1").module)
    shown = current(explorer)
    shown.canvas.selected = "y"
    explorer.choose("1")
    check_failed(shown, "1", "cannot be drawn: no such &lt;expression&gt;")
    assert explorer.explorer.selected == ""
    assert "<h4>module</h4>" in node_facts(explorer.state)
    explorer.choose("0")
    check_drawn(shown, "0")


def test_an_explorer_that_begins_with_a_stage_that_cannot_be_read_opens(
    opened, modules, unreadable
):
    unreadable(modules.SameTwice)
    explorer = opened(modules.SameTwice)
    check_failed(current(explorer), "0", "no such &lt;expression&gt;")
    explorer.apply("LegalizeOps")
    check_drawn(current(explorer), "1")


def test_a_picture_that_cannot_be_drawn_says_so_in_its_place(explorer, monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError

    before = StageView.figure
    monkeypatch.setattr(StageView, "figure", fail)
    explorer.choose("1")
    check_failed(current(explorer), "1", "cannot be drawn: ZeroDivisionError")
    monkeypatch.setattr(StageView, "figure", before)
    explorer.choose("2")
    check_drawn(current(explorer), "2")


def test_what_cannot_be_read_is_not_searched_and_named(explorer, unreadable):
    unreadable(explorer.state.session.stage("1").module)
    explorer.choose("1")
    explorer.find("irviz-find").value = "add"
    assert "0 found" in explorer.text("irviz-found-count")
    assert "cannot be searched: no such &lt;expression&gt;" in explorer.html("irviz-found-count")


def test_a_plainer_layout_is_said_above_its_picture_until_another_is_drawn(explorer, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(figures, "lay_out", lambda *_: None)
        explorer.choose("1")
    check_drawn(current(explorer), "1")
    assert "this is a plainer one" in current(explorer).words.value
    explorer.choose("0")
    assert current(explorer).words.value == ""


# --- the stage beside it -----------------------------------------------------------------------


def test_a_stage_that_lacks_the_shown_function_says_so_beside_it(explorer):
    explorer.choose("2")
    compare(explorer, "0")
    function = explorer.state.session.function
    assert function != "main"
    check_failed(beside(explorer), "0", f"the module has no function &#39;{function}&#39;")
    check_drawn(current(explorer), "2")
    explorer.choose("1")  # which has both, and main is looked at again
    check_drawn(beside(explorer), "0")


def test_a_stage_beside_one_that_cannot_be_drawn_is_drawn_without_marks(explorer):
    explorer.choose("3")
    compare(explorer, "0")
    check_failed(current(explorer), "3", "has no function")
    check_drawn(beside(explorer), "0")
    assert beside(explorer).canvas.highlighted == []


def test_a_stage_that_cannot_be_read_says_so_beside_the_shown_one(explorer, unreadable):
    unreadable(explorer.state.session.stage("1").module)
    compare(explorer, "4")
    check_drawn(beside(explorer), "4")
    assert beside(explorer).canvas.highlighted
    compare(explorer, "1")
    check_failed(beside(explorer), "1", "no such &lt;expression&gt;")
    assert explorer.canvas.highlighted == []
    check_drawn(current(explorer), "0")


# --- files -------------------------------------------------------------------------------------


def test_a_picture_that_cannot_be_saved_is_said(explorer, unreadable, tmp_path):
    unreadable(explorer.state.session.stage("1").module)
    explorer.choose("1")
    explorer.explorer.dispatch(SaveStage(str(tmp_path / "a.svg"), "course", "up"))
    assert "no such <expression>" in explorer.message
    assert list(tmp_path.iterdir()) == []
