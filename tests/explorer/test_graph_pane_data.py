"""The page is told what each drawn node is, what became of it, and what the signs mean."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax

from irviz.course.mlp import MODULES
from irviz.explorer import actions
from irviz.explorer import graph_pane_data as scene_data_module
from irviz.explorer.background_actions import perform
from irviz.explorer.graph_pane_data import scene_data, value_words
from irviz.explorer.selected_node import selected_value
from irviz.explorer.state import State
from irviz.explorer.viewer.schema import NodeFacts, Scene
from irviz.model.graph.graph import NodeId, NodeKind, inlined_id
from irviz.model.runs.array_diff import summarise
from irviz.model.runs.execution_trace import NodeValue, NodeVisit, Trace
from irviz.session.session import Session
from irviz.view.graph.change_marks import LEGEND
from tests.explorer.performed_actions import state_after

pytestmark = pytest.mark.worker

PIPELINE = ("LegalizeOps", "AnnotateTIROpPattern", "FuseOps", "FuseTIR")


def after(session: Session, *done: actions.Action) -> Scene:
    """Return what is shown of a session when this was done."""
    return scene_data(state_after(session, *done))


def nodes(scene: Scene) -> dict[str, NodeFacts]:
    assert scene["current"] is not None
    return scene["current"]["nodes"]


def words(scene: Scene) -> list[str]:
    return [entry["words"] for entry in scene["legend"]]


@pytest.fixture(scope="module")
def fused() -> Session:
    """The lecture's network of operators, lowered and fused: stages 0 to 4."""
    session = Session(MODULES["MyModuleHighLevel"])
    for name in PIPELINE:
        session = session.apply(name)
    return session


# --- nodes -------------------------------------------------------------------------------------


def test_links_lead_with_what_the_picture_shows_of_a_node(modules: Any) -> None:
    stack = Session(modules.stack(24))
    shown = nodes(after(stack, actions.Reveal("main", NodeId("lv2"))))
    assert "gelu <small>lv3</small>" in shown["lv2"]["facts"]
    closed = nodes(after(stack, actions.ToggleAll(False)))
    (group,) = (one["name"] for one in closed.values() if "×" in one["name"])
    assert any(f">{group} <small>lv" in one["facts"] for one in closed.values())


def test_each_drawn_node_has_its_facts_in_the_order_of_the_text(fused: Session) -> None:
    scene = after(fused, actions.Checkout("1"))
    assert list(nodes(scene)) == [
        "x",
        "w0",
        "b0",
        "w1",
        "b1",
        *("w0_t", "lv0", "lv1", "lv2", "w1_t", "lv3", "out"),
    ]
    assert scene["current"] is not None
    drawn = re.findall(r'class="node [^"]*" data-node="([^"]*)"', scene["current"]["svg"])
    assert set(drawn) == set(nodes(scene))
    node = nodes(scene)["lv1"]
    known = {name: node[name] for name in ("name", "kind", "operator", "type", "function")}  # type: ignore[literal-required]
    assert known == {
        "name": "lv1",
        "kind": "call_tir of a PrimFunc",
        "operator": "add",
        "type": "Tensor[(1, 128)]",
        "function": "main",
    }
    assert (node["inner"], node["source"], node["isOwn"], node["isOpenable"]) == (
        *("lv1", "add", True, False),
    )
    assert (node["group"], node["groupName"]) == ("dataflow:w0_t", "dataflow")
    assert (nodes(scene)["x"]["group"], nodes(scene)["x"]["kind"]) == ("", "parameter")


def test_links_in_the_facts_lead_to_nodes_and_functions_that_are_there(fused: Session) -> None:
    scene = after(fused)
    for node in nodes(scene).values():
        links = re.findall(r'data-function="([^"]*)" data-goto="([^"]*)"', node["facts"])
        assert links, "a node has an operand or is used"
        for function, other in links:
            assert function in fused.functions
            assert other == "" or (function == "main" and other in nodes(scene))
    facts = nodes(scene)["gv"]["facts"]
    assert 'data-function="fused_matmul1_add1" data-goto=""' in facts
    assert re.findall('data-goto="([^"]+)"', facts) == ["lv", "w1_t", "b1"]


def test_a_node_of_a_called_function_is_described_as_one_of_that(modules: Any) -> None:
    session = Session(modules.CalledInCalled)
    scene = after(session, actions.Toggle("twice"))
    inside = nodes(scene)[inlined_id(NodeId("twice"), NodeId("a"))]
    assert (inside["function"], inside["inner"], inside["isOwn"]) == ("layer", "a", False)
    assert 'data-function="layer"' in inside["facts"]
    assert inside["group"] == "twice"
    assert nodes(after(session))["twice"]["isOpenable"]


def test_what_a_thread_drew_of_a_stage_is_not_made_again_when_it_is_shown(fused: Session) -> None:
    drawn, shown = (perform(State.of(fused), actions.Checkout("1")) for _ in range(2))
    assert scene_data(shown) is scene_data(drawn)


def test_showing_the_text_leaves_the_picture_as_it_is(fused: Session) -> None:
    state = State.of(fused)
    shown = perform(state, actions.SetField("has_script", True))
    assert scene_data(shown) is scene_data(state)


def test_names_and_operators_are_told_as_text() -> None:
    builder = relax.BlockBuilder()
    x = relax.Var("<b>x\u202e", relax.TensorType([2], "float32"))
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.exp(x), "y"))
    scene = after(Session(builder.get()))
    (first, _) = nodes(scene).values()
    assert "\u202e" not in first["name"]
    assert "<b>" not in first["facts"]
    assert "&lt;b&gt;x" in first["facts"]


def test_a_small_constant_is_written_out_and_no_large_one_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def facts(array: Any) -> str:
        builder = relax.BlockBuilder()
        x = relax.Var("x", relax.TensorType(array.shape, "float32"))
        with builder.function("main", [x]):
            builder.emit_func_output(builder.emit(relax.op.add(x, relax.const(array)), "y"))
        found = nodes(after(Session(builder.get()))).values()
        return next(node["facts"] for node in found if node["kind"] == "constant")

    assert "<dt>values</dt><dd>[1. , 2.5]</dd>" in facts(np.array([1, 2.5], "float32"))
    assert "<dt>maximum</dt><dd>1</dd>" in facts(np.eye(8, dtype="float32"))
    monkeypatch.setattr(scene_data_module, "array_of", lambda *_: pytest.fail("it was read"))
    assert "values" not in facts(np.zeros((101, 100), "float32"))


def test_the_place_of_a_node_in_a_repeat_is_told(modules: Any) -> None:
    session = Session(modules.stack(24))
    (container,) = {node["container"] for node in nodes(after(session)).values()} - {""}
    scene = after(session, actions.ShowCopy(container, 3))
    inside = [node for node in nodes(scene).values() if node["copies"]]
    assert {(node["container"], node["copies"]) for node in inside} == {(container, 24)}
    assert {node["copy"] for node in inside} == {3}
    assert {"norm_3", "up_3", "down_3", "bias_3"} <= {node["name"] for node in inside}
    assert all("4 of 24" in node["facts"] for node in inside)
    assert nodes(scene)["x"]["copies"] == 0


# --- values ------------------------------------------------------------------------------------


def test_a_recorded_value_is_told_in_a_line() -> None:
    def said(*arrays: Any, text: str = "") -> str:
        taken = tuple(map(np.asarray, arrays))
        value = NodeValue(tuple(map(summarise, taken)), (None,) * len(taken), text)
        trace = Trace("main", {NodeId("y"): NodeVisit(value)}, 1.0, 1.0, 1.0)
        return value_words(trace, "y")

    matrix = np.array([[0, 1], [2, 5]], "float32")
    assert said(matrix) == "float32 (2, 2), 0 to 5, mean 2"
    assert said(np.array(7, "int64")) == "int64 (), 7 to 7"
    broken = np.array([np.nan, np.inf, 1, 3], "float32")
    assert said(broken) == "float32 (4,), 1 to 3, mean 2, 1 NaN, 1 Inf"
    assert said(np.full(2, np.nan, "float32")) == "float32 (2,), 2 NaN, 0 Inf"
    assert said(np.zeros(0, "float32")) == "float32 (0,)"
    assert said(matrix, matrix).endswith(", the first of 2")
    assert said(text="(2, \u202e3)") == "(2, \\u202e3)"


def test_what_was_not_recorded_has_no_value(fused: Session) -> None:
    assert value_words(None, "y") == ""
    assert value_words(Trace("main", {}, 1.0, 1.0, 1.0), "y") == ""
    assert {node["value"] for node in nodes(after(fused)).values()} == {""}


# --- what differs ------------------------------------------------------------------------------


def test_the_summary_counts_what_became_of_nodes(fused: Session) -> None:
    def summary(before: str, now: str) -> str:
        return after(fused, actions.Checkout(now), actions.Compare(before))["summary"]

    assert after(fused)["summary"] == ""
    assert summary("0", "1") == "7 changed"
    assert summary("1", "2") == "no node differs"
    assert summary("2", "4") == "5 → 2 fused"
    assert summary("0", "4") == "2 changed · 5 → 2 fused"
    assert summary("4", "2") == "2 → 5 split"


def test_the_summary_names_what_differs_in_the_function_itself(fused: Session) -> None:
    @tvm.transform.module_pass(opt_level=0)
    def keep(mod: Any, _: Any) -> Any:
        mod = mod.clone()
        mod["main"] = mod["main"].with_attr("kept", 1)
        return mod

    fused = fused.apply(keep)
    compared = after(fused, actions.Compare(fused.stages[-2].id))
    assert compared["summary"] == "no node differs; attribute kept: none → 1"


def test_operators_that_became_one_are_one_change(fused: Session) -> None:
    first, second = after(fused, actions.Compare("2"))["changes"]
    assert (first["sign"], first["reference"]) == ("⊃", ["lv0", "lv1", "lv2"])
    assert (second["sign"], second["reference"]) == ("⊃", ["lv3", "out"])
    assert (first["current"], second["current"]) == (["lv"], ["gv"])


def test_each_change_names_nodes_that_are_drawn(fused: Session) -> None:
    scene = after(fused, actions.Compare("0"))
    assert scene["reference"] is not None
    for change in scene["changes"]:
        assert set(change["current"]) <= set(nodes(scene))
        assert set(change["reference"]) <= set(scene["reference"]["nodes"])
        assert change["current"] + change["reference"] != []
        assert change["words"] != ""
    assert [change["sign"] for change in scene["changes"]] == ["≠", "⊃", "≠", "⊃"]
    assert scene["changes"][0]["words"] == "w0_t: lowered"


def test_changes_that_look_alike_are_one(modules: Any) -> None:
    session = Session(modules.stack(24)).apply("LegalizeOps")
    scene = after(session, actions.Compare("0"))
    places = [(one["sign"], *one["reference"], "", *one["current"]) for one in scene["changes"]]
    assert len(places) == len(set(places))
    assert len(places) <= len(nodes(scene))
    assert scene["summary"] == "146 changed"


def test_a_stage_beside_itself_does_not_differ(fused: Session) -> None:
    scene = after(fused.rename("4", "another name"), actions.Compare("3"), actions.Compare(""))
    assert (scene["reference"], scene["changes"], scene["summary"]) == (None, [], "")


# --- the legend --------------------------------------------------------------------------------


def test_the_legend_names_what_is_in_the_picture_and_nothing_else(fused: Session) -> None:
    assert words(after(fused, actions.Checkout("0"))) == ["parameter", "operator"]
    assert words(after(fused, actions.Checkout("1"))) == ["parameter", "call_tir of a PrimFunc"]
    extern = Session(MODULES["MyModuleWithExternCall"])
    assert words(after(extern)) == ["parameter", "library function"]


def test_the_legend_of_a_comparison_has_the_kinds_of_both_and_the_signs_that_are_drawn(
    fused: Session,
) -> None:
    lowered, joined = LEGEND["≠"][1], LEGEND["⊃"][1]
    kinds = ["operator", "parameter", "call_tir of a PrimFunc"]
    found = words(after(fused, actions.Compare("0")))
    assert sorted(found) == sorted([*kinds, lowered, joined])
    assert words(after(fused, actions.Compare("2")))[-1] == joined
    assert lowered not in words(after(fused, actions.Compare("2")))


def test_the_legend_says_what_edges_between_copies_mean(modules: Any) -> None:
    session = Session(modules.stack(24))
    assert "to the next copy" in words(after(session))
    assert "to the next copy" not in words(after(session, actions.ToggleAll(False)))


def test_signs_that_open_groups_are_above_the_outlines_of_changes(fused: Session) -> None:
    svg = after(fused, actions.Compare("0"))["current"]["svg"]
    assert svg.rindex('<g class="change ') < svg.index('<g class="signs"')


def test_a_sample_in_the_legend_is_a_picture_without_a_ground(fused: Session) -> None:
    legend = after(fused, actions.Compare("0"))["legend"]
    assert legend
    for entry in legend:
        assert entry["sample"].startswith("<svg")
        assert 'aria-hidden="true"' in entry["sample"]
        assert "paper" not in entry["sample"]


# --- how often ---------------------------------------------------------------------------------


def test_to_select_search_and_say_sends_no_picture_again(opened: Any, fused: Session) -> None:
    page = opened(fused)
    sent: list[object] = []
    page.explorer.observe(sent.append, "scene")
    page.select("lv")
    page.search("matmul")
    page.send(action="Say", words="hello", isError=False)
    page.send(action="Rename", stage="4", label=page.rows[-1]["label"])
    assert sent == []
    page.compare("2")
    assert len(sent) == 1


def test_a_weight_is_known_without_a_run_and_says_who_shares_it() -> None:
    builder = relax.BlockBuilder()
    x, w = (relax.Var(name, relax.TensorType((4, 4), "float32")) for name in "xw")
    tied = tvm.runtime.tensor(np.eye(4, dtype="float32"))
    with builder.function("main", [x, w]):
        y = builder.emit(relax.op.matmul(relax.op.add(x, relax.const(tied)), w), "y")
        z = builder.emit(relax.op.matmul(relax.op.add(y, relax.const(tied)), w), "z")
        builder.emit_func_output(z)
    session = Session(builder.get(), params={"w": np.full((4, 4), 7, "float32")})
    weight = selected_value(perform(State.of(session), actions.Select("w")))
    assert weight.value is not None
    assert weight.value.summaries[0].mean == 7
    assert weight.words == "shared by y, z"
    constants = [node.id for node in session.graph().nodes if node.kind is NodeKind.CONSTANT]
    for one in constants:
        words = selected_value(perform(State.of(session), actions.Select(one))).words
        assert words == "shared by gv, gv1"


def test_weights_that_arrived_as_equal_arrays_are_said_to_be_equal() -> None:
    builder = relax.BlockBuilder()
    names = ("x", "a", "b", "c", "one", "two")
    x, *weights = (relax.Var(name, relax.TensorType((4, 4), "float32")) for name in names)
    with builder.function("main", [x, *weights]):
        for weight in weights:
            x = builder.emit(relax.op.matmul(x, weight))
        builder.emit_func_output(x)
    tied, norm = np.arange(16, dtype="float32").reshape(4, 4), np.ones((4, 4), "float32")
    params = {"a": tied, "b": tied.copy(), "c": tied + 1, "one": norm, "two": norm.copy()}
    state = State.of(Session(builder.get(), params=params))
    said = {name: selected_value(perform(state, actions.Select(name))).words for name in params}
    assert said == {"a": "equal to b", "b": "equal to a", "c": "", "one": "", "two": ""}
