"""A click on a loop offers the steps that are legal there, and a step that is chosen is done."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from irviz.course.mm_relu import MyModule
from irviz.explorer import actions, effects
from irviz.explorer.effects import Effects
from irviz.explorer.shown_schedule import loop_addresses, schedule_data
from irviz.explorer.stage_rows import stage_rows
from irviz.explorer.viewer.schema import OfferedStep, Schedule
from irviz.model.loop_nest import BlockAddress, LoopAddress, ScheduleAddress
from irviz.session.session import Session

pytestmark = pytest.mark.worker


@pytest.fixture
def desk(desk_class: Any) -> Any:
    made = desk_class(Session(MyModule), effects=Effects)
    made.dispatch(actions.SetField("runs_new_stages", False))
    made.dispatch(actions.SetField("measures_steps", False))
    return made


def choose(desk: Any, *chosen: ScheduleAddress) -> Schedule:
    """Click on loops and blocks; return what is offered then."""
    ids = {address: one for one, address in loop_addresses(desk.state).items()}
    for number, address in enumerate(chosen):
        desk.dispatch(actions.ChooseLoop(ids[address], adds=number > 0))
    return schedule_data(desk.state)


def step(schedule: Schedule, primitive: str) -> OfferedStep:
    return next(one for one in schedule["steps"] if one["primitive"] == primitive)


def test_a_chosen_loop_says_what_it_is_and_offers_legal_steps_first(desk: Any) -> None:
    schedule = choose(desk, LoopAddress("Y", 2))
    assert (schedule["title"], schedule["facts"]) == ("loop k", "extent 128 · reduction")
    assert schedule["isTried"]
    reasons = [bool(one["reason"]) for one in schedule["steps"] if one["isTried"]]
    assert reasons == sorted(reasons)
    assert not step(schedule, "annotate")["isTried"]
    assert step(schedule, "split")["fields"][0]["value"] == "32, 4"
    assert step(schedule, "reorder")["targets"] == ["before i", "before j"]
    assert "threadIdx.y" in step(schedule, "bind")["fields"][0]["values"]
    assert "not a data parallel" in step(schedule, "vectorize")["reason"]


def test_a_chosen_block_says_what_it_reads_and_writes(desk: Any) -> None:
    schedule = choose(desk, BlockAddress("Y"))
    assert (schedule["title"], schedule["facts"]) == ("block Y", "reads A, B · writes Y")
    assert step(schedule, "cache_read")["targets"] == ["A", "B"]


def test_several_are_chosen_in_order_and_a_second_click_takes_one_out(desk: Any) -> None:
    first, second = LoopAddress("Y", 1), LoopAddress("Y", 0)
    assert choose(desk, first, second)["title"] == "loop j, then loop i"
    assert choose(desk, first, second, first)["title"] == "loop i"
    desk.dispatch(actions.ChooseLoop(""))
    assert schedule_data(desk.state)["steps"] == []


def test_a_step_that_is_chosen_is_done_with_the_readers_value(desk: Any) -> None:
    choose(desk, LoopAddress("Y", 1))
    desk.dispatch(actions.DoStep("split", "", ["[8, None]"]))
    assert desk.session.current.transform.arguments["factors"] == [8, None]
    assert schedule_data(desk.state)["chosen"] == []
    choose(desk, LoopAddress("Y", 2))
    desk.dispatch(actions.DoStep("reorder", "after k", []))
    moved = desk.session.current.transform.arguments["ordered_loops"]
    assert moved == [LoopAddress("Y", 3), LoopAddress("Y", 2)]


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (actions.DoStep("split", "", ["a"]), "factors is 'a'"),
        (actions.DoStep("split", "", [" "]), "factors is empty: write a list of numbers"),
        (actions.DoStep("split", "", ["0, 4"]), "required to be positive"),
        (actions.DoStep("compute_at", "block C", []), "the block 'C' is an output block"),
        (actions.DoStep("merge", "", []), "merge is not offered for what is chosen"),
    ],
)
def test_what_cannot_be_done_is_said_and_makes_no_stage(
    desk: Any, wanted: actions.DoStep, words: str
) -> None:
    choose(desk, LoopAddress("Y", 1))
    desk.dispatch(wanted)
    assert words.casefold() in desk.said.casefold()
    assert len(desk.session.stages) == 1


def test_the_page_is_answered_while_steps_are_tried(
    desk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end, tried = threading.Event(), effects.tried_steps

    def slow(*given: Any) -> Any:
        may_end.wait(20)
        return tried(*given)

    async def choosing() -> None:
        monkeypatch.setattr(effects, "tried_steps", slow)
        assert not choose(desk, LoopAddress("Y", 1))["isTried"]
        assert choose(desk, LoopAddress("Y", 2))["title"] == "loop k"
        may_end.set()
        while not schedule_data(desk.state)["isTried"]:
            await asyncio.sleep(0.01)
        assert "before j" in step(schedule_data(desk.state), "reorder")["targets"]

    asyncio.run(choosing())


def test_stages_say_how_much_faster_their_schedule_is(desk: Any) -> None:
    choose(desk, LoopAddress("Y", 0))
    desk.dispatch(actions.DoStep("parallel", "", []))
    assert [row["speed"] for row in stage_rows(desk.state)] == ["", ""]
    desk.dispatch(actions.MeasureSteps())
    first, second = stage_rows(desk.state)
    assert first["speed"] == "1.0×"
    assert second["speed"].endswith("×")
    assert max(first["share"], second["share"]) == 1.0
