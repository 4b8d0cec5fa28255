"""What cannot be drawn is said where the picture would be, and no other picture stays there."""

from dataclasses import replace
from unittest.mock import Mock

import pytest
import tvm

from irviz.course import mm_relu
from irviz.explorer.actions import Save
from irviz.explorer.downloads import Saved
from irviz.session import stage_cache
from irviz.session.session import Session
from irviz.session.shown_function import StageView
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
def session(modules):
    """Five stages: as given, legalised, its PrimFuncs, nothing, legalised again."""
    session = Session(modules.SameTwice).apply("LegalizeOps")
    session = session.apply(keep_prim_funcs).apply(keep_nothing).checkout("1")
    return session.apply("LegalizeOps").checkout("0")


@pytest.fixture
def explorer(opened, session):
    """The explorer on the five stages."""
    return opened(session)


def check_drawn(shown, stage_id):
    assert shown.data["stage"] == stage_id
    assert 'class="node' in shown.svg
    assert f"stage {stage_id}" in shown.data["name"]
    assert shown.data["error"] == ""
    assert list(shown.data["nodes"]) != []


def check_failed(shown, stage_id, words):
    assert shown.data["stage"] == stage_id
    assert (shown.svg, shown.data["nodes"]) == ("", {})
    assert f"stage {stage_id}" in shown.data["name"]
    assert (shown.selected, shown.marked, shown.dimmed) == ("", [], [])
    assert words in shown.data["error"]


@pytest.fixture
def unreadable(monkeypatch):
    """Let reading a module that was not read before fail, other than as a refusal."""
    broken = []

    def read(module, *rest, now=stage_cache.read_function):
        if any(module.same_as(one) for one in broken):
            raise RuntimeError("no such <expression>")
        return now(module, *rest)

    monkeypatch.setattr(stage_cache, "read_function", read)
    return broken.append


# --- the shown stage ---------------------------------------------------------------------------


def test_a_stage_without_a_function_says_so_in_the_pictures_place_and_the_next_one_is_drawn(
    explorer,
):
    shown = explorer.canvas
    shown.selected = "y"
    explorer.choose("3")
    check_failed(shown, "3", "This stage has no functions left.")
    assert explorer.state.session.current_id == "3"
    assert explorer.explorer.functions == []
    explorer.choose("1")
    check_drawn(shown, "1")
    assert explorer.state.session.function == explorer.explorer.scene["function"] == "main"


def test_a_pass_that_leaves_no_function_makes_a_stage_that_says_so(explorer):
    explorer.explorer.session = explorer.state.session.apply(keep_nothing)
    check_failed(explorer.canvas, "5", "This stage has no functions left.")
    explorer.send(action="Undo")
    check_drawn(explorer.canvas, "0")


def test_a_stage_that_cannot_be_read_says_so_in_the_pictures_place(opened, session, unreadable):
    unreadable(session.stage("1").module)
    explorer = opened(session)
    shown = explorer.canvas
    shown.selected = "y"
    explorer.choose("1")
    check_failed(shown, "1", "cannot be drawn: no such <expression>")
    assert explorer.explorer.selected == ""
    assert "<h3>module</h3>" in explorer.facts
    explorer.choose("0")
    check_drawn(shown, "0")


def test_an_explorer_that_begins_with_a_stage_that_cannot_be_read_opens(
    opened, modules, unreadable
):
    unreadable(modules.SameTwice)
    explorer = opened(modules.SameTwice)
    check_failed(explorer.canvas, "0", "no such <expression>")
    explorer.apply("LegalizeOps")
    check_drawn(explorer.canvas, "1")


def test_a_picture_that_cannot_be_drawn_says_so_in_its_place(explorer, monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError

    before = StageView.figure
    monkeypatch.setattr(StageView, "figure", fail)
    explorer.choose("1")
    check_failed(explorer.canvas, "1", "cannot be drawn: ZeroDivisionError")
    monkeypatch.setattr(StageView, "figure", before)
    explorer.choose("4")
    check_drawn(explorer.canvas, "4")


def test_a_prim_func_without_blocks_leads_to_its_loops(opened):
    session = Session(mm_relu.MyModule)
    for name in (
        *("LowerInitBlock", "PlanAndUpdateBufferAllocationLocation", "ConvertBlocksToOpaque"),
        *("CompactBufferAllocation", "LowerOpaqueBlock"),
    ):
        session = session.apply(getattr(tvm.s_tir.transform, name)())
    explorer = opened(session)
    words = "No blocks are left to draw: they were lowered. See Loops."
    assert (explorer.canvas.svg, explorer.canvas.data["error"]) == ("", words)
    assert "for " in explorer.explorer.scene["loops"]["svg"]
    explorer.choose("4")
    check_drawn(explorer.canvas, "4")


def test_what_cannot_be_read_is_not_searched_and_named(opened, session, unreadable):
    unreadable(session.stage("1").module)
    explorer = opened(session)
    explorer.choose("1")
    explorer.search("add")
    found = explorer.explorer.found
    assert (found["words"], found["count"]) == ("add", 0)
    assert "'main' cannot be searched: no such <expression>" in found["errors"]


def test_a_plainer_layout_is_said_above_its_picture_until_another_is_drawn(explorer, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(figures, "lay_out", Mock(side_effect=TimeoutError))
        explorer.look_around(explorer.canvas.drawn[0])
    check_drawn(explorer.canvas, "0")
    assert "this is a plainer one" in explorer.canvas.data["note"]
    explorer.look_around()
    assert explorer.canvas.data["note"] == ""


# --- the stage beside it -----------------------------------------------------------------------


def test_a_stage_that_lacks_the_shown_function_says_so_beside_it(explorer):
    explorer.choose("2")
    function = str(explorer.state.session.functions[0])
    explorer.focus(function)
    explorer.compare("0")
    words = f"This stage has no function '{function}': stage 1 (LegalizeOps) makes it."
    check_failed(explorer.other, "0", words)
    assert explorer.other.data["instead"] == ["main"]
    check_drawn(explorer.canvas, "2")


def test_a_function_is_kept_past_a_stage_that_lacks_it(explorer):
    explorer.choose("2")
    words = "This stage has no function 'main': stage 2 (KeepPrimFuncs) removed it."
    check_failed(explorer.canvas, "2", words)
    assert explorer.explorer.scene["function"] == "main"
    assert explorer.explorer.status["words"] == ""
    explorer.choose("1")
    check_drawn(explorer.canvas, "1")
    explorer.choose("2")
    explorer.run()
    assert "choose another function" in explorer.message
    assert explorer.explorer.results.keys() <= {"0", "1"}
    explorer.focus(explorer.canvas.data["instead"][0])
    check_drawn(explorer.canvas, "2")


def test_a_stage_of_another_file_shows_a_function_that_it_has(explorer, modules):
    explorer.focus("main")
    other = Session(modules.SameTwice).apply("LegalizeOps").apply(keep_prim_funcs)
    explorer.explorer.session = explorer.state.session.add_stages(
        [replace(other.current, id="9", parent=None)]
    )
    check_drawn(explorer.canvas, "9")
    explorer.choose("0")
    check_drawn(explorer.canvas, "0")
    assert explorer.explorer.scene["function"] == "main"


def test_a_stage_beside_one_that_cannot_be_drawn_is_drawn_without_marks(explorer):
    explorer.choose("3")
    explorer.compare("0")
    check_failed(explorer.canvas, "3", "no functions left")
    check_drawn(explorer.other, "0")
    assert explorer.other.marked == []


def test_a_stage_that_cannot_be_read_says_so_beside_the_shown_one(opened, session, unreadable):
    unreadable(session.stage("1").module)
    explorer = opened(session)
    explorer.apply("ToNonDataflow")
    explorer.apply("LegalizeOps")
    explorer.choose("0")
    explorer.compare("6")
    check_drawn(explorer.other, "6")
    assert explorer.other.marked
    explorer.compare("1")
    check_failed(explorer.other, "1", "no such <expression>")
    assert explorer.canvas.marked == []
    check_drawn(explorer.canvas, "0")


def test_two_stages_that_cannot_be_compared_are_drawn_and_it_is_said_why(
    opened, session, unreadable
):
    unreadable(session.stage("1").module)
    explorer = opened(session)
    explorer.compare("4")  # by way of stage 1
    check_drawn(explorer.canvas, "0")
    check_drawn(explorer.other, "4")
    assert explorer.explorer.scene["summary"] == "not compared: no such <expression>"
    assert explorer.explorer.scene["changes"] == []


def test_prim_funcs_are_drawn_side_by_side_and_compared_by_their_loops(explorer):
    explorer.choose("1")
    explorer.focus("add")
    explorer.compare("4")
    check_drawn(explorer.canvas, "1")
    check_drawn(explorer.other, "4")
    assert explorer.explorer.scene["summary"] == "the loops do not differ"


# --- files -------------------------------------------------------------------------------------


def test_a_picture_that_cannot_be_saved_is_said(opened, session, unreadable):
    unreadable(session.stage("1").module)
    explorer = opened(session)
    explorer.choose("1")
    explorer.explorer.dispatch(Save(Saved("svg")))
    assert "no such <expression>" in explorer.message
    assert explorer.status["isError"]
    assert explorer.state.file is None
