# ruff: noqa: N803, N805, N812
# TVMScript is read by TVM, not run by Python: it has its own rules for names.
"""Colours, values and where stages part are shown, and recorded where they are missing."""

import numpy as np
import pytest
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

import irviz
from irviz.course.digits import digits, mlp_params
from irviz.course.mlp import MyModule
from irviz.explorer.actions import FetchValue
from irviz.explorer.stage_pictures import view_or_none
from irviz.model.graph.graph import NodeId, inlined_id
from irviz.session.session import Session
from irviz.view.theme import THEMES, get_theme

pytestmark = pytest.mark.worker

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
def registered(forgets_registrations):  # noqa: ARG001 - it undoes the registration
    """Registers a kernel that is known while a test lasts."""
    return lambda name, function: irviz.library.register(name, "(...)->(...)")(function)


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


# --- where they part ---------------------------------------------------------------------------


def test_a_wrong_kernel_is_found_selected_and_what_is_equal_before_is_pale(opened, wrong):
    explorer = opened(mlp().bind().swap("relu0", wrong))
    explorer.part()
    assert explorer.explorer.selected == "lv1"
    assert "stages 2 and 0 differ first at lv1 (env.relu_and_a_half)" in explorer.message
    pale = set(explorer.canvas.dimmed)
    assert {"x", "lv0"} <= pale
    assert not {"lv1", "out"} & pale
    assert explorer.status["isDimmed"]
    explorer.part()
    assert explorer.canvas.dimmed == []
    assert not explorer.status["isDimmed"]


def test_what_is_equal_is_pale_in_the_picture_of_the_other_stage_as_well(opened, wrong):
    explorer = opened(mlp().bind().swap("relu0", wrong))
    explorer.compare("1")
    explorer.part()
    assert "lv0" in explorer.other.dimmed
    assert "lv1" not in explorer.other.dimmed


def test_a_bug_deep_in_called_functions_is_found_and_the_way_to_it_opened(opened, modules):
    inputs = {"x": np.array([-1, 1, 2, 3], np.float32)}
    session = Session(modules.CalledInCalled, inputs=inputs, isolate=False).update_function(
        "doubled", tripled
    )
    explorer = opened(session)
    explorer.part()
    deep = inlined_id("twice", inlined_id("deep", "b"))
    assert explorer.explorer.selected == deep
    assert "differ first at twice/deep/b (doubled)" in explorer.message
    assert deep in view_or_none(explorer.state, "current").graph.index
    assert inlined_id("twice", "a") in explorer.canvas.dimmed
    assert "different from twice/deep/b in stage 0" in explorer.value


@pytest.mark.parametrize(
    "passes", [["LegalizeOps"], ["LegalizeOps", "AnnotateTIROpPattern", "FuseOps"]]
)
def test_it_is_found_through_passes_as_well(opened, wrong, passes):
    session = mlp().bind().swap("relu0", wrong)
    for name in passes:
        session = session.apply(name)
    explorer = opened(session)
    explorer.part()
    assert explorer.explorer.selected.endswith("lv1")
    assert f"stages {session.current_id} and 0 differ first at" in explorer.message


def test_stages_that_do_not_part_are_said_not_to_and_nothing_is_pale(opened):
    explorer = opened(mlp().bind())
    explorer.part()
    assert explorer.message == "stages 1 and 0 do not diverge: no value is known to differ"
    assert explorer.canvas.dimmed == []
    assert not explorer.status["isDimmed"]


def test_what_was_pale_is_not_when_another_stage_or_reference_is_shown(opened, wrong):
    explorer = opened(mlp().bind().swap("relu0", wrong))
    explorer.part()
    explorer.choose("1")
    assert explorer.canvas.dimmed == []
    assert not explorer.status["isDimmed"]
    explorer.choose("2")
    assert explorer.canvas.dimmed == []
    explorer.part()
    assert explorer.canvas.dimmed
    explorer.compare("1")
    assert explorer.canvas.dimmed == []


def test_the_button_is_there_only_where_there_are_two_stages_with_values(opened):
    explorer = opened(mlp().bind())
    assert explorer.status["canDiffer"]
    explorer.choose("0")
    assert not explorer.status["canDiffer"]
    explorer.apply("MergeCompositeFunctions")
    assert explorer.explorer.session.current.error
    assert not explorer.status["canDiffer"]


def test_where_a_stage_cannot_be_run_it_is_said_that_its_values_are_not_known(opened, registered):
    def broken(_, __):
        raise ValueError("no such kernel")

    registered("env.broken", broken)
    explorer = opened(mlp().swap("relu0", "env.broken"))
    explorer.part()
    assert explorer.message.startswith("the values of stage 1 are not known: ")
    assert "no such kernel" in explorer.message
    assert "failed" in explorer.badge("1")
    assert not explorer.status["isDimmed"]


# --- colours and values ------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["time", "size", "value"])
def test_colours_ask_for_what_they_need(opened, by):
    explorer = opened(mlp())
    assert explorer.explorer.results == {}
    explorer.colour(by)
    assert explorer.is_coloured
    assert list(explorer.explorer.results) == ["0"]
    explorer.colour("")
    assert not explorer.is_coloured


def test_with_colours_the_legend_has_their_scale_and_kinds_are_told_by_shapes_alone(opened):
    explorer = opened(mlp())
    kinds = explorer.explorer.scene["legend"]
    explorer.colour("size")
    scale, *shapes = explorer.explorer.scene["legend"]
    assert scale["words"] == "size of each value, log scale: 40 B to 392 KiB"
    assert scale["sample"].count("--share") > 10
    assert [one["words"] for one in shapes] == [one["words"] for one in kinds]
    theme = get_theme("page")
    fills = {fill for fill, _ in theme.colours.values()} - {theme.background}
    assert any(fill in one["sample"] for fill in fills for one in kinds)
    assert not any(fill in one["sample"] for fill in fills for one in shapes)
    explorer.colour("")
    assert explorer.explorer.scene["legend"] == kinds


def test_colours_of_differences_ask_for_both_stages(opened, wrong):
    explorer = opened(mlp().bind().swap("relu0", wrong))
    explorer.colour("difference")
    assert explorer.is_coloured
    assert set(explorer.traces) == {"2", "0"}
    assert "0.5" in explorer.canvas.svg
    assert explorer.explorer.selected == ""  # it was asked for colours alone
    assert explorer.canvas.dimmed == []


def test_differences_are_of_one_input_though_the_traces_were_of_two(opened, wrong):
    explorer = opened(mlp().bind().swap("relu0", wrong))
    explorer.explorer.run()
    explorer.open("Results")
    explorer.find("irviz-case").value = 3
    explorer.choose("0")
    explorer.colour("time")
    assert explorer.traces["0"].case == 3
    explorer.find("irviz-case").value = 1
    explorer.choose("2")
    assert explorer.traces["2"].case == 1
    explorer.colour("difference")
    assert explorer.is_coloured
    cases = {one: trace.case for one, trace in explorer.traces.items()}
    assert cases["2"] == cases["0"]


def test_a_stage_does_not_differ_from_itself_and_that_is_said(opened):
    explorer = opened(mlp())
    explorer.colour("difference")
    assert "choose one to compare with" in explorer.message
    assert explorer.traces == {}


def test_the_stage_that_is_shown_next_is_coloured_as_well(opened):
    explorer = opened(mlp().bind())
    explorer.colour("time")
    explorer.choose("0")
    assert explorer.is_coloured
    assert set(explorer.traces) == {"1", "0"}
    explorer.apply("ToNonDataflow")
    assert explorer.is_coloured


def test_a_stage_that_failed_is_not_recorded(opened):
    explorer = opened(mlp())
    explorer.colour("time")
    explorer.apply("MergeCompositeFunctions")
    assert set(explorer.traces) == {"0"}
    assert "MergeCompositeFunctions failed" in explorer.message
    assert explorer.button("Record values") is None


def test_the_value_and_the_time_of_the_selected_node_are_shown(opened):
    explorer = opened(mlp())
    explorer.select("lv1")
    assert explorer.value == ""
    assert explorer.node("lv1")["value"] == ""
    explorer.press("Record values")
    assert "input 0" in explorer.value
    assert "% of the call" in explorer.value
    assert "values recorded: a call takes" in explorer.text("irviz-record-cost")
    assert explorer.node("lv1")["value"].startswith("float32 (1, 128), 0 to ")


def test_a_bound_weight_has_a_value_before_anything_is_run(opened):
    explorer = opened(mlp().bind())
    weight = next(node.id for node in explorer.explorer.session.graph().nodes if "[" in node.id)
    explorer.select(weight)
    assert "float32" in explorer.value
    assert explorer.explorer.results == {}


def test_what_was_not_reached_says_so(opened):
    inputs = {"x": np.ones(4, np.float32), "c": np.array(True)}
    explorer = opened(Session(Chosen, inputs=inputs, isolate=False))
    explorer.record()
    explorer.select("left")
    assert "it was not reached" not in explorer.value
    assert "input 0" in explorer.value
    explorer.select("right")
    assert "input 0: it was not reached" in explorer.value


def test_the_first_value_that_is_not_finite_is_said(opened):
    inputs = {"x": np.array([-1, 0, 1, 2], np.float32), "c": np.array(True)}
    explorer = opened(Session(Chosen, inputs=inputs, isolate=False))
    explorer.record()
    assert explorer.message == "the first value that is not finite is low: 1 NaN, 1 Inf"


def test_values_are_recorded_again_for_other_inputs(opened):
    explorer = opened(mlp())
    explorer.colour("value")
    before = explorer.canvas.svg
    explorer.select("x")
    shown = explorer.value
    explorer.inputs("zeros")
    assert explorer.is_coloured
    assert explorer.canvas.svg != before
    assert explorer.value != shown


def test_a_large_value_is_fetched_when_it_is_asked_for(opened):
    explorer = opened(mlp())
    explorer.record()
    explorer.select("lv1")
    explorer.explorer.dispatch(FetchValue())
    value, (fetched,) = explorer.state.fetched
    assert value is explorer.traces["0"][NodeId("lv1")].value
    assert fetched.shape == (1, 128)


def test_values_are_drawn_in_the_colours_of_the_page(opened):
    explorer = opened(mlp())
    explorer.record()
    explorer.select("lv1")
    explorer.open("Profile")
    explorer.write("isDark", True)
    assert THEMES["dark"].background in explorer.html("irviz-value-picture")
    assert explorer.find("irviz-memory-theme").value == "dark"
    explorer.write("isDark", False)
    assert THEMES["course"].background in explorer.html("irviz-value-picture")
    assert explorer.find("irviz-memory-theme").value == "course"
