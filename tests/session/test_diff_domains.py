"""What the blocks of a scheduled PrimFunc visit is compared with what they visited before.

`bench/diff.py prim_func_mutants` tries 300 random schedules.
"""

import random

import pytest
from tvm import s_tir
from tvm.script import from_source

import irviz
from tests.random_schedules import (
    NOT_THE_SAME,
    Matmul,
    random_schedule,
    verdicts,
    with_planted_error,
)


def loops_of(schedule, name):
    return schedule.get_loops(schedule.get_sblock(name))


def split(schedule):
    schedule.split(loops_of(schedule, "Y")[2], [None, 4])


def split_with_rest(schedule):
    schedule.split(loops_of(schedule, "Y")[1], [None, 4])


def fuse(schedule):
    schedule.fuse(*loops_of(schedule, "Y")[:2])


def blockize(schedule):
    schedule.blockize(loops_of(schedule, "Y")[1])


def nothing(_):
    pass


def scheduled(mod, step):
    schedule = s_tir.Schedule(mod)
    step(schedule)
    return schedule.mod


def edited(mod, *edits):
    text = mod.script()
    for old, new in edits:
        assert old in text
        text = text.replace(old, new, 1)
    return from_source(text)


def block_lines(before, after):
    lines = irviz.diff(before, after).text().splitlines()
    return [line.strip() for line in lines if line.startswith("  block ")]


REMAP_Y = 'vi, vj, vk = T.axis.remap("SSR", [i, j, k])'
PLANTED = {
    "a wrong factor": (
        split,
        [("k_0 * 4 + k_1", "k_0 * 6 + k_1")],
        "loop k → k_0, k_1: split, but covers 6 of 8, visits 2 others",
    ),
    "a wrong extent": (
        split,
        [("T.grid(6, 10, 2, 4)", "T.grid(6, 10, 1, 4)")],
        "loop k → k_0, k_1: split, but covers 4 of 8",
    ),
    "an offset": (
        split,
        [("k_0 * 4 + k_1", "k_0 * 4 + k_1 + 1")],
        "loop k → k_0, k_1: split, but covers 7 of 8, visits 1 other",
    ),
    "a wrong predicate": (
        split_with_rest,
        [("j_0 * 4 + j_1 < 10", "j_0 * 4 + j_1 < 9")],
        "loop j → j_0, j_1: split, but covers 9 of 10",
    ),
    "no predicate": (
        split_with_rest,
        [("T.where(j_0 * 4 + j_1 < 10)", "pass")],
        "loop j → j_0, j_1: split, but visits 2 more",
    ),
    "a wrong divisor": (
        fuse,
        [("i_j_fused // 10", "i_j_fused // 9")],
        "loop i, j → i_j_fused: fused, but covers 54 of 60, visits 6 others",
    ),
    "a wrong modulus": (
        fuse,
        [("i_j_fused % 10", "i_j_fused % 9")],
        "loop i, j → i_j_fused: fused, but covers 54 of 60, visits 6 twice",
    ),
    "a repeated reduction": (
        blockize,
        [
            (
                'vj_i, vk_i = T.axis.remap("SR", [j, k])',
                "vj_i, vk_i = T.axis.spatial(10, j), T.axis.reduce(8, k // 2)",
            )
        ],
        "loop k: covers 4 of 8, visits each twice",
    ),
    "an outer axis": (
        blockize,
        [("T.axis.spatial(6, i)", "T.axis.spatial(6, T.max(i - 1, 0))")],
        "loop i: covers 5 of 6, visits 1 twice",
    ),
    "one axis for two": (
        nothing,
        [(REMAP_Y, 'vi, vj, vk = T.axis.remap("SSR", [i, i, k])')],
        "covers 6 of 60",
    ),
    "a loop too much": (
        nothing,
        [("T.grid(6, 10)", "T.grid(6, 10, 3)"), ("for i, j in", "for i, j, again in")],
        "loop none → again: added, but visits each 3 times",
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_error_in_the_domain_of_a_block_is_told(name):
    step, edits, words = PLANTED[name]
    after = scheduled(Matmul, step)
    assert not any(word in line for line in block_lines(Matmul, after) for word in NOT_THE_SAME)
    (line,) = (line for line in block_lines(Matmul, edited(after, *edits)) if "loop" in line)
    assert words in line


def test_a_block_with_another_binding_is_not_the_same_because_another_line_differs():
    edits = [
        (
            'vi, vj = T.axis.remap("SS", [i, j])',
            "vi = T.axis.spatial(6, T.max(i - 1, 0))\n" + " " * 16 + "vj = T.axis.spatial(10, j)",
        ),
        ("T.float32(0.0)", "T.float32(1.0)"),
    ]
    assert block_lines(Matmul, edited(Matmul, *edits)) == [
        "block Y: statement",
        "block C: loop i: covers 5 of 6, visits 1 twice",
    ]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("k_0 * 4 + k_1", "k_1 * 2 + k_0", "loop k → k_0, k_1: split, in another order"),
        ("k_0 * 4 + k_1", "7 - (k_0 * 4 + k_1)", "loop k → k_0, k_1: split, in reverse order"),
    ],
)
def test_the_same_points_in_another_order_are_told(old, new, words):
    assert block_lines(Matmul, edited(scheduled(Matmul, split), (old, new))) == [
        f"block Y: {words}"
    ]


SYMBOLIC = """
@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n, 8), "float32")
        B = T.match_buffer(b, (n, 8), "float32")
        for i, j in T.grid(n, 8):
            with T.sblock("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)
"""


def test_a_split_of_a_symbolic_size_is_proved_and_an_error_in_it_is_found():
    before = from_source(SYMBOLIC)
    after = scheduled(before, lambda s: s.split(loops_of(s, "B")[0], [None, 4]))
    (line,) = block_lines(before, after)
    assert line == "block B: loop i → i_0, i_1: split"
    (line,) = block_lines(before, edited(after, ("< n)", "< n - 1)")))
    assert line == "block B: loop i → i_0, i_1: split, but covers 30 of 31 where n is 31"


def test_axes_bound_the_other_way_round_are_loops_that_were_reordered():
    text = SYMBOLIC.replace("(n, 8)", "(8, 8)").replace("n = T.int64()", "").replace("n, 8", "8, 8")
    turned = from_source(text.replace("[i, j]", "[j, i]"))
    assert block_lines(from_source(text), turned) == ["block B: loop j → i: reordered"]


def test_loops_of_one_axis_that_changed_their_order_are_reordered():
    schedule = s_tir.Schedule(Matmul)
    _, j, _ = loops_of(schedule, "Y")
    outer, inner = schedule.split(j, [2, None])
    tiled = schedule.mod
    schedule.reorder(inner, outer)
    assert block_lines(tiled, schedule.mod) == ["block Y: loop j_1: reordered"]


def test_loops_of_one_axis_that_exchanged_their_names_are_not_reordered():
    schedule = s_tir.Schedule(Matmul)
    schedule.split(loops_of(schedule, "Y")[2], [2, 2, None])
    before = schedule.mod
    schedule.parallel(loops_of(schedule, "Y")[0])
    text = schedule.mod.script()
    exchanged = text.replace("k_0", "k_3").replace("k_1", "k_0").replace("k_3", "k_1")
    assert exchanged != text
    assert block_lines(before, from_source(exchanged)) == ["block Y: loop i: made parallel"]


def test_what_cannot_be_told_is_said_as_that():
    text = SYMBOLIC.replace("(n, 8)", "(8, 8)").replace("n = T.int64()", "")
    text = text.replace('"float32"', '"int32"').replace("T.float32(2)", "2").replace("n, 8", "8, 8")
    before = from_source(text)
    looked_up = edited(
        before,
        (
            'vi, vj = T.axis.remap("SS", [i, j])',
            "vi = T.axis.spatial(8, A[i, 0])\n" + " " * 16 + "vj = T.axis.spatial(8, j)",
        ),
    )
    (line,) = block_lines(before, looked_up)
    assert "not known whether it visits the same: it depends on values in buffers" in line


def test_a_split_of_a_large_domain_is_proved():
    text = SYMBOLIC.replace("(n, 8)", "(8192, 8192)").replace("n = T.int64()", "")
    before = from_source(text.replace("n, 8", "8192, 8192"))
    after = scheduled(before, lambda s: s.fuse(*loops_of(s, "B")))
    assert block_lines(before, after) == ["block B: loop i, j → i_j_fused: fused"]
    wrong = edited(after, ("i_j_fused // 8192", "i_j_fused // 8191"))
    (line,) = block_lines(before, wrong)
    assert "not known whether it visits the same: there are too many iterations" in line


@pytest.mark.parametrize("seed", range(10))
def test_random_legal_schedules_are_said_to_visit_the_same_exactly_where_they_do(seed):
    before, after, steps = random_schedule(seed)
    assert steps
    for said, is_so in verdicts(irviz.diff(before, after), before, after):
        assert said == is_so, steps


@pytest.mark.parametrize("seed", range(10))
def test_errors_planted_in_random_schedules_are_told_exactly_where_they_matter(seed):
    before, after, _ = random_schedule(seed)
    wrong = with_planted_error(after, random.Random(seed))
    for said, is_so in verdicts(irviz.diff(before, wrong), before, wrong):
        assert said == is_so
