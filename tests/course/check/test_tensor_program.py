"""The exercises on schedules: a right answer, wrong ones that come near, and none."""

import pytest

from irviz.course import check
from irviz.course.check import Mark

pytestmark = pytest.mark.worker


def rows(sch):
    i, j, k = sch.get_loops(sch.get_sblock("Y"))
    sch.reorder(i, k, j)


def columns(sch):
    i, j, k = sch.get_loops(sch.get_sblock("Y"))
    sch.reorder(k, i, j)


def test_the_loops_have_to_be_in_the_order_that_is_asked_for():
    assert check.loop_order(rows).mark is Mark.RIGHT
    assert "run over vk, vi, vj" in check.loop_order(columns).given


def batch(*primitives):
    """Return a schedule of the batch with some of the primitives that are asked for."""

    def schedule(sch):
        matmul = sch.get_sblock("matmul")
        n, _, j, k = sch.get_loops(matmul)
        sch.reorder(k, j)
        if "relu" in primitives:
            sch.reverse_compute_at(sch.get_sblock("relu"), n)
        if "parallel" in primitives:
            sch.parallel(n)
        if "vectorize" in primitives:
            sch.vectorize(j)
        if "init" in primitives:
            sch.decompose_reduction(matmul, k)

    return schedule


PRIMITIVES = ("relu", "parallel", "vectorize", "init")


def test_a_batch_needs_all_four_parts_of_the_schedule():
    assert check.batch_schedule(batch(*PRIMITIVES)).mark is Mark.RIGHT
    given = {}
    for missing in PRIMITIVES:
        verdict = check.batch_schedule(batch(*(one for one in PRIMITIVES if one != missing)))
        assert verdict.mark is Mark.WRONG
        given[missing] = verdict.hint
    assert "reverse_compute_at" in given["relu"]
    assert "parallel takes" in given["parallel"]
    assert "vectorize" in given["vectorize"]
    assert "decompose_reduction" in given["init"]


@pytest.mark.parametrize("exercise", [check.loop_order, check.batch_schedule])
def test_an_empty_schedule_is_never_right(exercise):
    assert exercise(...).mark is exercise(None).mark is Mark.UNANSWERED
    for empty in (lambda _: None, "", lambda sch: sch.get_sblock("nothing")):
        verdict = exercise(empty)
        assert verdict.mark is Mark.WRONG
        assert all((verdict.expected, verdict.given, verdict.hint))


def test_an_illegal_step_is_explained_as_tvm_does():
    verdict = check.loop_order(lambda sch: sch.parallel(sch.get_loops(sch.get_sblock("Y"))[2]))
    assert "not a data parallel block iter" in verdict.given
