"""A schedule written in Python is recorded as it runs: steps that do the same one by one."""

import pytest
import tvm_ffi
from tvm import s_tir, tirx

from irviz.course.mlp import MODULES
from irviz.course.mm_relu import MyModule, lecture_schedule
from irviz.errors import TransformError
from irviz.model.loop_nest import BlockAddress, LoopAddress
from irviz.transforms.export_python import UnwritableError
from irviz.transforms.schedules.schedule_step import IllegalStepError, IndexMapText
from irviz.transforms.schedules.schedule_trace import record_schedule


def recorded(steps, module=MyModule, function="mm_relu"):
    """Return the steps, and check that they do what the schedule does with TVM alone."""
    found = record_schedule(module, function, steps, isolate=False)
    made = module
    for step in found:
        made = step(made)
    sch = s_tir.Schedule(module, seed=1)
    sch.work_on(function)
    steps(sch)
    assert tvm_ffi.structural_equal(made, sch.mod)
    return found


def test_the_lectures_schedule_is_recorded_with_the_places_of_the_moment():
    steps = recorded(lecture_schedule)
    assert [step.primitive for step in steps] == [
        *("split", "reorder", "reverse_compute_at", "parallel", "vectorize"),
        *("decompose_reduction", "unroll"),
    ]
    assert steps[1].arguments == {
        "ordered_loops": [LoopAddress("Y", 1), LoopAddress("Y", 3), LoopAddress("Y", 2)],
    }
    assert steps[2].arguments == {"block": BlockAddress("C"), "loop": LoopAddress("Y", 1)}


@pytest.mark.worker
def test_a_schedule_is_tried_in_the_worker_step_by_step():
    assert record_schedule(MyModule, "mm_relu", lecture_schedule) == recorded(lecture_schedule)

    def crashing(sch):
        loop = sch.get_loops("Y")[2]
        sch.unroll(loop)
        sch.merge(loop, loop)

    with pytest.raises(IllegalStepError, match="ended the process"):
        record_schedule(MyModule, "mm_relu", crashing)


def test_blocks_may_be_given_by_name_and_questions_may_be_asked():
    def steps(sch):
        sch.work_on("mm_relu")
        assert sch.get(sch.get_loops("Y")[0]).extent == 128
        assert sch.func_working_on.name_hint == "mm_relu"
        sch.cache_write("C", 0, "local")
        (consumer,) = sch.get_consumers(sch.get_sblock("Y"))
        sch.annotate(consumer, "note", {"a": [1, 2]})
        sch.compute_at("Y", sch.get_loops(consumer)[0], preserve_unit_loops=True)

    cache, _, at = recorded(steps)
    assert cache.arguments["block"] == BlockAddress("C")
    assert at.line == (
        'sch.compute_at(sch.get_sblock("Y"), sch.get_loops("C")[0], preserve_unit_loops=True)'
    )


def test_what_was_drawn_by_chance_is_kept_as_it_fell():
    def steps(sch):
        sch.seed(1)
        i = sch.get_loops("C")[0]
        sch.split(i, sch.sample_perfect_tile(i, 2))

    (split,) = recorded(steps)
    assert [type(factor) for factor in split.arguments["factors"]] == [int, int]


def test_functions_of_indices_are_kept_as_text():
    def steps(sch):
        sch.transform_layout("Y", ("write", 0), lambda i, j: [j, i // 4, i % 4 + 0 * j])
        flat = tirx.IndexMap.from_func(lambda i, j: (i * 128 + j,), index_dtype="int32")
        sch.transform_block_layout("C", flat)
        sch.transform_layout("C", "C", lambda *index: index[::-1], assume_injective_transform=True)

    layout, block, reverse = recorded(steps)
    assert layout.arguments["index_map"] == IndexMapText("lambda i, j: (j, i // 4, i % 4)")
    assert layout.line.endswith('buffer=("write", 0), index_map=lambda i, j: (j, i // 4, i % 4))')
    assert "lambda i, j: (i * 128 + j,)" in block.line
    assert "lambda index_0, index_1: (index_1, index_0)" in reverse.line


def test_an_index_map_of_other_numbers_than_the_blocks_is_kept_as_it_is():
    given = tirx.IndexMap.from_func(lambda i, j: (i * 128 + j,), index_dtype="int64")
    (step,) = recorded(lambda sch: sch.transform_block_layout("C", given))
    assert step.arguments["index_map"].same_as(given)


@pytest.mark.worker
def test_other_functions_are_kept_for_code_and_have_no_line():
    def steps(sch):
        sch.annotate_buffer_access(
            sch.get_sblock("C"), 0, "read", lambda i, j: ((i, i + 1), (j, j + 2))
        )

    (step,) = recorded(steps)
    with pytest.raises(UnwritableError, match="cannot be written as a Python literal"):
        _ = step.line
    assert step.source == "sch.annotate_buffer_access"


def test_the_first_refused_step_is_the_error_and_nothing_is_recorded():
    def steps(sch):
        i, _, k = sch.get_loops("Y")
        sch.parallel(i)
        sch.parallel(k)

    with pytest.raises(IllegalStepError) as refused:
        record_schedule(MyModule, "mm_relu", steps, isolate=False)
    assert 'sch.parallel(sch.get_loops("Y")[2]) is not legal here' in str(refused.value)


@pytest.mark.worker
@pytest.mark.parametrize(
    ("steps", "words"),
    [
        (lambda sch: sch.copy(), "sch.copy cannot be recorded: stages keep what a schedule can"),
        (lambda sch: sch.work_on("other"), "record that of 'other' by itself"),
        (lambda sch: sch.get_block("Y"), "has no primitive 'get_block': it has 'get_sblock'"),
        (lambda sch: sch.split(sch.get_loops("Y")[0]), "missing a required argument: 'factors'"),
    ],
)
def test_what_cannot_be_recorded_is_told(steps, words):
    with pytest.raises((TransformError, AttributeError)) as refused:
        record_schedule(MyModule, "mm_relu", steps, isolate=False)
    assert words in str(refused.value)


def test_what_the_schedule_itself_raises_is_raised():
    def steps(sch):
        sch.get_loops("Y")
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        record_schedule(MyModule, "mm_relu", steps, isolate=False)


def test_symbolic_sizes_can_be_scheduled():
    def steps(sch):
        i, j, k = sch.get_loops("Y")
        sch.reorder(k, i, j)
        sch.split(k, [None, 4])

    assert len(recorded(steps, MODULES["MyModuleMixture"], "linear0")) == 2
