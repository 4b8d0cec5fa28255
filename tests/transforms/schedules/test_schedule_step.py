# ruff: noqa: N803, N805, N812
# TVMScript is read by TVM, not run by Python: it has its own rules for names.
"""A schedule's steps are stages; a refused one changes nothing, and a script repeats the rest."""

import pickle
import random

import pytest
import tvm_ffi
from tvm import s_tir, tirx
from tvm.script import ir as I
from tvm.script import tirx as T

from irviz.course.mlp import MODULES
from irviz.course.mm_relu import MyModule, lecture_schedule
from irviz.ir.loop_nest_reader import loop_nest
from irviz.model.loop_nest import LoopAddress, schedule_addresses
from irviz.transforms.apply_transform import apply_transform
from irviz.transforms.export_python import PythonScript
from irviz.transforms.schedules.primitives import CHOICES, ArgumentKind, Primitive, primitives
from irviz.transforms.schedules.schedule_step import IllegalStepError, ScheduleStep, schedule_step
from irviz.transforms.schedules.schedule_trace import record_schedule
from irviz.transforms.stage import Stage, Transform

GIVEN = Stage("0", MyModule)
SPLIT = schedule_step("mm_relu", "split", LoopAddress("Y", 1), [None, 4])


@I.ir_module
class Apart:
    """Two blocks of one name, and a function without blocks."""

    @T.prim_func(s_tir=True)
    def alike(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.sblock("A"):
                vi = T.axis.spatial(8, i)
                A[vi] = T.float32(1)
        for i in range(8):
            with T.sblock("A"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi]
        for i in range(8):
            with T.sblock("C"):
                vi = T.axis.spatial(8, i)
                B[vi] = B[vi] + A[vi]

    @T.prim_func
    def flat(A: T.Buffer((8,), "float32")):
        for i in range(8):
            A[i] = T.float32(1)


def run(script: PythonScript, module):
    """Return the module that a script makes of another one, without irviz."""
    text = script.text()
    assert "irviz" not in text
    names = {"mod": module}
    exec(text, names)
    return names["mod"]


def test_a_step_is_a_transform_that_can_be_sent():
    assert isinstance(SPLIT, Transform)
    assert pickle.loads(pickle.dumps(SPLIT)) == SPLIT
    assert SPLIT.label == "mm_relu: split loop 1 of Y, factors=[None, 4]"
    step = schedule_step("mm_relu", "reorder", LoopAddress("Y", 2), LoopAddress("Y", 0))
    assert step.label == "mm_relu: reorder loops 2, 0 of Y"


@pytest.mark.worker
def test_a_step_makes_a_stage_and_leaves_the_other_functions_as_they_are():
    module = MODULES["MyModuleStatic"]
    stage = apply_transform(
        Stage("0", module), schedule_step("linear0", "unroll", LoopAddress("Y", 2)), "1"
    )
    assert (stage.error, stage.parent) == ("", "0")
    for gvar, function in module.functions.items():
        same = stage.module[gvar.name_hint].same_as(function)
        assert same is (gvar.name_hint != "linear0")


@pytest.mark.worker
def test_a_refused_step_makes_no_stage():
    with pytest.raises(IllegalStepError, match="not a data parallel block iter"):
        apply_transform(GIVEN, schedule_step("mm_relu", "parallel", LoopAddress("Y", 2)), "1")
    assert GIVEN.module is MyModule


@pytest.mark.worker
def test_a_step_that_ends_its_process_leaves_the_module_and_this_one_alive():
    loop = LoopAddress("Y", 2)
    stage = apply_transform(GIVEN, schedule_step("mm_relu", "merge", loop, loop), "1")
    assert "CrashedError" in stage.error
    assert stage.module is MyModule


def test_the_worker_only_says_whether_it_survives():
    illegal = schedule_step("mm_relu", "parallel", LoopAddress("Y", 2))
    assert illegal.tried_as(MyModule) is MyModule
    assert tvm_ffi.structural_equal(SPLIT.tried_as(MyModule), SPLIT(MyModule))


def test_the_lectures_schedule_step_by_step_is_the_one_that_tvm_runs_at_once():
    module, script = MyModule, PythonScript()
    for step in record_schedule(MyModule, "mm_relu", lecture_schedule, isolate=False):
        made = step(module)
        step.write(script, module, made)
        module = made
    sch = s_tir.Schedule(MyModule)
    sch.work_on("mm_relu")
    lecture_schedule(sch)
    assert tvm_ffi.structural_equal(module, sch.mod)
    assert tvm_ffi.structural_equal(run(script, MyModule), module)
    assert script.text().count("s_tir.Schedule(mod)") == 1


def test_blocks_that_share_a_name_are_no_address_and_say_so():
    nest = loop_nest(Apart["alike"], "alike")
    assert set(map(str, schedule_addresses(nest).values())) == {"C", "loop 0 of C"}
    with pytest.raises(IllegalStepError, match="2 blocks are called 'A'"):
        schedule_step("alike", "unroll", LoopAddress("A", 0))(Apart)


def test_a_function_without_blocks_cannot_be_scheduled_and_disturbs_no_other():
    with pytest.raises(IllegalStepError, match="'flat' cannot be scheduled: it has no blocks"):
        schedule_step("flat", "unroll", LoopAddress("A", 0))(Apart)
    made = schedule_step("alike", "unroll", LoopAddress("C", 0))(Apart)
    assert made["flat"].same_as(Apart["flat"])


UNSAFE = {"merge", "reorder_block_iter_var", "tensorize"}
"""Two end the process on some arguments, and there is no intrinsic here."""
VALUES = {
    ArgumentKind.FACTORS: [[None, 2], [4, None], [None, 3, 2], [1, None], [None, None], [0, 4]],
    ArgumentKind.NUMBERS: [[0], [0, 1], [1, 0, 2], [4, 4, 4]],
    ArgumentKind.NUMBER: [0, 1, -1, 4, 99],
    ArgumentKind.VALUE: [0, 1.5],
    ArgumentKind.FLAG: [True, False],
    ArgumentKind.TEXT: ["pragma_a", "note"],
    ArgumentKind.READ: [0, 1, 5],
    ArgumentKind.WRITTEN: [0, 1],
    ArgumentKind.BUFFER: [("read", 0), ("write", 0)],
    ArgumentKind.ANNOTATION: [1, "a", [1, 2], {"a": 1}],
}
FUNCTIONS = [
    (MyModule, "mm_relu"),
    (MODULES["MyModuleStatic"], "linear0"),
    (MODULES["MyModuleStatic"], "relu0"),
    (MODULES["MyModule"], "linear0"),
]


def random_step(chance: random.Random, function: str, prim_func: tirx.PrimFunc):
    """Return a step on loops and blocks that are there, legal or not; None when none fits."""
    places = list(schedule_addresses(loop_nest(prim_func, function)).values())
    chosen = chance.sample(places, min(chance.choice([1, 1, 2, 3]), len(places)))
    fitting = [
        (one, placed)
        for one in primitives().values()
        if one.name not in UNSAFE
        and (placed := one.placed(chosen)) is not None
        and not isinstance(placed.get("target"), list)  # TVM orders what its blocks read by chance
        and all(value.kind in VALUES or value.name in CHOICES for value in required(one))
    ]
    if not fitting:
        return None
    one, placed = chance.choice(fitting)
    for value in required(one):
        placed[value.name] = chance.choice(CHOICES.get(value.name) or VALUES[value.kind])
    several = [loop for key in ("loops", "ordered_loops") for loop in placed.pop(key, ())]
    return schedule_step(function, one.name, *several, **placed)


def required(one: Primitive):
    return [value for value in one.values if value.is_required]


@pytest.mark.parametrize("seed", range(24))
def test_any_schedule_is_repeated_by_its_script_and_refused_steps_change_nothing(seed):
    chance = random.Random(seed)
    module, function = FUNCTIONS[seed % len(FUNCTIONS)]
    before = tvm_ffi.structural_hash(module, map_free_vars=True)
    stage, script = Stage("0", module), PythonScript()
    done: list[ScheduleStep] = []
    for number in range(40):
        step = random_step(chance, function, stage.module[function])
        if step is None:
            continue
        given, printed = stage.module, stage.module.script()
        try:
            stage = apply_transform(stage, step, str(number), isolate=False)
        except IllegalStepError:
            assert stage.module.script() == printed
            continue
        step.write(script, given, stage.module)
        done.append(step)
        if len(done) == 8:
            break
    assert len(done) > 2
    assert tvm_ffi.structural_hash(module, map_free_vars=True) == before
    assert tvm_ffi.structural_equal(run(script, module), stage.module)
