"""A recording has all that a viewer can show of a session, without a kernel."""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from typing import Any

import numpy as np
import pytest
import tvm

from irviz.course.mlp import MyModuleStatic
from irviz.explorer import actions, save_html
from irviz.explorer.background_actions import perform
from irviz.explorer.background_runner import Jobs
from irviz.explorer.graph_pane_data import scene_data
from irviz.explorer.save_html import Room, record_in_steps
from irviz.explorer.stage_pictures import view_or_none
from irviz.explorer.stage_rows import iter_change_counts
from irviz.explorer.state import ChangesKey, Making, Question, RunKey, State
from irviz.explorer.viewer_traits import found_nodes, picture_data
from irviz.model.graph.graph import NodeId
from irviz.model.runs.array_diff import summarise
from irviz.model.runs.execution_trace import NodeValue, NodeVisit, Trace
from irviz.model.runs.run_result import RunResult
from irviz.progress import with_progress
from irviz.session.session import Session
from irviz.transforms.stage import Stage
from irviz.worker import supervisor

pytestmark = pytest.mark.worker


@pytest.fixture
def state(modules: Any) -> State:
    """Two functions in three stages, of which the last has another function as well."""
    session = Session(modules.TwoFunctions, function="first")
    return State.of(session.apply("LegalizeOps").checkout("0").apply("ToNonDataflow"))


def scenes(recording: Any) -> list[Any]:
    return [view["scene"] for view in recording["views"]]


def keys(recording: Any) -> list[str]:
    return [scene["key"] for scene in scenes(recording)]


def do(state: State, *done: actions.Action) -> State:
    for action in done:
        state = perform(state, action)
    return state


def counted(state: State) -> State:
    """Return a state in which the changes of its function have been counted, as a page does."""
    for counts in iter_change_counts(state):
        state = do(state, actions.Report(ChangesKey(), counts))
    return state


def test_every_stage_is_there_with_each_function_alone_and_beside_its_parent(state: State) -> None:
    found = keys(with_progress(record_in_steps(state)))
    assert len(found) == len(set(found))
    for function in ("first", "second"):
        wanted = {f"{function}/0/", f"{function}/1/", f"{function}/2/"}
        wanted |= {f"{function}/1/0", f"{function}/2/0"}
        assert wanted <= set(found)
    others = {name for name, _, _ in (key.split("/") for key in found)} - {"first", "second"}
    assert others, "the PrimFuncs of the stage that was lowered"
    for name in others:  # of the other stages it is said that they lack it
        assert {key for key in found if key.startswith(name)} == {
            *(f"{name}/0/", f"{name}/1/", f"{name}/1/0", f"{name}/2/"),
        }


def test_the_pictures_are_the_same_whichever_stage_it_is_opened_at(state: State) -> None:
    recorded = [
        {one["key"]: one["current"]["svg"] for one in scenes(with_progress(record_in_steps(begun)))}  # type: ignore[index]
        for begun in (state, do(state, actions.Checkout("0")))
    ]
    shown = scene_data(do(state, actions.Checkout("2")))
    assert shown["current"] is not None
    assert recorded[0]["first/2/"] == recorded[1]["first/2/"] == shown["current"]["svg"]
    assert recorded[0]["first/0/"] == recorded[1]["first/0/"]


def test_a_stage_without_functions_says_so(modules: Any) -> None:
    @tvm.transform.module_pass(opt_level=0, name="KeepNothing")
    def keep_nothing(*_: object) -> tvm.IRModule:
        return tvm.IRModule({})

    recording = with_progress(
        record_in_steps(State.of(Session(modules.SameTwice).apply(keep_nothing).checkout("0")))
    )
    (empty,) = (one for one in scenes(recording) if one["key"] == "main/1/")
    assert empty["current"]["error"] == "This stage has no functions left."


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
    recording = with_progress(record_in_steps(state))
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
    recording: Any = with_progress(record_in_steps(State.of(Session(modules.stack(24)).bind(ones))))
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
    recording = with_progress(record_in_steps(seen))
    traits: Any = recording["traits"]
    assert traits["scene"]["key"] == scenes(recording)[0]["key"] == "main/1/0"
    assert traits["scene"]["current"]["svg"] == (scene_data(seen)["current"] or {})["svg"]
    assert traits["isDark"] is True
    assert traits["selection"]["node"] == ""
    assert (traits["tab"], traits["tabs"], traits["forms"]) == ("Node", [], {})
    assert (traits["canUndo"], traits["canRedo"]) == (False, False)


@pytest.mark.parametrize(
    ("asked", "done"),
    [
        ("first/0/", [actions.Checkout("0")]),
        ("first/1/0", [actions.Checkout("1"), actions.Compare("0")]),
        ("second/2/", [actions.Checkout("2"), actions.Focus("second")]),
        # to the stage that is compared with
        ("first/0/0", [actions.Checkout("1"), actions.Compare("0"), actions.Checkout("0")]),
        ("first/2/2", [actions.Checkout("1"), actions.Compare("2"), actions.Checkout("2")]),
        # to a stage that lacks the function, alone and from a comparison with it
        ("add/0/", [actions.Checkout("1"), actions.Focus("add"), actions.Checkout("0")]),
        (
            "add/0/0",
            [
                *(actions.Checkout("1"), actions.Focus("add"), actions.Compare("0")),
                actions.Checkout("0"),
            ],
        ),
    ],
)
def test_what_is_asked_for_leads_to_what_a_live_page_is_told(
    state: State, asked: str, done: list[actions.Action]
) -> None:
    recording = with_progress(record_in_steps(state))
    views = {view["scene"]["key"]: view for view in recording["views"]}
    live = picture_data(counted(do(state, *done)))
    recorded: Any = views[recording["leads"].get(asked, asked)]
    assert recorded == {name: live[name] for name in recorded}


def test_a_stage_that_lost_a_function_is_there_beside_the_one_that_had_it(modules: Any) -> None:
    later = Stage("1", modules.SameTwice, parent="0")
    state = State.of(Session(modules.TwoFunctions, function="first").add_stages([later]))
    views = {one["scene"]["key"]: one for one in with_progress(record_in_steps(state))["views"]}
    before = do(state, actions.Checkout("0"), actions.Focus("first"))
    live = picture_data(counted(do(before, actions.Checkout("1"), actions.Compare("0"))))
    recorded: Any = views["first/1/0"]
    assert recorded == {name: live[name] for name in recorded}
    assert recorded["scene"]["reference"]["svg"]
    assert "no function 'first'" in recorded["scene"]["current"]["error"]


def test_a_stage_of_another_module_shows_another_function(modules: Any) -> None:
    other = Stage("1", modules.SameTwice)
    state = State.of(Session(modules.TwoFunctions, function="first").add_stages([other]))
    live = do(state, actions.Checkout("0"), actions.Focus("first"), actions.Checkout("1"))
    assert live.function == "main"
    assert with_progress(record_in_steps(state))["leads"]["first/1/"] == "main/1/"


def test_the_changes_of_stages_are_counted_for_each_function(state: State) -> None:
    views = with_progress(record_in_steps(state))["views"]
    counts = {one["scene"]["key"]: [row["changes"] for row in one["rows"]] for one in views}
    assert counts["first/0/"] != counts["second/0/"]
    assert max(counts["first/0/"] + counts["second/0/"]) > 0


def test_what_is_shown_is_recorded_before_other_stages(state: State) -> None:
    steps = record_in_steps(do(state, actions.Checkout("2")))
    assert next(step for step in steps if step.startswith("stage")).startswith("stage 2 of")


def test_pictures_that_there_is_no_room_for_are_nowhere_offered(state: State) -> None:
    room = Room(scenes=6)
    recording: Any = with_progress(record_in_steps(do(state, actions.Checkout("1")), room))
    drawn = {one["key"] for one in scenes(recording) if one["current"]["svg"]}
    assert len(drawn) == 6
    for view in (recording["traits"], *recording["views"]):
        stage = view["scene"]["current"]["stage"]
        assert {f"{one['name']}/{stage}/" for one in view["functions"]} <= drawn


def test_nodes_are_found_as_in_a_live_page(state: State) -> None:
    searched = with_progress(record_in_steps(state))["searched"]
    for words in ("add", "(2,)", "x"):
        live = found_nodes(do(state, actions.SetField("search", words)))
        recorded = {
            (function, one["node"], one["line"].strip(), " ".join(one["rest"].split()))
            for function in ("first", "second")
            for one in searched[f"{function}/2/"]
            if words in one["text"]
        }
        assert recorded == {
            (one["function"], one["node"], one["line"].strip(), " ".join(one["rest"].split()))
            for one in live["nodes"]
        }
        assert recorded
    assert not [key for key in searched if not key.endswith("/")], "each stage by itself"


def test_nodes_are_found_where_groups_leave_no_time(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    def take_all_time(*_: object) -> Generator[str, None, tuple[list[object], list[object]]]:
        monkeypatch.setattr(save_html, "searched_nodes", lambda *_: TimeoutError("none is left"))
        yield "groups"
        return [], []

    monkeypatch.setattr(save_html, "_toggled", take_all_time)
    assert with_progress(record_in_steps(state))["searched"]["first/2/"]


def test_what_is_being_done_and_asked_is_not_in_it(state: State) -> None:
    busy = do(
        state,
        actions.SetField("jobs", Jobs("stage 1", "building", 2)),
        actions.Say("no such file", is_error=True),
        actions.SetField("question", Question(actions.Run(), frozenset({"mlp.py"}))),
        actions.SetField("making", Making("session.html")),
    )
    recording: Any = with_progress(record_in_steps(busy))
    for status in (recording["traits"]["status"], *(one["status"] for one in recording["views"])):
        assert (status["job"], status["progress"], status["waiting"]) == ("", "", 0)
        assert (status["words"], status["question"], status["making"]) == ("", "", "")


def test_nothing_is_run(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    coloured = do(state, actions.ColourBy("time"), actions.SetField("tab", "Results"))
    for worker in (supervisor.RUNS, supervisor.TRIES):
        monkeypatch.setattr(worker, "call", lambda *_, **__: pytest.fail("it was run"))
    recording = with_progress(record_in_steps(coloured))
    assert not any("tinted" in (one["current"] or {"svg": ""})["svg"] for one in scenes(recording))
    assert all("mean" not in one["value"] for one in recording["details"])


def test_values_that_were_recorded_are_in_it() -> None:
    array = np.array([[0, 1], [2, 5]], "float32")
    visit = NodeVisit(NodeValue((summarise(array),), (array,)))
    trace = Trace("main", {NodeId("lv0"): visit}, 1.0, 1.0, 1.0)
    result = RunResult((array[None],), 1.0, trace=trace)
    state = do(State.of(Session(MyModuleStatic)), actions.Report(RunKey("main", "0", 0, 0), result))
    recording = with_progress(record_in_steps(state))
    values = {one["node"]: one["value"] for one in recording["details"] if one["key"] == "main/0/"}
    assert "<svg" in values["lv0"]
    assert "float32" in values["lv0"]
    assert values["lv1"] == ""
    nodes = (scenes(recording)[0]["current"] or {})["nodes"]
    assert nodes["lv0"]["value"] == "float32 (2, 2), 0 to 5, mean 2"


def test_of_a_session_with_many_pictures_those_of_the_current_function_come_first(
    state: State,
) -> None:
    compared = do(state, actions.Focus("second"), actions.Compare("1"))
    found = keys(with_progress(record_in_steps(compared, Room(scenes=6))))
    assert len(found) == 6
    assert found[0] == "second/2/1"
    assert {key.partition("/")[0] for key in found[:6]} == {"second"}


def test_it_is_plain_data(state: State) -> None:
    recording = with_progress(record_in_steps(state))
    assert json.loads(json.dumps(recording, allow_nan=False)) == recording


def test_a_stage_that_failed_or_has_no_function_is_no_picture_but_a_row(modules: Any) -> None:
    session = Session(modules.SameTwice).apply("MergeCompositeFunctions")
    recording = with_progress(record_in_steps(State.of(session)))
    traits: Any = recording["traits"]
    assert [row["id"] for row in traits["rows"]] == ["0", "1"]
    assert [scene["key"] for scene in scenes(recording)]
    json.dumps(recording)


def test_what_is_closed_can_be_opened_and_the_other_way_round(modules: Any) -> None:
    state = State.of(Session(modules.stack(24)))
    view = view_or_none(state, "current")
    repeat = next(one for one in view.closable if one.startswith("repeat"))
    recording: Any = with_progress(record_in_steps(do(state, actions.Toggle(repeat))))
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
    assert toggled.keys() - closed - {"+", "-"}, "what is open can be closed"
    assert not any(one["isOpenable"] for one in toggled["+"]["current"]["nodes"].values())
    assert not any(one["name"] for one in toggled["-"]["current"]["groups"].values())
    found = {one["node"] for one in recording["searched"]["main/0/"]}
    for drawn in toggled.values():  # what is closed is found as well
        assert {one for one in drawn["current"]["nodes"] if one.startswith("up_")} <= found


def test_pictures_with_something_opened_take_no_more_room_than_there_is(modules: Any) -> None:
    state = State.of(Session(modules.stack(24)))
    assert with_progress(record_in_steps(state, Room(toggled_nodes=0)))["toggled"] == []


def test_stages_have_their_numpy_as_long_as_there_is_room(state: State) -> None:
    def written() -> list[bool]:
        return [any(one["function"] for one in each["numpy"]) for each in found["scripts"]]

    found = with_progress(record_in_steps(state))
    assert written() == [True, True, True]
    room = Room(numpy_functions=len(state.stage.module.functions))
    found = with_progress(record_in_steps(state, room))
    assert written() == [one["isShown"] for one in found["traits"]["rows"]]
    assert all("to_numpy" in each["numpy"][0]["text"] for each in found["scripts"][:2])


def test_pictures_of_values_have_the_colours_of_the_page() -> None:
    array = np.array([[0, 1], [2, 5]], "float32")
    visit = NodeVisit(NodeValue((summarise(array),), (array,)))
    trace = Trace("main", {NodeId("lv0"): visit}, 1.0, 1.0, 1.0)
    result = RunResult((array[None],), 1.0, trace=trace)
    state = do(State.of(Session(MyModuleStatic)), actions.Report(RunKey("main", "0", 0, 0), result))
    drawn = next(
        one["value"]
        for one in with_progress(record_in_steps(state))["details"]
        if one["node"] == "lv0"
    )
    assert "fill: var(--irviz-picture-operator-line)" in drawn
    histogram = drawn[drawn.rindex("<svg") :]  # numbers in cells are read on their cells' colours
    assert "#" not in "".join(re.findall(r'(?:fill|stroke): [^;"]*', histogram))


def test_weights_are_drawn_in_the_file_as_long_as_there_is_room() -> None:
    weights = {"w0": np.eye(128, 784, dtype="float32"), "w1": np.eye(10, 128, dtype="float32")}
    state = State.of(Session(MyModuleStatic, params=weights))

    def pictures(room: Room) -> list[int]:
        details = with_progress(record_in_steps(state, room))["details"]
        found = {one["node"]: one["value"] for one in details}
        return [found[name].count("<svg") for name in weights]

    assert pictures(Room()) == [2, 2]
    assert pictures(Room(charts=1)) == [2, 1]
