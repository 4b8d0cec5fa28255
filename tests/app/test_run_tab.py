"""The reader says what stages run with, where, and what a run may take, and sees what it gave."""

import re
from dataclasses import replace

import numpy as np
import pytest

from irviz.app.limits_panel import LimitsPanel
from irviz.app.run_panel import RunPanel
from irviz.app.run_tab import RunTab
from irviz.app.session import Session
from irviz.course.digits import digits, mlp_params
from irviz.course.mlp import MyModule
from irviz.model.result import RunResult
from irviz.view.times import Times

PARAMS, DIGITS = mlp_params(), digits()


def mlp(**facts):
    given = {"inputs": DIGITS.images[:4], "labels": DIGITS.labels[:4], **facts}
    return Session(MyModule, params=PARAMS, isolate=False, **given)


class Desk:
    """A tab, the session as the tab's verbs make it, and what is said."""

    def __init__(self, session, reference=""):
        self.session, self.reference, self.said, self.shown = session, reference, [], 0
        self.tab = RunTab(session, self.act, self.redraw, self.say)
        self.tab.show(session, reference)

    def act(self, verb):
        self.session = verb(self.session)
        self.tab.show(self.session, self.reference)

    def redraw(self):
        self.shown += 1

    def say(self, words, is_error):
        self.said.append((words, is_error))

    @property
    def results(self):
        return self.tab.results.results

    @property
    def outputs(self):
        return self.tab._run._outputs.value


# --- runs --------------------------------------------------------------------------------------


def test_the_shown_stage_is_run_with_those_it_is_compared_with():
    desk = Desk(mlp().bind().apply("ToNonDataflow").apply("LegalizeOps"), reference="1")
    desk.tab.run()
    assert set(desk.results) == {"0", "1", "3"}
    assert desk.shown > 0
    desk.tab.run(["2"])
    assert set(desk.results) == {"0", "1", "2", "3"}


def test_to_run_again_runs_the_shown_stage_alone_again():
    desk = Desk(mlp().bind())
    desk.tab.run()
    before = dict(desk.results)
    desk.tab.run_again()
    assert desk.results["0"] is before["0"]
    assert desk.results["1"] is not before["1"]


def test_what_a_run_gave_is_shown_case_by_case():
    desk = Desk(mlp())
    assert "Not run yet" in desk.outputs
    desk.tab.run()
    first = desk.outputs
    assert "predicted class" in first
    desk.tab._run._case.value = 3
    assert desk.tab.case == 3
    assert desk.outputs != first
    assert desk.tab._run._picture.layout.display == ""


def test_why_a_stage_cannot_be_run_is_shown():
    desk = Desk(mlp(inputs=np.zeros((2, 3), np.float32), labels=None))
    desk.tab.run()
    assert desk.results == {}
    assert "irviz-error" in desk.outputs
    assert "784" in desk.outputs


# --- inputs ------------------------------------------------------------------------------------


def test_other_inputs_forget_what_was_run_and_run_it_again():
    desk = Desk(mlp())
    desk.tab.run()
    before = desk.results["0"]
    desk.tab._give("zeros", 0, {})
    assert desk.session.inputs == "zeros"
    assert desk.results["0"] is not before
    assert desk.results["0"].cases == 1


def test_other_inputs_are_only_run_when_every_new_stage_is():
    desk = Desk(mlp())
    desk.tab._run.automatic.value = False
    assert not desk.tab.is_automatic
    desk.tab.run()
    desk.tab._give("random", 7, {})
    assert desk.session.seed == 7
    assert desk.results == {}
    assert "Not run yet" in desk.outputs


def test_labels_belong_to_the_inputs_that_were_given():
    desk = Desk(mlp())
    given = desk.session.inputs
    desk.tab._give("random", 0, {})
    assert desk.session.labels is None
    assert "irviz-error" not in desk.outputs
    desk.tab._give(given, 0, {})
    np.testing.assert_array_equal(desk.session.labels, DIGITS.labels[:4])
    assert desk.results["0"].correct is not None


def test_chosen_sizes_become_the_sessions():
    desk = Desk(mlp())
    desk.tab._give("random", 3, {"n": 5})
    assert (desk.session.seed, desk.session.sizes) == (3, {"n": 5})


# --- limits ------------------------------------------------------------------------------------


def limits(session):
    """Return a panel, and the list of sessions that its verbs made."""
    made = [session]
    panel = LimitsPanel(lambda verb: made.append(verb(made[-1])))
    panel.show(session)
    return panel, made


def test_limits_become_the_sessions():
    panel, made = limits(mlp())
    panel._isolate.value = True
    panel._seconds.value = 5.5
    panel._memory.value = 1.5
    panel._device.value = " cpu "
    last = made[-1]
    assert len(made) == 5
    assert (last.isolate, last.seconds, last.device) == (True, 5.5, "cpu")
    assert last.memory == 1_500_000_000
    panel._memory.value = 0
    assert made[-1].memory is None


def test_to_show_a_session_changes_none():
    panel, made = limits(mlp())
    panel.show(replace(made[0], isolate=True, seconds=3.0, memory=10**9, device="here:1"))
    assert len(made) == 1
    values = panel._isolate.value, panel._seconds.value, panel._memory.value, panel._device.value
    assert values == (True, 3.0, 1.0, "here:1")


def test_a_limit_beyond_what_a_field_shows_stays_as_it_is_when_another_changes():
    panel, made = limits(replace(mlp(), seconds=0.01, memory=123_456_789))
    panel._isolate.value = True
    assert (made[-1].seconds, made[-1].memory, made[-1].isolate) == (0.01, 123_456_789, True)


def test_a_device_that_cannot_be_is_told_by_the_run():
    desk = Desk(mlp())
    desk.tab._limits._device.value = "nowhere"
    assert desk.session.device == "nowhere"
    desk.tab.run()
    assert "irviz-error" in desk.outputs
    assert "nowhere" in desk.outputs


# --- measured ----------------------------------------------------------------------------------


@pytest.fixture
def measured(monkeypatch):
    """Take the time for measuring out of it; the list has what was to be measured."""
    asked = []

    def measure(_, *stages, case, heard):
        asked.append((stages, case))
        heard("round 1")
        return Times(None)

    monkeypatch.setattr(Session, "measure", measure)
    monkeypatch.setattr(Times, "_repr_html_", lambda _: "the times")
    return asked


def table(desk):
    return desk.tab.timing._table.value


def test_the_shown_stage_is_measured_with_those_it_is_compared_with_or_all_are(measured):
    session = (
        mlp().bind().apply("ToNonDataflow").apply("LegalizeOps").apply("MergeCompositeFunctions")
    )
    assert session.shown.error
    desk = Desk(session.show("3"), reference="1")
    two, every = desk.tab.timing.widget.children[1].children
    two.click()
    every.click()
    assert [stages for stages, _ in measured] == [("0", "1", "3"), ("0", "1", "2", "3")]
    assert table(desk) == "the times"


def test_the_input_that_is_looked_at_is_measured(measured):
    desk = Desk(mlp())
    desk.tab.run()
    desk.tab._run._case.value = 2
    desk.tab.measure(False)
    assert measured == [(("0",), 2)]


def test_times_of_other_inputs_or_of_another_function_are_taken_away(measured):
    desk = Desk(mlp())
    desk.tab.measure(False)
    desk.tab._give("zeros", 0, {})
    assert table(desk) == ""
    desk.tab.measure(False)
    other = next(name for name in desk.session.functions if name != "main")
    desk.act(lambda session: session.focus(other))
    assert table(desk) == ""
    assert measured


def test_why_nothing_was_measured_is_shown(monkeypatch):
    def measure(*_, **__):
        raise ValueError("there are no <times>")

    monkeypatch.setattr(Session, "measure", measure)
    desk = Desk(mlp())
    desk.tab.measure(True)
    assert "there are no &lt;times&gt;" in table(desk)
    assert "irviz-error" in table(desk)


# --- what is being done ------------------------------------------------------------------------


def panel():
    return RunPanel(lambda: None, lambda: None)


def words(made):
    hidden = made.status.layout.display == "none"
    return None if hidden else re.sub("<[^>]*>", "", made._doing.value)


def test_what_runs_is_said_with_a_way_to_cancel_it_and_how_much_waits():
    made = panel()
    assert words(made) is None
    made.show_running("stage 1", "")
    assert words(made) == "stage 1"
    made.show_running("stage 1", "running input 3 of 20")
    assert words(made) == "stage 1: running input 3 of 20"
    made.show_running("stage 1", "building", 2)
    assert words(made) == "stage 1: building; 2 more to do"
    made.show_running("", "")
    assert words(made) is None


def test_what_is_told_is_text():
    made = panel()
    made.show_running("stage 1", "after <b>")
    assert "<b>" not in made._doing.value


def test_a_result_that_is_shown_already_is_not_drawn_again(monkeypatch):
    drawn = []
    monkeypatch.setattr("irviz.app.run_panel.png", lambda image: drawn.append(image) or b"")
    made, session = panel(), mlp()
    result = RunResult((np.zeros((4, 1, 10), np.float32),), 1e-3)
    for _ in range(20):  # as often as a run tells something
        made.show(session, result, "")
    assert len(drawn) == 1
    made.show(session, RunResult((np.ones((4, 1, 10), np.float32),), 1e-3), "")
    assert len(drawn) == 2
