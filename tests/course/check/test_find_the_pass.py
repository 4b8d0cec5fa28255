"""The exercises on wrong passes: a right answer, wrong ones that come near, and none."""

import pytest
from tvm import relax

import irviz
from irviz.course import check
from irviz.course.check import Mark
from irviz.course.check.find_the_pass import (
    OTHER_PIPELINE,
    PIPELINE,
    drop_activations,
    hoist_activations,
)
from irviz.course.mlp import MyModuleHighLevel

pytestmark = [pytest.mark.worker, pytest.mark.build]


def halving(count, holds):
    low, high = 0, count
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return high


def one_by_one(count, holds):
    return next(number for number in range(1, count + 1) if not holds(number))


def test_a_bisection_finds_the_pass_and_asks_seldom():
    assert check.first_wrong_pass(halving).mark is Mark.RIGHT
    assert "asked" in check.first_wrong_pass(one_by_one).given
    assert "the answer gave 0" in check.first_wrong_pass(lambda count, _: count - 1).given


def test_a_program_is_small_and_shows_the_bug():
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((2,), "float32"))
    with builder.function("main", [x]):
        total = builder.emit(relax.op.add(x, x))
        builder.emit_func_output(builder.emit(relax.op.nn.relu(total)))
    small = builder.get()  # docs/solutions.md has what irviz.reduce finds
    assert check.small_program(small).mark is Mark.RIGHT
    assert "7 bindings" in check.small_program(MyModuleHighLevel).given
    harmless = drop_activations(small)
    assert "computes what it did before" in check.small_program(harmless).given


@pytest.mark.parametrize(
    ("passes", "wrong"), [(PIPELINE, hoist_activations), (OTHER_PIPELINE, drop_activations)]
)
def test_of_the_passes_of_a_pipeline_the_planted_one_is_wrong(passes, wrong):
    assert irviz.bisect(MyModuleHighLevel, passes).stage.label == wrong.__name__


@pytest.mark.parametrize("exercise", [check.first_wrong_pass, check.small_program])
def test_an_empty_answer_is_never_right(exercise):
    assert exercise(...).mark is exercise(None).mark is Mark.UNANSWERED
    for empty in (lambda *_: None, 16):
        verdict = exercise(empty)
        assert verdict.mark is Mark.WRONG
        assert all((verdict.expected, verdict.given, verdict.hint))
