"""The exercises on primitive tensor functions: a right answer, wrong ones that come near, none."""

import pytest
import tvm
from tvm import te
from tvm.script import from_source

from irviz.course import check
from irviz.course.check import Mark
from irviz.course.te_functions import vector_add

pytestmark = pytest.mark.worker

ADD_ROW = """
@T.prim_func(s_tir=True)
def add_row(
    A: T.Buffer((16, 32), "float32"),
    B: T.Buffer((32,), "float32"),
    C: T.Buffer((16, 32), "float32"),
):
    for i, j in T.grid(16, 32):
        with T.sblock("C"):
            vi, vj = T.axis.remap("{axes}", [i, j])
            C[vi, vj] = {value}
"""
PLAIN = """
@T.prim_func(s_tir=True)
def add_row(
    A: T.Buffer((16, 32), "float32"),
    B: T.Buffer((32,), "float32"),
    C: T.Buffer((16, 32), "float32"),
):
    for i, j in T.grid(16, 32):
        C[i, j] = A[i, j] + B[j]
"""
TWICE = (
    ADD_ROW.format(axes="SS", value="A[vi, vj]")
    + """
    for i, j in T.grid(16, 32):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = C[vi, vj] + B[vj]
"""
)
ALSO_A = (
    ADD_ROW.format(axes="SS", value="A[vi, vj] + B[vj]")
    + """
            A[vi, vj] = T.float32(0)
"""
)
RUNNING = "A[vi, vj] + B[vj] + T.if_then_else(vi < 0, C[vi - 1, vj], T.float32(0))"


def row(value="A[vi, vj] + B[vj]", axes="SS"):
    return from_source(ADD_ROW.format(value=value, axes=axes))


OF_ANY_SIZE = """
@T.prim_func(s_tir=True)
def add_row(a: T.handle, b: T.handle, c: T.handle):
    m, n = T.int64(), T.int64()
    A = T.match_buffer(a, (m, n), "float32")
    B = T.match_buffer(b, (n,), "float32")
    C = T.match_buffer(c, (m, n), "float32")
    for j, i in T.grid(n, m):
        with T.sblock("sum"):
            vi = T.axis.spatial(m, i)
            vj = T.axis.spatial(n, j)
            C[vi, vj] = A[vi, vj] + B[vj]
"""
ONE_LOOP = """
@T.prim_func(s_tir=True)
def add_row(
    A: T.Buffer((16, 32), "float32"),
    B: T.Buffer((32,), "float32"),
    C: T.Buffer((16, 32), "float32"),
):
    for f in range(512):
        with T.sblock("C"):
            vi = T.axis.spatial(16, f // 32)
            vj = T.axis.spatial(32, f % 32)
            C[vi, vj] = A[vi, vj] + B[vj]
"""


def of_an_expression():
    a, b = te.placeholder((16, 32), "float32", "A"), te.placeholder((32,), "float32", "B")
    return te.create_prim_func([a, b, te.compute(a.shape, lambda i, j: a[i, j] + b[j], "C")])


@pytest.mark.parametrize(
    "answer", [row(), from_source(OF_ANY_SIZE), of_an_expression(), from_source(ONE_LOOP)]
)
def test_a_row_is_added_by_a_block_of_spatial_axes(answer):
    assert check.add_row(answer).mark is Mark.RIGHT


@pytest.mark.parametrize(
    ("answer", "given"),
    [
        (row("A[vi, vj] + B[vi]"), "other values"),
        (row("A[vi, vj] - B[vj]"), "other values"),
        (row(axes="SR"), "vi spatial, vj reduction"),
        (row(axes="RR"), "will not run the loop i in parallel"),
        (row(RUNNING), "will not run the loop i in parallel"),
        (from_source(PLAIN), "no block with axes"),
        (from_source(TWICE), "2 blocks are named C"),
        (from_source(ALSO_A), "add_row gives 2 arrays"),
        (row("A[vi, vj] + B[vj + 10**9]"), "SIGSEGV"),
        (vector_add(), "shape (32,)"),
        (tvm.IRModule({"add_row": row()}), "The answer is IRModule."),
        (lambda a, b: a + b, "function"),
    ],
)
def test_another_row_is_not_added(answer, given):
    verdict = check.add_row(answer)
    assert verdict.mark is Mark.WRONG
    assert given in verdict.given


def three(*factors, order=(0, 1, 2), parallel=0, vectorize=2):
    def schedule(sch):
        (i,) = sch.get_loops(sch.get_sblock("C"))
        loops = sch.split(i, factors=factors)
        sch.reorder(*(loops[number] for number in order))
        loops = sch.get_loops(sch.get_sblock("C"))
        for primitive, number in ((sch.parallel, parallel), (sch.vectorize, vectorize)):
            if number is not None:
                primitive(loops[number])

    return schedule


def in_two_splits(sch):
    (i,) = sch.get_loops(sch.get_sblock("C"))
    outer, rest = sch.split(i, factors=[4, None])
    _, inner = sch.split(rest, factors=[None, 16])
    sch.parallel(outer)
    sch.vectorize(inner)


def of_four(sch):
    a, b, c, d = sch.split(sch.get_loops("C")[0], factors=[2, 2, 16, 16])
    sch.parallel(sch.fuse(a, b))
    sch.unroll(c)
    sch.vectorize(d)


@pytest.mark.parametrize(
    "answer", [three(4, None, 16), three(None, 16, 16), in_two_splits, of_four]
)
def test_a_loop_is_cut_into_three(answer):
    assert check.three_loops(answer).mark is Mark.RIGHT


@pytest.mark.parametrize(
    ("answer", "given"),
    [
        (three(4, None, 16, parallel=None), "i_0 serial, i_1 serial, i_2 vectorized"),
        (three(4, None, 16, vectorize=None), "i_0 parallel, i_1 serial, i_2 serial"),
        (three(4, None, 16, vectorize=1), "i_1 vectorized, i_2 serial"),
        (three(8, None, 16), "8, 8, 16 steps"),
        (three(1, None, 16), "1, 64, 16 steps"),
        (three(4, 16, None, order=(0, 2, 1)), "are 16 apart"),
        (
            lambda sch: sch.split(sch.get_loops(sch.get_sblock("C"))[0], [64, 16]),
            "around the block: 2",
        ),
        (lambda sch: sch.get_sblock("Y"), "raised ScheduleError"),
        (lambda sch: sch.parallel(sch.get_loops(sch.get_sblock("C"))[0]), "around the block: 1"),
        (vector_add(), "The answer is PrimFunc."),
    ],
)
def test_other_loops_are_not_three(answer, given):
    verdict = check.three_loops(answer)
    assert verdict.mark is Mark.WRONG
    assert given in verdict.given


def test_a_block_of_spatial_axes_that_reads_what_it_writes_is_told_so():
    assert "reads C" in check.add_row(row(RUNNING)).hint
    assert "spatial" in check.add_row(row(axes="SR")).hint


@pytest.mark.parametrize("exercise", [check.add_row, check.three_loops])
def test_an_empty_answer_is_never_right(exercise):
    assert exercise(...).mark is exercise(None).mark is Mark.UNANSWERED
    for empty in (lambda _: None, "", tvm.IRModule()):
        verdict = exercise(empty)
        assert verdict.mark is Mark.WRONG
        assert all((verdict.expected, verdict.given, verdict.hint))
