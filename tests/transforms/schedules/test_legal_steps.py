"""Of the steps that loops and blocks allow, each is tried, and is legal or comes with a reason."""

from __future__ import annotations

import os

import pytest
import tvm

from irviz.course.mm_relu import MyModule
from irviz.ir.loop_nest_reader import loop_nest
from irviz.model.loop_nest import (
    Block,
    BlockAddress,
    Loop,
    LoopAddress,
    LoopKind,
    LoopNest,
    ScheduleAddress,
    blocks_in_loops,
)
from irviz.transforms.schedules.legal_steps import StepOffer, possible_steps, tried_steps
from irviz.transforms.schedules.schedule_step import ScheduleStep

pytestmark = pytest.mark.worker

FUNCTION = "mm_relu"
NEST = loop_nest(MyModule[FUNCTION], FUNCTION)


def tried(*chosen: ScheduleAddress) -> tuple[StepOffer, ...]:
    return tried_steps(MyModule, possible_steps(NEST, chosen))


def legal(*chosen: ScheduleAddress) -> set[str]:
    return {
        f"{one.step.primitive} {one.target}".strip() for one in tried(*chosen) if not one.reason
    }


def reason(primitive: str, *chosen: ScheduleAddress) -> str:
    return next(one.reason for one in tried(*chosen) if one.step.primitive == primitive)


def test_a_loop_is_offered_what_tvm_accepts_there_with_every_target() -> None:
    found = legal(LoopAddress("Y", 1))
    assert {"split", "parallel", "vectorize", "unroll", "bind"} <= found
    assert {"reorder before i", "reorder after k", "fuse with i", "fuse with k"} <= found
    assert {"reverse_compute_at block C", "decompose_reduction block Y"} <= found
    assert "compute_at block C" not in found


def test_a_block_is_offered_the_places_that_it_can_be_moved_to_and_its_buffers() -> None:
    found = legal(BlockAddress("C"))
    assert {f"reverse_compute_at at {one} of Y" for one in "ijk"} <= found
    assert {"cache_read Y", "cache_write C"} <= found
    assert {"cache_read A", "cache_read B", "cache_write Y"} <= legal(BlockAddress("Y"))


@pytest.mark.parametrize(
    ("depth", "target", "after"),
    [(2, "before i", "kij"), (0, "after k", "jki"), (1, "after k", "ikj")],
)
def test_loops_are_moved_as_the_words_say(depth: int, target: str, after: str) -> None:
    offers = tried(LoopAddress("Y", depth))
    (step,) = [
        one.step for one in offers if (one.step.primitive, one.target) == ("reorder", target)
    ]
    loops = next(iter(blocks_in_loops(loop_nest(step(MyModule)[FUNCTION], FUNCTION).body)))[1]
    assert "".join(one.variable for one in loops) == after


def test_why_a_step_is_not_legal_is_said_in_tvms_words_on_one_line() -> None:
    words = reason("vectorize", LoopAddress("Y", 2))
    assert "is not a data parallel" in words
    assert "\n" not in words
    assert not words.startswith("sch.")


def test_what_is_offered_is_what_becomes_of_it() -> None:
    for one in filter(lambda one: one.is_tried, tried(LoopAddress("C", 0))):
        if one.reason:
            with pytest.raises(Exception, match="not legal here"):
                one.step(MyModule)
        else:
            one.step(MyModule)


@pytest.mark.parametrize(("extent", "factors"), [(6, [2, 3]), (4, [2, 2]), (5, [None, 4])])
def test_the_factors_that_are_tried_divide_the_loop_if_it_can_be_divided(
    extent: int, factors: list[int | None]
) -> None:
    loop = Loop("i", str(extent), LoopKind.SERIAL, (Block("B", (), (), (), (), id="b"),), id="i")
    (split, *_) = possible_steps(LoopNest("f", (), (), (loop,)), [LoopAddress("B", 0)])
    assert split.step.arguments["factors"] == factors


def test_several_that_are_chosen_are_taken_in_order() -> None:
    assert {"reorder", "fuse"} & legal(LoopAddress("Y", 2), LoopAddress("Y", 1)) == {"reorder"}
    assert {"reorder", "fuse"} <= legal(LoopAddress("Y", 1), LoopAddress("Y", 2))
    assert "reverse_compute_at" in legal(BlockAddress("C"), LoopAddress("Y", 1))


def test_a_step_that_ends_the_process_is_refused_and_the_others_are_tried() -> None:
    class Deadly(ScheduleStep):
        def __call__(self, _: tvm.IRModule) -> tvm.IRModule:
            os._exit(1)

    arguments = {"loop": LoopAddress("Y", 2)}
    fine = StepOffer(ScheduleStep(FUNCTION, "unroll", arguments))
    deadly = StepOffer(Deadly(FUNCTION, "unroll", arguments))
    found = tried_steps(MyModule, [fine, deadly, fine])
    assert [bool(one.reason) for one in found] == [False, True, False]


def test_nothing_is_offered_for_nothing() -> None:
    assert tried() == ()
