"""The reducer decides at once: what takes long is asked for, and comes with another action."""

import asyncio
import sys
import threading
from collections import Counter

import numpy as np
import pytest

from irviz.course.mlp import MyModule
from irviz.explorer import actions
from irviz.explorer.actions import Action
from irviz.explorer.background_actions import look, perform
from irviz.explorer.downloads import Saved
from irviz.explorer.reducer import reduce
from irviz.explorer.selected_node import location
from irviz.explorer.stage_pictures import view_or_none
from irviz.explorer.state import ChangesKey, File, Question, RunKey, State
from irviz.model.runs.execution_trace import Trace
from irviz.model.runs.run_result import RunResult
from irviz.session.session import Session
from irviz.session.shown_function import StageView
from irviz.transforms.passes.pass_transform import as_transform
from irviz.view.figure import Figure
from tests.event_loop import LONG, until

pytestmark = pytest.mark.worker

SLOW_PACKAGES = (
    *("irviz.model.folding", "irviz.model.matching", "irviz.model.diff", "irviz.view.graph"),
    *(
        "irviz.explorer.stage_pictures",
        "irviz.session.shown_function",
        "irviz.session.stable_layout",
    ),
    *("irviz.session.stage_cache", "irviz.session.stage_diff", "irviz.ir.function_graph"),
)
"""What reads, compares, folds, lays out and draws functions."""


@pytest.fixture
def session(modules):
    """Three stages, of which nothing was drawn or read."""
    return Session(modules.EveryKind).apply("LegalizeOps").apply("FuseOps")


@pytest.fixture
def state(session):
    return State.of(session)


def every_action(session):
    transform = as_transform("FoldConstant")
    trace = Trace("main", {}, 1.0, 1.0, 1.0, 0)
    result = RunResult((np.ones(2),), 1.0, trace=trace)
    state = State.of(session)
    return [
        *(actions.Checkout("1"), actions.Apply(transform), actions.TryTransform(transform)),
        *(actions.ReplaySchedule("f", ()), actions.ReplayBranch("0")),
        *(actions.Rename("1", "mine"), actions.Drop("2"), actions.Undo(), actions.Redo()),
        *(actions.OpenFile("notes.py", b""), actions.SetSession(session.checkout("0"))),
        *(actions.ChooseLoop("body", adds=True), actions.DoStep("parallel", "", [])),
        actions.Changed(actions.Apply(transform), session, session.checkout("1"), "2"),
        *(actions.SetSession(Session(MyModule)), actions.SetInputs("random", 3)),
        *(actions.SetLimit("seconds", 3.0), actions.Look(actions.Checkout("1"))),
        actions.Show(state, state),
        *(actions.SetField("search", "add"), actions.SetField("prim_func", "add")),
        actions.Write((actions.SetField("search", "add"), actions.Select("called"))),
        *(actions.Focus("fused"), actions.Focus("twice"), actions.Select("called")),
        *(actions.Select("called", "reference"), actions.Toggle("called"), actions.ToggleAll(True)),
        *(actions.ShowCopy("repeat:lv", 1), actions.CompareCopies("lv", 0, 1)),
        *(actions.CompareLayers("a", "b"), actions.LookAround("called"), actions.LookAround()),
        *(actions.Reveal("main", "called"), actions.Reveal("main", "called", "0")),
        *(actions.Compare("0"), actions.Compare(""), actions.ColourBy("time")),
        *(actions.ColourBy("difference"), actions.ShowFirstDifference(), actions.Say("words")),
        *(actions.Run(), actions.RecordValues(), actions.Measure(), actions.MeasureSteps()),
        *(actions.FindPass("values"), actions.FetchValue()),
        actions.SetField("question", Question(actions.Run(), frozenset("a"))),
        *(actions.Trust(actions.Run(), frozenset()), actions.Answer(True), actions.Answer(False)),
        *(actions.Cancel(), actions.Report(ChangesKey(), {(session.current, "main"): 3})),
        *(actions.Report(RunKey("main", one, 0, 0), result) for one in ("0", "2")),
        *(actions.Save(Saved("svg")), actions.SaveDrawing(Figure("<svg/>", 1.0, 1.0), "a.svg")),
        *(
            actions.CopyScript(),
            actions.SetField("file", File("a", b"")),
            actions.Copied("text"),
        ),
    ]


def called(act):
    """Return how often something slow was called."""
    found = Counter()

    def profile(frame, event, _):
        name = frame.f_globals.get("__name__", "")
        if event == "call" and name.startswith(SLOW_PACKAGES):
            found[f"{name}.{frame.f_code.co_name}"] += 1

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        act()
    finally:
        sys.setprofile(before)
    return found


def test_no_action_reads_compares_folds_or_draws_a_function(state):
    done = every_action(state.session)
    assert {type(one) for one in done} == set(Action.__subclasses__())
    begun = [state, reduce(state, actions.Compare("0")), reduce(state, actions.ColourBy("time"))]
    begun.append(reduce(state, actions.Select("called")))
    for start in begun:
        for action in done:
            assert not called(lambda start=start, action=action: reduce(start, action)), action
    assert called(lambda: view_or_none(state, "current")), "it would be noticed"


def test_actions_one_after_another_draw_nothing_either(state):
    def all_of_them():
        after = state
        for action in every_action(state.session):
            after = reduce(after, action)

    assert not called(all_of_them)


def test_what_is_selected_before_its_picture_is_drawn_is_found_in_it(state):
    after = reduce(state, actions.Select("called"))
    assert location(after).node == "called"


def test_what_needs_a_picture_is_asked_for_and_done_in_order(state):
    toggle, around = actions.Toggle("called"), actions.LookAround("called", 2)
    after = reduce(reduce(state, toggle), around)
    assert (after.asked, after.views) == ((toggle, around), {})
    shown = look(after)
    assert shown.asked == ()
    assert (shown.view.around, shown.view.steps) == ("called", 2)
    assert shown.view.choices == perform(state, toggle).view.choices


def test_what_was_drawn_is_shown_as_it_was_drawn_though_something_else_changed(state):
    asked = reduce(state, actions.Toggle("called"))
    drawn = actions.Show(asked, look(asked))
    after = reduce(reduce(asked, actions.SetField("search", "add")), drawn)
    assert (after.search, after.asked) == ("add", ())
    assert after.view is drawn.after.view


def test_what_was_asked_for_is_drawn_again_where_the_reader_changed_the_same(state):
    wanted = actions.Reveal("main", "called")
    asked = reduce(state, wanted)
    drawn = actions.Show(asked, look(asked))
    after = reduce(reduce(asked, actions.Select("x")), drawn)
    assert (after.selection.node, after.asked) == ("x", (wanted,))
    assert after.asked is not asked.asked, "else nobody draws it"
    assert reduce(after, drawn) is after, "it is out of date"
    assert look(after).selection.node == "called"


def test_a_kernel_does_not_wait_for_what_is_opened_by_a_program(opened, session, monkeypatch):
    explorer, gate, before = opened(session), threading.Event(), StageView.figure

    def figure(view, *given, **options):
        assert threading.current_thread() is not threading.main_thread(), "the kernel is held up"
        assert gate.wait(LONG)
        return before(view, *given, **options)

    async def kernel():
        explorer.explorer.dispatch(actions.Reveal("main", "called", "0"))
        assert explorer.state.stage_id == "2"
        gate.set()
        await until(lambda: explorer.state.stage_id == "0")
        assert explorer.canvas.selected == "called"

    monkeypatch.setattr(StageView, "figure", figure)
    asyncio.run(kernel())
