# ruff: noqa: N803, N805, N812
# TVMScript is read by TVM, not run by Python: it has its own rules for names.
"""Colours, values and where stages part are shown, and recorded where they are missing."""

import re

import numpy as np
import pytest
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

import irviz
from irviz.app.session import Session
from irviz.course.digits import digits, mlp_params
from irviz.course.mlp import MyModule
from irviz.model.splice import within
from irviz.transforms.kernels import library

PARAMS, DIGITS = mlp_params(), digits()


@T.prim_func(s_tir=True)
def tripled(X: T.Buffer((4,), "float32"), Y: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.sblock("Y"):
            vi = T.axis.spatial(4, i)
            Y[vi] = X[vi] * T.float32(3)


@I.ir_module
class Chosen:
    """A branch, and numbers that stop being finite."""

    @R.function
    def main(x: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")):
        low = R.log(x)
        if c:
            left = R.negative(low)
            chosen = R.add(left, low)
        else:
            right = R.exp(low)
            chosen = R.add(right, low)
        return chosen


@pytest.fixture
def registered():
    """Registers a kernel that is known while a test lasts."""
    before = dict(library._kernels)
    yield lambda name, function: irviz.library.register(name, "(...)->(...)")(function)
    for name in library._kernels.keys() - before.keys():
        del library._kernels[name]


@pytest.fixture
def wrong(registered):
    def relu_and_a_half(x, out):
        np.maximum(x, 0, out=out)
        out += 0.5

    registered("env.relu_and_a_half", relu_and_a_half)
    return "env.relu_and_a_half"


def mlp(**facts):
    inputs = DIGITS.images[:5]
    return Session(
        MyModule, params=PARAMS, inputs=inputs, labels=DIGITS.labels[:5], isolate=False, **facts
    )


def said(explorer):
    return re.sub("<[^>]*>", "", explorer._message.widget.value)


def part(explorer):
    explorer._evidence.part.click()


def colour(explorer, by):
    explorer._evidence.colours.value = by


def select(explorer, node):
    explorer._pane.canvas.selected = node


def value_shown(explorer):
    """Return what the panel says of the selected node's value, "" where it is not there."""
    panel = explorer._evidence.value
    return "" if panel.widget.layout.display == "none" else panel._facts.value


def badge(explorer, stage):
    return next(row["badge"] for row in explorer._stages.widget.rows if row["id"] == stage)


def overlaid(explorer):
    return "tinted" in explorer._pane.canvas.svg


# --- where they part ---------------------------------------------------------------------------


def test_a_wrong_kernel_is_found_selected_and_what_is_equal_before_is_pale(wrong):
    explorer = irviz.explore(mlp().bind().swap("relu0", wrong))
    part(explorer)
    assert explorer.selected == "lv1"
    assert "stages 2 and 0 part at lv1 (env.relu_and_a_half)" in said(explorer)
    pale = set(explorer._pane.canvas.dimmed)
    assert {"x", "lv0"} <= pale
    assert not {"lv1", "out"} & pale
    assert explorer._evidence.part.description == "Show all alike"
    part(explorer)
    assert explorer._pane.canvas.dimmed == []
    assert explorer._evidence.part.description == "Where do they part?"


def test_what_is_equal_is_pale_in_the_picture_of_the_other_stage_as_well(wrong):
    explorer = irviz.explore(mlp().bind().swap("relu0", wrong))
    explorer._reference._choose("1", lambda _: explorer._show())
    part(explorer)
    assert "lv0" in explorer._reference.canvas.dimmed
    assert "lv1" not in explorer._reference.canvas.dimmed


def test_a_bug_deep_in_called_functions_is_found_and_the_way_to_it_opened(modules):
    inputs = {"x": np.array([-1, 1, 2, 3], np.float32)}
    session = Session(modules.CalledInCalled, inputs=inputs, isolate=False).update(
        "doubled", tripled
    )
    explorer = irviz.explore(session)
    part(explorer)
    deep = within("twice", within("deep", "b"))
    assert explorer.selected == deep
    assert "part at twice/deep/b (doubled)" in said(explorer)
    assert deep in explorer._pane.picture.graph.index
    assert within("twice", "a") in explorer._pane.canvas.dimmed
    assert "different from twice/deep/b in stage 0" in value_shown(explorer)


@pytest.mark.parametrize(
    "passes", [["LegalizeOps"], ["LegalizeOps", "AnnotateTIROpPattern", "FuseOps"]]
)
def test_it_is_found_through_passes_as_well(wrong, passes):
    session = mlp().bind().swap("relu0", wrong)
    for name in passes:
        session = session.apply(name)
    explorer = irviz.explore(session)
    part(explorer)
    assert explorer.selected.endswith("lv1")
    assert f"stages {session.shown_id} and 0 part at" in said(explorer)


def test_stages_that_do_not_part_are_said_not_to_and_nothing_is_pale():
    explorer = irviz.explore(mlp().bind())
    part(explorer)
    assert said(explorer) == "stages 1 and 0 do not part: no value is known to differ"
    assert explorer._pane.canvas.dimmed == []
    assert explorer._evidence.part.description == "Where do they part?"


def test_what_was_pale_is_not_when_another_stage_or_reference_is_shown(wrong):
    explorer = irviz.explore(mlp().bind().swap("relu0", wrong))
    part(explorer)
    explorer._choose("1")
    assert explorer._pane.canvas.dimmed == []
    assert explorer._evidence.part.description == "Where do they part?"
    explorer._choose("2")
    assert explorer._pane.canvas.dimmed == []
    part(explorer)
    assert explorer._pane.canvas.dimmed
    explorer._reference.chooser.value = "1"
    assert explorer._pane.canvas.dimmed == []


def test_the_button_is_there_only_where_there_are_two_stages_with_values():
    explorer = irviz.explore(mlp().bind())
    button = explorer._evidence.part
    assert button.layout.display == ""
    explorer._choose("0")
    assert button.layout.display == "none"
    explorer._act(lambda session: session.apply("MergeCompositeFunctions"))
    assert explorer.session.shown.error
    assert button.layout.display == "none"


def test_where_a_stage_cannot_be_run_it_is_said_that_its_values_are_not_known(registered):
    def broken(_, __):
        raise ValueError("no such kernel")

    registered("env.broken", broken)
    explorer = irviz.explore(mlp().swap("relu0", "env.broken"))
    part(explorer)
    assert said(explorer).startswith("the values of stage 1 are not known: ")
    assert "no such kernel" in said(explorer)
    assert "failed" in badge(explorer, "1")
    assert explorer._evidence.part.description == "Where do they part?"


# --- colours and values ------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["time", "size", "max |value|"])
def test_colours_ask_for_what_they_need(by):
    explorer = irviz.explore(mlp())
    assert explorer.results == {}
    colour(explorer, by)
    assert overlaid(explorer)
    assert list(explorer.results) == ["0"]
    colour(explorer, "")
    assert not overlaid(explorer)


def test_colours_of_differences_ask_for_both_stages(wrong):
    explorer = irviz.explore(mlp().bind().swap("relu0", wrong))
    colour(explorer, "|Δ|")
    assert overlaid(explorer)
    assert set(explorer._runs.results.traces) == {"2", "0"}
    assert "0.5" in explorer._pane.canvas.svg
    assert explorer.selected == ""  # it was asked for colours alone
    assert explorer._pane.canvas.dimmed == []


def test_differences_are_of_one_input_though_the_traces_were_of_two(wrong):
    explorer = irviz.explore(mlp().bind().swap("relu0", wrong))
    explorer.run()
    explorer._runs._run._case.value = 3
    explorer._choose("0")
    colour(explorer, "time")
    assert explorer._runs.results.traces["0"].case == 3
    explorer._runs._run._case.value = 1
    explorer._choose("2")
    assert explorer._runs.results.traces["2"].case == 1
    colour(explorer, "|Δ|")
    assert overlaid(explorer)
    cases = {one: trace.case for one, trace in explorer._runs.results.traces.items()}
    assert cases["2"] == cases["0"]


def test_a_stage_does_not_differ_from_itself_and_that_is_said():
    explorer = irviz.explore(mlp())
    colour(explorer, "|Δ|")
    assert "choose one to compare with" in said(explorer)
    assert explorer._runs.results.traces == {}


def test_the_stage_that_is_shown_next_is_coloured_as_well():
    explorer = irviz.explore(mlp().bind())
    colour(explorer, "time")
    explorer._choose("0")
    assert overlaid(explorer)
    assert set(explorer._runs.results.traces) == {"1", "0"}
    explorer._act(lambda session: session.apply("ToNonDataflow"))
    assert overlaid(explorer)


def test_a_stage_that_failed_is_not_recorded():
    explorer = irviz.explore(mlp())
    colour(explorer, "time")
    explorer._act(lambda session: session.apply("MergeCompositeFunctions"))
    assert set(explorer._runs.results.traces) == {"0"}
    assert "MergeCompositeFunctions failed" in said(explorer)
    assert explorer._evidence._recording.layout.display == "none"


def test_the_value_and_the_time_of_the_selected_node_are_shown():
    explorer = irviz.explore(mlp())
    select(explorer, "lv1")
    assert value_shown(explorer) == ""
    explorer._evidence._recording.click()
    assert "input 0" in value_shown(explorer)
    assert "% of the call" in value_shown(explorer)
    assert "values recorded in" in explorer._evidence._told.value


def test_a_bound_weight_has_a_value_before_anything_is_run():
    explorer = irviz.explore(mlp().bind())
    weight = next(node.id for node in explorer.session.graph().nodes if "[" in node.id)
    select(explorer, weight)
    assert "float32" in value_shown(explorer)
    assert explorer.results == {}


def test_what_was_not_reached_says_so():
    inputs = {"x": np.ones(4, np.float32), "c": np.array(True)}
    explorer = irviz.explore(Session(Chosen, inputs=inputs, isolate=False))
    explorer._evidence._recording.click()
    select(explorer, "left")
    assert "it was not reached" not in value_shown(explorer)
    assert "input 0" in value_shown(explorer)
    select(explorer, "right")
    assert "input 0: it was not reached" in value_shown(explorer)


def test_the_first_value_that_is_not_finite_is_said():
    inputs = {"x": np.array([-1, 0, 1, 2], np.float32), "c": np.array(True)}
    explorer = irviz.explore(Session(Chosen, inputs=inputs, isolate=False))
    explorer._evidence._recording.click()
    assert said(explorer) == "the first value that is not finite is low: 1 NaN, 1 Inf"


def test_values_are_recorded_again_for_other_inputs():
    explorer = irviz.explore(mlp())
    colour(explorer, "max |value|")
    before = explorer._pane.canvas.svg
    select(explorer, "x")
    shown = value_shown(explorer)
    explorer._runs._give("zeros", 0, {})
    assert overlaid(explorer)
    assert explorer._pane.canvas.svg != before
    assert value_shown(explorer) != shown


def test_a_large_value_is_fetched_when_it_is_asked_for_and_nothing_runs(monkeypatch):
    explorer = irviz.explore(mlp())
    explorer._evidence._recording.click()
    select(explorer, "lv1")
    (fetched,) = explorer._evidence._fetched()
    assert fetched.shape == (1, 128)
    monkeypatch.setattr("irviz.app.evidence.is_busy", lambda: True)
    with pytest.raises(RuntimeError, match="something runs"):
        explorer._evidence._fetched()


def test_values_are_drawn_in_the_colours_of_the_page():
    explorer = irviz.explore(mlp())
    explorer._pane.canvas.dark = True
    assert explorer._evidence.value.theme == "dark"
    assert explorer._memory.theme == "dark"
    explorer._pane.canvas.dark = False
    assert explorer._evidence.value.theme == "course"
