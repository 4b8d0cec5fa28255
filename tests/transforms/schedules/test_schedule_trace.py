"""A trace is Python that can be read, cut, edited and read back; nothing of it is ever run."""

import pytest
import tvm_ffi
from tvm import s_tir

from irviz.course.mm_relu import MyModule, lecture_schedule
from irviz.model.loop_nest import BlockAddress, LoopAddress
from irviz.transforms.apply_transform import apply_transform
from irviz.transforms.export_python import UnwritableError
from irviz.transforms.schedules.schedule_step import IndexMapText, schedule_step
from irviz.transforms.schedules.schedule_trace import (
    ScheduleTraceError,
    parse_trace,
    parse_value,
    record_schedule,
    schedule_trace,
)
from irviz.transforms.stage import Stage, StageTree

LECTURE = record_schedule(MyModule, "mm_relu", lecture_schedule, isolate=False)
LINES = """\
sch.split(sch.get_loops("Y")[1], factors=[None, 4])
sch.reorder(sch.get_loops("Y")[1], sch.get_loops("Y")[3], sch.get_loops("Y")[2])
sch.reverse_compute_at(sch.get_sblock("C"), sch.get_loops("Y")[1])
sch.parallel(sch.get_loops("Y")[0])
sch.vectorize(sch.get_loops("Y")[3])
sch.decompose_reduction(sch.get_sblock("Y"), sch.get_loops("Y")[2])
sch.unroll(sch.get_loops("Y_update")[2])
"""


def test_the_lectures_schedule_is_these_lines():
    assert [step.line for step in LECTURE] == LINES.splitlines()
    assert parse_trace(LINES, "mm_relu") == LECTURE


def test_the_lines_do_the_same_when_tvm_runs_them():
    ours, theirs = s_tir.Schedule(MyModule), s_tir.Schedule(MyModule)
    ours.work_on("mm_relu")
    theirs.work_on("mm_relu")
    exec(LINES, {"sch": ours})
    lecture_schedule(theirs)
    assert tvm_ffi.structural_equal(ours.mod, theirs.mod)


def test_a_trace_may_be_cut_edited_and_remarked():
    cut = "# first\n\n" + "".join(LINES.splitlines(keepends=True)[:1]).replace("4", "8")
    (step,) = parse_trace(cut, "other")
    assert (step.function, step.arguments["factors"]) == ("other", [None, 8])
    assert parse_trace("", "mm_relu") == ()


def test_a_line_may_be_written_as_tvm_lets_it_be():
    for line in (
        "sch.split(sch.get_loops('Y')[1], [None, 4])",
        "sch.split(factors=[None, 4,], loop=sch.get_loops('Y')[1])",
        "sch.split(\n    sch.get_loops('Y')[1],\n    factors=[None, 4],  # four\n)",
    ):
        assert parse_trace(line, "mm_relu") == LECTURE[:1]
    (inline,) = parse_trace("sch.compute_inline('P')", "f")
    assert inline.arguments == {"block": BlockAddress("P")}


@pytest.mark.parametrize(
    "value",
    [
        None, True, 0, -3, 1.5, -1e-300, "", "a'b\"c\\\n", "é☃", [], [1, [2, None]], (),
        ("read", 0), (1,), {"a": [1, {"b": -2.5}], "": None}, BlockAddress('a"b\\'),
        LoopAddress("\n", 7), IndexMapText("lambda i, j: (j // 4, i % 3 - j * 2 + -1)"),
    ],
)  # fmt: skip
def test_every_plain_value_is_read_back_as_it_was(value):
    step = schedule_step("f", "annotate", BlockAddress("b"), "key", value)
    assert parse_value(step.line.partition("ann_val=")[2].removesuffix(")")) == value


@pytest.mark.parametrize("value", [float("inf"), float("nan"), object(), len])
def test_what_no_line_can_say_has_none(value):
    step = schedule_step("f", "annotate", BlockAddress("b"), "key", value)
    with pytest.raises(UnwritableError):
        str(step.line)


EVIL = [
    "__import__('os').system('touch evil')",
    "sch.split(sch.get_loops('Y')[1], factors=[__import__('os').getpid()])",
    "sch.split(sch.get_loops('Y')[1], factors=[x for x in (1, 2)])",
    "sch.split(sch.get_loops('Y')[1], factors=open('x'))",
    "sch.annotate(sch.get_sblock('Y'), f'{1 + 1}', 1)",
    "sch.mod.show()",
    "sch.__class__('x')",
    "sch.get_sblock('Y').unroll()",
    "import os",
    "sch = 3",
    "sch.transform_layout(sch.get_sblock('Y'), ('write', 0), lambda i, j: open('x'))",
    "sch.transform_layout(sch.get_sblock('Y'), ('write', 0), lambda i=open('x'): i)",
    "sch.unroll(sch.get_loops('Y')[len('a')])",
    "sch.unroll(sch.get_loops(name := 'Y')[0])",
    "sch.unroll(*[sch.get_loops('Y')[0]])",
    "sch.unroll(**{'loop': 1})",
    "(lambda: 1)()",
]


@pytest.mark.parametrize("text", EVIL)
def test_what_is_more_than_a_step_is_refused(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ScheduleTraceError):
        parse_trace(text, "mm_relu")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ("\nsch.split(", 2, 10, "this is not Python: '(' was never closed"),
        ("x = 1", 1, 1, 'a line is one step, such as sch.parallel(sch.get_loops("Y")[0])'),
        ("sch.splt(1)", 1, 1, "TVM's schedule has no primitive 'splt': it has 'split'"),
        ("sch.get_loops('Y')", 1, 1, "not a step of a schedule: it is a query and changes nothing"),
        ("sch.unroll()", 1, 1, "missing a required argument: 'loop'; it takes loop (a loop)"),
        (
            "sch.unroll(i)",
            1,
            12,
            "'i' is not a literal: write sch.get_sblock(\"Y\") or sch.get_loops",
        ),
        (
            "sch.unroll(sch.get_loops('Y'))",
            1,
            12,
            "is neither a block nor a loop: write sch.get_sblock",
        ),
        ("sch.unroll(sch.get_sblock('Y'))", 1, 1, "loop of unroll is a loop, not Y"),
        ("#\nsch.unroll(loop=4)", 2, 17, "loop of unroll is a loop, not 4"),
        ("sch.unroll(sch.get_loops('Y')['a'])", 1, 12, "'a' is not the number of a loop"),
        ("sch.reorder('Y', 'C')", 1, 1, "ordered_loops of reorder is several loops, not"),
        (
            "sch.transform_layout('Y', ('write', 0), index_map=lambda i, j: (j, z))",
            *(1, 68, "'z' is not one of its indices, which are ['i', 'j']"),
        ),
        (
            "sch.split(sch.get_loops('Y')[0], factors=[1], factors=[2])",
            1,
            55,
            "each argument is given once",
        ),
        ("sch.annotate('Y', 'k', {1: 2})", 1, 25, "the keys of a dict must be texts"),
    ],
)
def test_an_error_says_where_and_what_would_be_right(text, line, column, words):
    with pytest.raises(ScheduleTraceError) as refused:
        parse_trace(text, "mm_relu")
    error = refused.value
    assert words in str(error)
    assert (error.line, error.column) == (line, column)
    assert str(error).startswith(f"line {line}, column {column}: ")


def test_a_text_nested_without_end_is_an_error_and_no_crash():
    with pytest.raises(ScheduleTraceError):
        parse_trace("sch.split(" + "[" * 5000, "mm_relu")
    with pytest.raises(ScheduleTraceError):
        parse_trace("sch.unroll(\0)", "mm_relu")


def test_the_trace_of_a_stage_goes_up_to_what_was_no_step_of_its_function():
    stages = [Stage("0", MyModule)]
    for number, step in enumerate(LECTURE[:3], start=1):
        stages.append(apply_transform(stages[-1], step, str(number), isolate=False))
    failed = Stage("4", stages[-1].module, parent="3", transform=LECTURE[3], error="no")
    branch = apply_transform(stages[1], LECTURE[1], "5", isolate=False)
    tree = StageTree((*stages, failed, branch))

    def trace_of(stage_id, function):
        return schedule_trace(tree.lineage(stage_id), function)

    assert trace_of("3", "mm_relu").steps == LECTURE[:3]
    assert trace_of("4", "mm_relu").steps == LECTURE[:3]
    assert trace_of("5", "mm_relu").stages == (stages[1], branch)
    assert trace_of("3", "other").steps == ()
    assert trace_of("3", "other").base is stages[3]
    assert trace_of("5", "mm_relu").base is stages[0]
