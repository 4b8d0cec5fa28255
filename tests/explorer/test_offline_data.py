"""A recording has all that a viewer can show of a session, without a kernel."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

from irviz.course.mlp import MyModuleStatic
from irviz.explorer import actions
from irviz.explorer import html_file as offline_data
from irviz.explorer.html_file import last, record_in_steps
from irviz.explorer.pictures import view_or_none
from irviz.explorer.runner import Jobs
from irviz.explorer.scene_data import scene_data
from irviz.explorer.slow_actions import perform
from irviz.explorer.state import Making, RunKey, State
from irviz.explorer.viewer_traits import picture_data
from irviz.model.graph.graph import NodeId
from irviz.model.runs.array_summary import summarise
from irviz.model.runs.run_result import RunResult
from irviz.model.runs.trace import NodeValue, NodeVisit, Trace
from irviz.session.session import Session
from irviz.worker import supervisor

pytestmark = pytest.mark.worker


@pytest.fixture
def state(modules: Any) -> State:
    """Two functions in three stages, of which the last has another function as well."""
    session = Session(modules.TwoFunctions, function="first")
    return State.of(session.apply("LegalizeOps").checkout("0").apply("ToNonDataflow"))


def scenes(recording: Any) -> list[Any]:
    return [view["scene"] for view in recording["views"]]


def keys(state: State) -> list[str]:
    return [scene["key"] for scene in scenes(last(record_in_steps(state)))]


def do(state: State, *done: actions.Action) -> State:
    for action in done:
        state = perform(state, action)
    return state


def test_every_stage_is_there_with_each_function_alone_and_beside_its_parent(state: State) -> None:
    found = keys(state)
    assert len(found) == len(set(found))
    for function in ("first", "second"):
        wanted = {f"{function}/0/", f"{function}/1/", f"{function}/2/"}
        wanted |= {f"{function}/1/0", f"{function}/2/0"}
        assert wanted <= set(found)
    others = {key for key in found if not key.startswith(("first", "second"))}
    assert others, "the PrimFuncs of the stage that was lowered"
    assert all("/1/" in key for key in others), "and of no other stage"


def test_the_pictures_are_the_same_whichever_stage_it_is_opened_at(state: State) -> None:
    recorded = [
        {one["key"]: one["current"]["svg"] for one in scenes(last(record_in_steps(begun)))}  # type: ignore[index]
        for begun in (state, do(state, actions.Checkout("0")))
    ]
    shown = scene_data(do(state, actions.Checkout("2")))
    assert shown["current"] is not None
    assert recorded[0]["first/2/"] == recorded[1]["first/2/"] == shown["current"]["svg"]
    assert recorded[0]["first/0/"] == recorded[1]["first/0/"]


def details_of(recording: Any, scene: Any, side: str, node: str) -> Any:
    """Return what the page shows of a node, as the file's host looks it up."""
    keys = [scene["key"], f"{scene['function']}/{scene[side]['stage']}/"]
    known = {(one["key"], one["node"], one["side"]): one for one in recording["details"]}
    own = known.get((keys[0], node, side))
    return own or known.get((keys[1], node, "current"))


def check_details(recording: Any) -> None:
    """Check that each node of each picture has its code."""
    for scene in scenes(recording):
        for side in ("current", "reference"):
            for node in (scene[side] or {"nodes": {}})["nodes"]:
                assert details_of(recording, scene, side, node) is not None, (scene["key"], node)


def test_each_stage_has_its_text_and_each_picture_the_facts_of_its_nodes(state: State) -> None:
    recording = last(record_in_steps(state))
    assert [script["stage"] for script in recording["scripts"]] == ["0", "1", "2"]
    assert all("def first" in script["text"] for script in recording["scripts"])
    check_details(recording)
    assert recording["scripts"][0]["lines"]["first"]
    blocks = recording["traits"]["blockLines"]
    others = {one["function"] for one in scenes(recording)} - {"first", "second"}
    assert blocks.keys() == {"1"}
    assert blocks["1"].keys() == others


def test_a_node_that_only_a_comparison_draws_has_its_code(modules: Any) -> None:
    """A stage by itself shows one of many layers, a comparison those that differ."""
    ones = {"up_7": np.ones((8, 8), "float32")}
    recording: Any = last(record_in_steps(State.of(Session(modules.stack(24)).bind(ones))))
    check_details(recording)
    scene = next(one for one in scenes(recording) if one["key"] == "main/1/0")
    alone = next(one for one in scenes(recording) if one["key"] == "main/0/")
    only_there = scene["reference"]["nodes"].keys() - alone["current"]["nodes"].keys()
    assert "up_7" in only_there
    found = details_of(recording, scene, "reference", "lv44")
    assert "up_7" in found["code"]


def test_it_begins_as_the_explorer_is(modules: Any) -> None:
    seen = do(
        State.of(Session(modules.SameTwice).apply("LegalizeOps")),
        actions.Compare("0"),
        actions.SetField("is_dark", True),
        actions.Select("x"),
        actions.SetField("search", "gelu"),
    )
    recording = last(record_in_steps(seen))
    traits: Any = recording["traits"]
    assert traits["scene"]["key"] == scenes(recording)[0]["key"] == "main/1/0"
    assert traits["scene"]["current"]["svg"] == (scene_data(seen)["current"] or {})["svg"]
    assert traits["isDark"] is True
    assert traits["selection"]["node"] == ""
    assert (traits["tab"], traits["tabs"], traits["forms"]) == ("Node", [], {})
    assert (traits["canUndo"], traits["canRedo"]) == (False, False)


def test_each_view_has_what_a_live_page_is_told_of_it(state: State) -> None:
    views = {view["scene"]["key"]: view for view in last(record_in_steps(state))["views"]}
    for done in (
        [actions.Checkout("0")],
        [actions.Checkout("1"), actions.Compare("0")],
        [actions.Checkout("2"), actions.Focus("second")],
    ):
        live = picture_data(do(state, *done))
        recorded: Any = views[live["scene"]["key"]]  # type: ignore[index]
        assert recorded == {name: live[name] for name in recorded}


def test_what_is_being_done_and_asked_is_not_in_it(state: State) -> None:
    busy = do(
        state,
        actions.SetField("jobs", Jobs("stage 1", "building", 2)),
        actions.Say("no such file", is_error=True),
        actions.Ask(actions.Run(), frozenset({"mlp.py"})),
        actions.SetField("making", Making("session.html")),
    )
    recording: Any = last(record_in_steps(busy))
    for status in (recording["traits"]["status"], *(one["status"] for one in recording["views"])):
        assert (status["job"], status["progress"], status["waiting"]) == ("", "", 0)
        assert (status["words"], status["question"], status["making"]) == ("", "", "")


def test_nothing_is_run(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    coloured = do(state, actions.ColourBy("time"), actions.SetField("tab", "Results"))
    for worker in (supervisor.RUNS, supervisor.TRIES):
        monkeypatch.setattr(worker, "call", lambda *_, **__: pytest.fail("it was run"))
    recording = last(record_in_steps(coloured))
    assert not any("tinted" in (one["current"] or {"svg": ""})["svg"] for one in scenes(recording))
    assert all("mean" not in one["value"] for one in recording["details"])


def test_values_that_were_recorded_are_in_it() -> None:
    array = np.array([[0, 1], [2, 5]], "float32")
    visit = NodeVisit(NodeValue((summarise(array),), (array,)))
    trace = Trace("main", {NodeId("lv0"): visit}, 1.0, 1.0, 1.0)
    result = RunResult((array[None],), 1.0, trace=trace)
    state = do(State.of(Session(MyModuleStatic)), actions.Report(RunKey("main", "0", 0, 0), result))
    recording = last(record_in_steps(state))
    values = {one["node"]: one["value"] for one in recording["details"] if one["key"] == "main/0/"}
    assert "<svg" in values["lv0"]
    assert "float32" in values["lv0"]
    assert values["lv1"] == ""
    nodes = (scenes(recording)[0]["current"] or {})["nodes"]
    assert nodes["lv0"]["value"] == "float32 (2, 2), 0 to 5, mean 2"


def test_of_a_session_with_many_pictures_those_of_the_current_function_come_first(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offline_data, "_MOST_SCENES", 6)
    found = keys(do(state, actions.Focus("second"), actions.Compare("1")))
    assert len(found) == 6
    assert found[0] == "second/2/1"
    assert {key.partition("/")[0] for key in found[:6]} == {"second"}


def test_it_is_plain_data(state: State) -> None:
    recording = last(record_in_steps(state))
    assert json.loads(json.dumps(recording, allow_nan=False)) == recording


def test_a_stage_that_failed_or_has_no_function_is_no_picture_but_a_row(modules: Any) -> None:
    session = Session(modules.SameTwice).apply("MergeCompositeFunctions")
    recording = last(record_in_steps(State.of(session)))
    traits: Any = recording["traits"]
    assert [row["id"] for row in traits["rows"]] == ["0", "1"]
    assert [scene["key"] for scene in scenes(recording)]
    json.dumps(recording)


def test_what_is_closed_can_be_opened_and_the_other_way_round(modules: Any) -> None:
    state = State.of(Session(modules.stack(24)))
    view = view_or_none(state, "current")
    repeat = next(one for one in view.closable if one.startswith("repeat"))
    recording: Any = last(record_in_steps(do(state, actions.Toggle(repeat))))
    (scene,) = (one for one in scenes(recording) if one["key"] == "main/0/")
    closed = {name for name, node in scene["current"]["nodes"].items() if node["isOpenable"]}
    assert closed
    toggled = {one["container"]: one["scene"] for one in recording["toggled"]}
    assert closed <= toggled.keys()
    for container in closed:
        nodes = toggled[container]["current"]["nodes"]
        assert container not in nodes
        assert nodes.keys() - scene["current"]["nodes"].keys()
        assert toggled[container]["key"] == scene["key"]
        assert len(toggled[container]["moved"]) in (0, 2)
        for node in nodes:
            assert details_of(recording, scene, "current", node) is not None, node
    assert toggled.keys() - closed, "what is open can be closed"


def test_pictures_with_something_opened_take_no_more_room_than_there_is(
    modules: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offline_data, "_MOST_TOGGLED_NODES", 0)
    assert last(record_in_steps(State.of(Session(modules.stack(24)))))["toggled"] == []


def test_stages_have_their_numpy_as_long_as_there_is_room(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    def written() -> list[bool]:
        return [any(one["function"] for one in each["numpy"]) for each in found["scripts"]]

    found = last(record_in_steps(state))
    assert written() == [True, True, True]
    monkeypatch.setattr(offline_data, "_MOST_NUMPY_FUNCTIONS", len(state.stage.module.functions))
    found = last(record_in_steps(state))
    assert written() == [one["isShown"] for one in found["traits"]["rows"]]
    assert all("to_numpy" in each["numpy"][0]["text"] for each in found["scripts"][:2])


def test_pictures_of_values_have_the_colours_of_the_page() -> None:
    array = np.array([[0, 1], [2, 5]], "float32")
    visit = NodeVisit(NodeValue((summarise(array),), (array,)))
    trace = Trace("main", {NodeId("lv0"): visit}, 1.0, 1.0, 1.0)
    result = RunResult((array[None],), 1.0, trace=trace)
    state = do(State.of(Session(MyModuleStatic)), actions.Report(RunKey("main", "0", 0, 0), result))
    drawn = next(
        one["value"] for one in last(record_in_steps(state))["details"] if one["node"] == "lv0"
    )
    assert "fill: var(--irviz-picture-operator-line)" in drawn
    histogram = drawn[drawn.rindex("<svg") :]  # numbers in cells are read on their cells' colours
    assert "#" not in "".join(re.findall(r'(?:fill|stroke): [^;"]*', histogram))


def test_weights_are_drawn_in_the_file_as_long_as_there_is_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    weights = {"w0": np.eye(128, 784, dtype="float32"), "w1": np.eye(10, 128, dtype="float32")}
    state = State.of(Session(MyModuleStatic, params=weights))

    def pictures() -> list[int]:
        found = {one["node"]: one["value"] for one in last(record_in_steps(state))["details"]}
        return [found[name].count("<svg") for name in weights]

    assert pictures() == [2, 2]
    monkeypatch.setattr(offline_data, "_MOST_OF_CHARTS", 1)
    assert pictures() == [2, 1]
