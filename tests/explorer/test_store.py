"""One state: all that is shown is of the current stage, function and node."""

import re

import pytest

from irviz.course.digits import digits, mlp_params
from irviz.course.mlp import MyModule
from irviz.explorer.actions import (
    Apply,
    Checkout,
    ColourBy,
    Compare,
    Focus,
    Look,
    LookAround,
    Rename,
    ReplaySchedule,
    Say,
    Select,
    SetField,
    SetSession,
    Show,
    Undo,
)
from irviz.explorer.background_actions import look
from irviz.explorer.selected_node import call_key, location
from irviz.explorer.stage_pictures import scene
from irviz.explorer.state import Selection, State
from irviz.explorer.store import Store
from irviz.model.loop_nest import LoopAddress
from irviz.session.session import Session
from irviz.transforms.kernels.swap import Swap
from irviz.transforms.schedules.schedule_step import schedule_step

pytestmark = pytest.mark.worker

PARAMS, DIGITS = mlp_params(), digits()


def mlp():
    inputs = DIGITS.images[:5]
    return Session(MyModule, params=PARAMS, inputs=inputs, isolate=False)


@pytest.fixture
def store():
    return Store(State.of(mlp().bind()))


# --- dispatching -------------------------------------------------------------------------------


def test_subscribers_are_told_once_of_each_action_that_changed_something(store):
    seen = []
    store.subscribe(lambda state, before: seen.append((state.stage_id, before.stage_id)))
    assert seen == [("1", "1")]
    store.dispatch(Checkout("0"))
    store.dispatch(Focus("main"))  # it is looked at already
    assert seen == [("1", "1"), ("0", "1")]


def test_an_action_from_inside_of_a_subscriber_waits_until_all_were_told(store):
    seen = []

    def first(state, _):
        seen.append(("first", state.stage_id))
        if state.stage_id == "0":
            store.dispatch(Checkout("1"))

    store.subscribe(first)
    store.subscribe(lambda state, _: seen.append(("second", state.stage_id)))
    seen.clear()
    store.dispatch(Checkout("0"))
    assert seen == [("first", "0"), ("second", "0"), ("first", "1"), ("second", "1")]


def test_a_subscriber_that_fails_is_said_and_the_others_are_told(store, caplog):
    seen = []

    def broken(state, _):
        if state.stage_id == "0":
            raise RuntimeError("no room")

    store.subscribe(broken)
    store.subscribe(lambda state, _: seen.append(state.stage_id))
    store.dispatch(Checkout("0"))
    assert "0" in seen
    assert (store.state.message.words, store.state.message.is_error) == ("no room", True)
    assert "no room" in caplog.text  # with its traceback


def test_an_action_that_is_refused_changes_the_words_alone(store):
    before = store.state
    store.dispatch(Rename("1", " "))
    assert "needs a label" in store.state.message.words
    assert store.state.failure.action == Rename("1", " ")
    assert store.state.session is before.session


def test_actions_undo_what_actions_did(store):
    before = store.state.session
    store.dispatch(Apply(Swap("relu0", "env.relu")))
    assert [stage.id for stage in store.state.session.stages] == ["0", "1", "2"]
    store.dispatch(Undo())
    assert store.state.session.stages == before.stages


def test_what_was_asked_for_is_done_once_and_keeps_what_changed_meanwhile(store):
    store.dispatch(Look(Checkout("1")))
    store.dispatch(Look(Checkout("0")))
    before = store.state
    assert (before.stage_id, before.asked) == ("1", (Checkout("0"),))
    drawn = Show(before, look(before))
    store.dispatch(SetField("search", "words"))
    store.dispatch(drawn)
    after = store.state
    assert (after.stage_id, after.search, after.asked) == ("0", "words", ())
    store.dispatch(Checkout("1"))
    store.dispatch(drawn)
    assert store.state.stage_id == "1"


# --- the selected node -------------------------------------------------------------------------


def test_one_node_is_selected_in_one_of_the_two_pictures(opened):
    """The halo, what is said of the node, and the buttons are of the node that was clicked."""
    explorer = opened(mlp().bind())
    explorer.explorer.dispatch(Compare("0"))
    explorer.canvas.selected = "lv0"
    explorer.other.selected = "x"
    assert (explorer.canvas.selected, explorer.other.selected) == ("", "x")
    assert "<h3>x</h3>" in explorer.facts
    assert explorer.explorer.details["side"] == "reference"
    assert call_key(explorer.state) is None  # no button may act on lv0 of the other stage
    explorer.canvas.selected = "lv0"
    assert (explorer.canvas.selected, explorer.other.selected) == ("lv0", "")
    assert "<h3>lv0</h3>" in explorer.facts
    assert explorer.explorer.details["side"] == "current"
    assert call_key(explorer.state).node == "lv0"
    assert explorer.explorer.selected == "lv0"


def test_a_node_of_the_other_stage_is_selected_no_more_when_that_is_another(store):
    store.dispatch(Compare("0"))
    store.dispatch(Select("w0", "reference"))
    assert location(store.state).stage.id == "0"
    store.dispatch(Compare(""))
    assert store.state.selection == Selection()
    store.dispatch(Compare("0"))
    assert location(store.state) is None


def test_a_node_is_selected_in_its_own_function_alone(modules):
    store = Store(State.of(Session(modules.TwoFunctions, function="first")))
    store.dispatch(Select("x"))
    assert location(store.state).function == "first"
    store.dispatch(Focus("second"))
    assert location(store.state) is None
    store.dispatch(Focus("first"))
    assert location(store.state).node == "x"


def test_a_node_that_a_stage_lacks_is_selected_again_where_it_is(store):
    store.dispatch(Checkout("0"))
    store.dispatch(Select("w0"))
    store.dispatch(Checkout("1"))
    assert location(store.state) is None
    store.dispatch(Checkout("0"))
    assert location(store.state).node == "w0"


# --- what is said ------------------------------------------------------------------------------


@pytest.mark.parametrize("action", [Compare("0"), Checkout("0"), ColourBy(None), Focus("relu0")])
def test_an_error_is_gone_when_something_else_is_looked_at(store, action):
    refused = schedule_step("linear0", "parallel", LoopAddress("Y", 2))
    store.dispatch(Apply(refused))
    assert store.state.message.is_error
    assert store.state.failure.action == Apply(refused)
    store.dispatch(action)
    assert store.state.message is None
    assert store.state.failure is None


def test_a_refused_step_is_no_longer_marked_when_stages_are_compared(opened):
    explorer = opened(mlp().bind())
    step = schedule_step("linear0", "parallel", LoopAddress("Y", 2))
    explorer.open("Schedule")
    explorer.explorer.dispatch(ReplaySchedule("linear0", (step,)))
    assert 'role="alert"' in explorer.html()
    assert "step 1" in explorer.message
    explorer.compare("0")
    assert 'role="alert"' not in explorer.html()
    assert explorer.message == ""


def test_what_was_said_stays_while_a_node_is_selected(store):
    store.dispatch(Say("saved it"))
    store.dispatch(Select("lv0"))
    assert store.state.message.words == "saved it"


# --- colours -----------------------------------------------------------------------------------


def tinted(shown):
    return set(re.findall(r'class="node [^"]*tinted[^"]*" data-node="([^"]*)"', shown.svg))


@pytest.mark.parametrize("kind", ["time", "size", "value"])
def test_both_pictures_are_coloured_each_by_its_own_trace(opened, kind):
    explorer = opened(mlp().bind())
    explorer.colour(kind)
    assert set(explorer.traces) == {"1"}
    explorer.compare("0")
    assert set(explorer.traces) == {"0", "1"}
    assert "tinted" in explorer.canvas.svg
    assert "tinted" in explorer.other.svg
    for shown in (explorer.canvas, explorer.other):
        assert tinted(shown) >= {"lv0", "lv1", "out"}
    if kind == "size":  # the weights are constants in one stage, and parameters in the other
        assert explorer.canvas.svg != explorer.other.svg
    explorer.colour("")
    assert "tinted" not in explorer.canvas.svg + explorer.other.svg


# --- other sessions ----------------------------------------------------------------------------


def test_another_session_has_no_results_of_the_one_before(store, modules):
    store.dispatch(SetField("runs_new_stages", False))
    store.dispatch(LookAround("lv0"))
    store.dispatch(SetSession(Session(modules.TwoFunctions, function="second")))
    state = store.state
    assert (state.function, state.views, state.runs, state.reference) == ("second", {}, {}, "")
    assert scene(state, "current").error == ""
    assert not state.runs_new_stages


def test_a_picture_is_drawn_once_for_a_state(store):
    drawn = scene(store.state, "current")
    store.dispatch(Select("lv0"))
    store.dispatch(Say("words"))
    assert scene(store.state, "current") is drawn
    store.dispatch(Checkout("0"))
    assert scene(store.state, "current") is not drawn
    store.dispatch(Checkout("1"))
    assert scene(store.state, "current") is drawn
