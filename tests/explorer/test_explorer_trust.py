"""What was opened from a file is run in the explorer only when the reader said so."""

import pytest
import tvm

import irviz
from irviz.course.mlp import MyModule
from irviz.explorer import actions
from irviz.explorer.effects import Effects
from irviz.explorer.panels.kernel_swap_panel import SwapPanel
from irviz.explorer.state import State
from irviz.explorer.store import Store
from irviz.transforms.passes.pass_transform import named_pass
from irviz.transforms.schedules.schedule_step import ScheduleStep
from irviz.view.run_result_html import run_summary
from irviz.worker import sandbox

pytestmark = pytest.mark.worker


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "mlp.json"
    path.write_text(tvm.ir.save_json(MyModule))
    store = Store(State.of(irviz.load(path)))
    Effects(store)
    yield store
    store.close()


@pytest.fixture(autouse=True)
def _without_the_sandbox(monkeypatch):
    """Let nothing be confined, as where Linux has no Landlock."""
    monkeypatch.setenv(sandbox.VARIABLE, "0")


@pytest.fixture
def _with_the_sandbox(_without_the_sandbox, monkeypatch):
    """Let runs be confined again, where the machine can do that."""
    monkeypatch.delenv(sandbox.VARIABLE)
    if not sandbox.can_confine():
        pytest.skip("this machine cannot confine a run")


def has_run(store):
    return bool(store.state.function_runs.results or store.state.function_runs.traces)


def test_to_open_look_and_transform_runs_nothing_and_asks_nothing(store):
    for action in (
        actions.Select("lv0"),
        actions.Apply(named_pass("CanonicalizeBindings")),
        actions.Apply(ScheduleStep("relu0", "compute_inline", {"block": "Y"})),
        actions.Checkout("0"),
        actions.Select("lv1"),
        actions.SetField("case", 0),
    ):
        store.dispatch(action)
    assert not has_run(store)
    assert store.state.candidates is None
    assert store.state.steps is None
    assert store.state.question is None


@pytest.mark.parametrize(
    "action",
    [
        actions.Run(),
        actions.Measure(),
        actions.RecordValues(),
        actions.ColourBy("time"),
        actions.ShowFirstDifference(),
        actions.Apply(named_pass("FoldConstant")),
    ],
    ids=lambda action: type(action).__name__,
)
def test_what_would_run_code_asks_and_is_done_when_the_reader_says_so(store, action):
    store.dispatch(action)
    assert store.state.question.action == action
    assert not store.state.jobs.keys
    assert len(store.state.session.stages) == 1
    store.dispatch(actions.Trust(action, store.state.question.files))
    assert store.state.question is None
    if isinstance(action, actions.Apply):
        assert [stage.error for stage in store.state.session.stages] == ["", ""]
    else:
        assert has_run(store) or store.state.timing or store.state.message is not None


def test_the_question_can_be_answered_with_no(store):
    store.dispatch(actions.Run())
    store.dispatch(actions.Answer(False))
    assert store.state.question is None
    assert not has_run(store)


def test_one_answer_is_enough_for_a_file(store):
    store.dispatch(actions.Run())
    store.dispatch(actions.Trust(actions.Run(), store.state.question.files))
    store.dispatch(actions.Apply(named_pass("FoldConstant")))
    store.dispatch(actions.Measure())
    assert store.state.question is None
    assert len(store.state.function_runs.results) == 2  # new stages are run, too


def test_the_question_names_the_file_and_the_page_answers_it(opened, tmp_path):
    path = tmp_path / "mlp.json"
    path.write_text(tvm.ir.save_json(MyModule))
    page = opened(path)
    page.send(action="Answer", isAllowed=True)
    assert not has_run(page.explorer.store), "nothing was asked"
    assert page.status["question"] == ""
    page.run()
    words = "This runs code of mlp.json, which can do all that you can do here. Run it?"
    assert page.status["question"] == words
    page.send(action="Answer", isAllowed=False)
    assert page.status["question"] == ""
    assert not has_run(page.explorer.store)
    page.run()
    page.send(action="Answer", isAllowed=True)
    assert page.status["question"] == ""
    assert has_run(page.explorer.store)


@pytest.mark.parametrize("name", ["Trust", "Ask", "SetSession", "SetInputs", "Report"])
def test_the_page_cannot_trust_a_file_unasked(opened, tmp_path, name):
    path = tmp_path / "mlp.json"
    path.write_text(tvm.ir.save_json(MyModule))
    page = opened(path)
    before = page.state
    page.send(action=name)
    page.send(action=name, then={"action": "Run"}, files=["mlp.json"])
    assert page.state is before


def test_a_call_can_be_replaced_once_its_code_may_be_run(store):
    panel = SwapPanel(store)
    store.subscribe(panel.update)
    store.dispatch(actions.Select("lv1"))
    assert "press Run" in panel.widget.children[2].value
    store.dispatch(actions.Run())
    store.dispatch(actions.Trust(actions.Run(), store.state.question.files))
    assert store.state.candidates is not None
    assert "compute the same" in panel.widget.children[2].value


@pytest.mark.usefixtures("_with_the_sandbox")
@pytest.mark.parametrize(
    "action",
    [actions.Run(), actions.Measure(), actions.RecordValues(), actions.ColourBy("time")],
    ids=lambda action: type(action).__name__,
)
def test_what_is_confined_is_not_asked_about(store, action):
    store.dispatch(action)
    assert store.state.question is None
    assert store.state.message is None or not store.state.message.is_error
    assert has_run(store) or store.state.timing


@pytest.mark.usefixtures("_with_the_sandbox")
def test_nothing_runs_unasked_even_where_it_would_be_confined(store):
    store.dispatch(actions.Apply(named_pass("CanonicalizeBindings")))
    assert not has_run(store)
    store.dispatch(actions.Run())
    before = len(store.state.function_runs.results)
    store.dispatch(actions.Apply(named_pass("LegalizeOps")))
    assert len(store.state.function_runs.results) > before > 0


@pytest.mark.usefixtures("_with_the_sandbox")
def test_what_cannot_be_confined_is_asked_about_as_before(store):
    action = actions.Apply(named_pass("FoldConstant"))
    store.dispatch(action)
    assert store.state.question.action == action


@pytest.mark.usefixtures("_with_the_sandbox")
def test_the_page_says_which_runs_are_confined(store):
    store.dispatch(actions.Run())
    (result, *_) = store.state.function_runs.results.values()
    assert run_summary(result).endswith(", sandboxed: no network, no files")
