"""The reader says what stages run with, where, and what a run may take, and sees what it gave."""

import numpy as np
import pytest

from irviz.course.digits import digits, mlp_params
from irviz.course.mlp import MyModule
from irviz.explorer.actions import Compare, Focus, Report, Run, SetField, SetInputs, SetSession
from irviz.explorer.background_runner import Jobs
from irviz.explorer.effects import Effects
from irviz.explorer.panels import results_panel
from irviz.explorer.panels.profile_panel import TimingPanel
from irviz.explorer.panels.results_panel import LimitsPanel, RunButton, RunPanel
from irviz.explorer.state import RunKey
from irviz.model.runs.run_result import RunResult
from irviz.session.session import Session
from irviz.view.run_result_html import TimingTable

pytestmark = pytest.mark.build

PARAMS, DIGITS = mlp_params(), digits()


def mlp(**facts):
    given = {"inputs": DIGITS.images[:4], "labels": DIGITS.labels[:4], **facts}
    return Session(MyModule, params=PARAMS, isolate=False, **given)


@pytest.fixture
def tab(desk_class):
    """Returns what runs stages, on a page of its own."""

    class Tab(desk_class):
        def __init__(self, session, reference=""):
            super().__init__(
                session, RunButton, LimitsPanel, RunPanel, TimingPanel, effects=Effects
            )
            if reference:
                self.dispatch(Compare(reference))

        @property
        def results(self):
            return self.state.function_runs.results

        @property
        def outputs(self):
            return self.html("irviz-run-outputs")

        @property
        def table(self):
            return self.html("irviz-measured")

        def limit(self, name):
            return self.find(f"irviz-limits-{name}")

        def automatic(self, is_on):
            self.find("irviz-run-new").value = is_on

    return Tab


# --- runs --------------------------------------------------------------------------------------


def test_the_shown_stage_is_run_with_those_it_is_compared_with(tab):
    desk = tab(mlp().bind().apply("ToNonDataflow").apply("LegalizeOps"), reference="1")
    desk.dispatch(Run())
    assert set(desk.results) == {"0", "1", "3"}
    desk.dispatch(Run(("2",)))
    assert set(desk.results) == {"0", "1", "2", "3"}


def test_to_run_again_runs_the_shown_stage_alone_again(tab):
    desk = tab(mlp().bind())
    desk.dispatch(Run())
    before = dict(desk.results)
    desk.press("Run")
    assert desk.results["0"] is before["0"]
    assert desk.results["1"] is not before["1"]


def test_what_a_run_gave_is_shown_case_by_case(tab):
    desk = tab(mlp())
    assert "Not run yet" in desk.outputs
    desk.press("Run")
    first = desk.outputs
    assert "predicted class" in first
    desk.find("irviz-case").value = 3
    assert desk.state.case == 3
    assert desk.outputs != first
    assert desk.sees("irviz-input-picture")


def test_what_a_prim_func_gave_is_shown_without_the_digit_and_the_class_of_another_function(tab):
    desk = tab(mlp())
    desk.press("Run")
    assert desk.sees("irviz-input-picture")
    desk.dispatch(Focus("relu0"))
    assert "Not run yet" in desk.outputs
    desk.press("Run")
    assert "output 0: 1×8" in desk.outputs
    assert "predicted class" not in desk.outputs
    assert not desk.sees("irviz-input-picture")


def test_why_a_stage_cannot_be_run_is_shown(tab):
    desk = tab(mlp(inputs=np.zeros((2, 3), np.float32), labels=None))
    desk.press("Run")
    assert desk.results == {}
    assert "irviz-error" in desk.outputs
    assert "784" in desk.outputs


# --- inputs ------------------------------------------------------------------------------------


def test_other_inputs_forget_what_was_run_and_run_it_again(tab):
    desk = tab(mlp())
    desk.press("Run")
    before = desk.results["0"]
    desk.dispatch(SetInputs("zeros"))
    assert desk.session.call_inputs.inputs == "zeros"
    assert desk.results["0"] is not before
    assert desk.results["0"].cases == 1


def test_other_inputs_are_only_run_when_every_new_stage_is(tab):
    desk = tab(mlp())
    desk.automatic(False)
    assert not desk.state.runs_new_stages
    desk.press("Run")
    desk.dispatch(SetInputs("random", 7))
    assert desk.session.call_inputs.seed == 7
    assert desk.results == {}
    assert "Not run yet" in desk.outputs


def test_labels_belong_to_the_inputs_that_were_given(tab):
    desk = tab(mlp())
    given = desk.session.call_inputs.inputs
    desk.dispatch(SetInputs("random"))
    assert desk.session.call_inputs.labels is None
    assert "irviz-error" not in desk.outputs
    desk.dispatch(SetInputs(given))
    np.testing.assert_array_equal(desk.session.call_inputs.labels, DIGITS.labels[:4])
    assert desk.results["0"].correct is not None


def test_chosen_sizes_become_the_sessions(tab):
    desk = tab(mlp())
    desk.automatic(False)
    desk.dispatch(SetInputs("random", 3, {"n": 5}))
    call = desk.session.call_inputs
    assert (call.seed, call.sizes) == (3, {"n": 5})


# --- limits ------------------------------------------------------------------------------------


def test_limits_become_the_sessions(tab):
    desk = tab(mlp())
    desk.limit("isolate").value = True
    desk.limit("seconds").value = 5.5
    desk.limit("memory").value = 1.5
    desk.limit("device").value = " cpu "
    config = desk.session.run_config
    assert (config.isolate, config.seconds, config.device) == (True, 5.5, "cpu")
    assert config.memory == 1_500_000_000
    desk.limit("memory").value = 0
    assert desk.session.run_config.memory is None


def test_to_show_a_session_changes_none(tab):
    desk = tab(mlp())
    new = desk.session.with_run_config(isolate=True, seconds=3.0, memory=10**9, device="here:1")
    desk.dispatch(SetSession(new))
    assert desk.session.run_config is new.run_config
    names = ("isolate", "seconds", "memory", "device")
    assert [desk.limit(name).value for name in names] == [True, 3.0, 1.0, "here:1"]


def test_a_limit_beyond_what_a_field_shows_stays_as_it_is_when_another_changes(tab):
    desk = tab(mlp().with_run_config(seconds=0.01, memory=123_456_789))
    desk.limit("isolate").value = True
    config = desk.session.run_config
    assert (config.seconds, config.memory, config.isolate) == (0.01, 123_456_789, True)


def test_a_limit_that_cannot_be_is_said_at_its_field_and_the_one_before_holds(tab):
    desk = tab(mlp())
    desk.limit("device").value = "nowhere"
    assert desk.session.run_config.device == ""
    assert "'nowhere'" in desk.error_at("irviz-limits-device")
    assert "runs go on with what was there before" in desk.error_at("irviz-limits-device")
    assert desk.said == ""
    desk.limit("memory").value = 1e-6
    assert "memory=1000 is too little" in desk.error_at("irviz-limits-memory")
    assert desk.session.run_config.memory is None
    desk.limit("device").value = "cpu"
    assert desk.error_at("irviz-limits-device") == ""
    assert desk.session.run_config.device == "cpu"


# --- measured ----------------------------------------------------------------------------------


@pytest.fixture
def measured(monkeypatch):
    """Take the time for measuring out of it; the list has what was to be measured."""
    asked = []

    def measure(_, *stages, case, on_progress):
        asked.append((stages, case))
        on_progress("round 1")
        return Times(None)

    monkeypatch.setattr(Session, "measure", measure)
    return asked


class Times(TimingTable):
    """Times that look the same whatever was measured."""

    def _repr_html_(self):
        return "the times"


def test_the_shown_stage_is_measured_with_those_it_is_compared_with_or_all_are(tab, measured):
    session = (
        mlp().bind().apply("ToNonDataflow").apply("LegalizeOps").apply("MergeCompositeFunctions")
    )
    assert session.current.error
    desk = tab(session.checkout("3"), reference="1")
    desk.press("Measure with the first")
    desk.press("Measure all")
    assert [stages for stages, _ in measured] == [("0", "1", "3"), ("0", "1", "2", "3")]
    assert desk.table == "the times"


def test_the_input_that_is_looked_at_is_measured(tab, measured):
    desk = tab(mlp())
    desk.press("Run")
    desk.find("irviz-case").value = 2
    desk.press("Measure with the first")
    assert measured == [(("0",), 2)]


def test_times_of_other_inputs_or_of_another_function_are_taken_away(tab, measured):
    desk = tab(mlp())
    desk.automatic(False)
    desk.press("Measure with the first")
    assert desk.table == "the times"
    desk.dispatch(SetInputs("zeros"))
    assert desk.table == ""
    desk.press("Measure with the first")
    other = next(name for name in desk.session.functions if name != "main")
    desk.dispatch(Focus(other))
    assert desk.table == ""
    assert len(measured) == 2


def test_why_nothing_was_measured_is_shown(tab, monkeypatch):
    def measure(*_, **__):
        raise ValueError("there are no <times>")

    monkeypatch.setattr(Session, "measure", measure)
    desk = tab(mlp())
    desk.press("Measure all")
    assert "there are no &lt;times&gt;" in desk.table
    assert "irviz-error" in desk.table


def test_a_result_that_is_shown_already_is_not_drawn_again(tab, monkeypatch):
    drawn = []
    monkeypatch.setattr(results_panel, "grey_png", lambda image: drawn.append(image) or b"")
    desk = tab(mlp())
    first, second = (RunResult((np.full((4, 1, 10), n, np.float32),), 1e-3) for n in range(2))
    desk.dispatch(Report(RunKey("main", "0", None, 0), first))
    for number in range(20):  # as often as a run tells something
        desk.dispatch(SetField("jobs", Jobs("stage 1", f"input {number}")))
    assert len(drawn) == 1
    desk.dispatch(Report(RunKey("main", "0", None, 0), second))
    assert len(drawn) == 2
