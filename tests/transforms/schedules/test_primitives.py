# ruff: noqa: N803, N805, N806, N812, SIM300
# TVMScript is read by TVM, not run by Python: it has its own rules for names.
"""Every primitive of TVM's schedules is offered, or said to be for code, or no step at all."""

import pytest
import tvm_ffi
from tvm import s_tir
from tvm.script import ir as I
from tvm.script import tirx as T

from irviz.course.mm_relu import MyModule
from irviz.errors import TransformError
from irviz.model.loop_nest import BlockAddress as B
from irviz.model.loop_nest import LoopAddress as L
from irviz.transforms.schedules.primitives import (
    ADDRESSES,
    FOR_CODE,
    QUERIES,
    ArgumentKind,
    primitive,
    primitives,
)
from irviz.transforms.schedules.schedule_step import IndexMapText, ScheduleStep, schedule_step
from irviz.transforms.schedules.schedule_trace import parse_trace


@I.ir_module
class Small:
    """What some primitives need: a chain, a bias, padding, a window, a gather and others."""

    @T.prim_func(s_tir=True)
    def chain(A: T.Buffer((16, 16), "float32"), D: T.Buffer((16, 16), "float32")):
        P = T.sblock_alloc_buffer((16, 16), "float32")
        Q = T.sblock_alloc_buffer((16, 16), "float32")
        for i, j in T.grid(16, 16):
            with T.sblock("P"):
                vi, vj = T.axis.remap("SS", [i, j])
                P[vi, vj] = A[vi, vj] + T.float32(1)
        for i, j in T.grid(16, 16):
            with T.sblock("Q"):
                vi, vj = T.axis.remap("SS", [i, j])
                Q[vi, vj] = P[vi, vj] * T.float32(2)
        for i, j in T.grid(16, 16):
            with T.sblock("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = Q[vi, vj] - T.float32(3)

    @T.prim_func(s_tir=True)
    def bias(
        A: T.Buffer((16, 16), "float32"),
        W: T.Buffer((16, 16), "float32"),
        Z: T.Buffer((16, 16), "float32"),
        D: T.Buffer((16, 16), "float32"),
    ):
        P = T.sblock_alloc_buffer((16, 16), "float32")
        for i, j, k in T.grid(16, 16, 16):
            with T.sblock("P"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    P[vi, vj] = T.float32(0)
                P[vi, vj] = P[vi, vj] + A[vi, vk] * W[vk, vj]
        for i, j in T.grid(16, 16):
            with T.sblock("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = P[vi, vj] + Z[vi, vj]

    @T.prim_func(s_tir=True)
    def pad(A: T.Buffer((14,), "float32"), D: T.Buffer((16,), "float32")):
        for i in T.serial(16):
            with T.sblock("D"):
                vi = T.axis.spatial(16, i)
                D[vi] = T.if_then_else(1 <= vi and vi < 15, A[vi - 1], T.float32(0))

    @T.prim_func(s_tir=True)
    def inplace(A: T.Buffer((16, 16), "float32")):
        for i, j in T.grid(16, 16):
            with T.sblock("A"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi, vj] = A[vi, vj] + T.float32(1)

    @T.prim_func(s_tir=True)
    def window(A: T.Buffer((12, 16), "float32"), D: T.Buffer((8, 16), "float32")):
        P = T.sblock_alloc_buffer((10, 16), "float32")
        for h in T.serial(8):
            for a, b in T.grid(3, 16):
                with T.sblock("P"):
                    va = T.axis.spatial(10, h + a)
                    vb = T.axis.spatial(16, b)
                    P[va, vb] = A[va, vb] + A[va + 2, vb]
            for b, k in T.grid(16, 3):
                with T.sblock("D"):
                    vh = T.axis.spatial(8, h)
                    vb = T.axis.spatial(16, b)
                    vk = T.axis.reduce(3, k)
                    with T.init():
                        D[vh, vb] = T.float32(0)
                    D[vh, vb] = D[vh, vb] + P[vh + vk, vb]

    @T.prim_func(s_tir=True)
    def gather(A: T.Buffer((16, 16), "float32"), D: T.Buffer((16, 16), "float32")):
        for i, j in T.grid(16, 16):
            with T.sblock("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = A[(vi * 4 + vj) // 5 % 16, (vi * 7 + vj) // 3 % 16]

    @T.prim_func(s_tir=True)
    def noted(A: T.Buffer((16,), "float32")):
        for i in T.serial(16, annotations={"pragma_note": 1}):
            with T.sblock("A"):
                vi = T.axis.spatial(16, i)
                A[vi] = T.float32(1)


@T.prim_func(s_tir=True)
def add_one_desc(a: T.handle) -> None:
    A = T.match_buffer(a, (16,), "float32", offset_factor=1)
    with T.sblock("root"):
        T.reads(A[0:16])
        T.writes(A[0:16])
        for i in T.serial(16):
            with T.sblock("A"):
                vi = T.axis.spatial(16, i)
                A[vi] = A[vi] + T.float32(1)


@T.prim_func(s_tir=True)
def add_one_impl(a: T.handle) -> None:
    A = T.match_buffer(a, (16,), "float32", offset_factor=1)
    with T.sblock("root"):
        T.reads(A[0:16])
        T.writes(A[0:16])
        for i in T.vectorized(16):
            A[i] = A[i] + T.float32(1)


s_tir.TensorIntrin.register("irviz.test.add_one", add_one_desc, add_one_impl, override=True)

SWAPPED = IndexMapText("lambda i, j: (j, i // 4, i % 4)")
STEPS = [
    schedule_step("mm_relu", "split", L("Y", 1), [None, 4], disable_predication=True),
    schedule_step("mm_relu", "fuse", L("Y", 0), L("Y", 1), preserve_unit_iters=False),
    schedule_step("mm_relu", "reorder", L("Y", 2), L("Y", 0)),
    schedule_step("chain", "merge", L("P", 0), L("Q", 0)),
    schedule_step("mm_relu", "loop_partition", L("C", 1), [2, None]),
    schedule_step("mm_relu", "add_unit_loop", B("Y")),
    schedule_step("mm_relu", "add_unit_loop", L("C", 0)),
    schedule_step("mm_relu", "parallel", L("Y", 0)),
    schedule_step("mm_relu", "vectorize", L("Y", 1)),
    schedule_step("mm_relu", "unroll", L("Y", 2)),
    schedule_step("mm_relu", "bind", L("C", 0), "blockIdx.x"),
    schedule_step("chain", "compute_at", B("P"), L("Q", 0), True, index=0),
    schedule_step("mm_relu", "reverse_compute_at", B("C"), L("Y", 1)),
    schedule_step("chain", "compute_inline", "P"),
    schedule_step("chain", "reverse_compute_inline", B("D")),
    schedule_step("bias", "fuse_reduction_epilogue", B("P"), B("D")),
    schedule_step("mm_relu", "decompose_reduction", B("Y"), L("Y", 2)),
    schedule_step("mm_relu", "rfactor", L("Y", 2), 0),
    schedule_step("mm_relu", "blockize", L("Y", 2)),
    schedule_step("inplace", "tensorize", L("A", 1), "irviz.test.add_one"),
    schedule_step("mm_relu", "reorder_block_iter_var", B("Y"), [1, 0, 2]),
    schedule_step(
        "mm_relu", "transform_block_layout", B("C"), IndexMapText("lambda i, j: (i * 128 + j,)")
    ),
    schedule_step("mm_relu", "cache_read", B("Y"), 0, "local"),
    schedule_step("chain", "cache_read", B("Q"), "P", "local", [B("Q")]),
    schedule_step("mm_relu", "cache_write", B("C"), "C", "local"),
    schedule_step("inplace", "cache_inplace", B("A"), 0, "local"),
    schedule_step("gather", "cache_index", B("D"), "global", 1),
    schedule_step("mm_relu", "reindex", B("Y"), ("read", 1)),
    schedule_step(
        *("mm_relu", "reindex_cache_read", B("Y"), 1, "local"),
        IndexMapText("lambda i, j, k: (j, k)"),
    ),
    schedule_step(
        *("mm_relu", "reindex_cache_write", B("Y"), 0, "local"),
        IndexMapText("lambda i, j, k: (j, i)"),
    ),
    schedule_step("mm_relu", "read_at", L("C", 0), B("C"), 0, "shared"),
    schedule_step("mm_relu", "write_at", L("C", 0), B("C"), 0, "shared"),
    schedule_step("mm_relu", "set_scope", B("Y"), 0, "shared"),
    schedule_step("mm_relu", "storage_align", B("Y"), 0, axis=-2, factor=16, offset=8),
    schedule_step("mm_relu", "transform_layout", B("Y"), ("write", 0), SWAPPED, 0.0),
    schedule_step("window", "rolling_buffer", B("P"), 0),
    schedule_step("mm_relu", "unsafe_set_dtype", B("Y"), 0, "float16"),
    schedule_step("mm_relu", "unsafe_hide_buffer_access", B("Y"), "read", [1]),
    schedule_step("bias", "pad_einsum", B("P"), [5, 5, 5]),
    schedule_step("pad", "decompose_padding", B("D"), L("D", 0)),
    schedule_step("mm_relu", "annotate", L("Y", 0), "pragma_x", {"a": [1, "b"], "c": 1.5}),
    schedule_step("mm_relu", "annotate", B("Y"), "s_tir.x", -3),
    schedule_step("noted", "unannotate", L("A", 0), "pragma_note"),
]


def module_of(step: ScheduleStep):
    return MyModule if step.function == "mm_relu" else Small


def public_names() -> set[str]:
    """Return what TVM's Schedule offers to a user, methods and properties."""
    return {name for name in vars(s_tir.Schedule) if name[0].islower()}


def test_every_method_of_tvms_schedule_is_a_step_or_said_to_be_none():
    assert primitives().keys() | QUERIES.keys() == public_names()
    assert not primitives().keys() & QUERIES.keys()
    assert FOR_CODE.keys() <= primitives().keys()


def test_every_primitive_says_what_it_does():
    for one in primitives().values():
        assert one.summary, one.name
        assert not one.summary.endswith(":"), one.summary


def test_every_primitive_that_is_offered_has_a_step_here():
    assert {step.primitive for step in STEPS} == primitives().keys() - FOR_CODE.keys()


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.line)
def test_a_step_does_what_its_line_of_python_does(step):
    module = module_of(step)
    sch = s_tir.Schedule(module)
    sch.work_on(step.function)
    exec(step.line, {"sch": sch})
    assert tvm_ffi.structural_equal(step(module), sch.mod)
    assert not tvm_ffi.structural_equal(sch.mod, module)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.line)
def test_a_step_is_read_back_from_its_line(step):
    assert parse_trace(step.line, step.function) == (step,)


def test_arguments_that_are_as_they_would_be_anyway_are_left_out():
    step = schedule_step("mm_relu", "split", L("Y", 0), [2, None], preserve_unit_iters=True)
    assert step.line == 'sch.split(sch.get_loops("Y")[0], factors=[2, None])'
    assert step == schedule_step("mm_relu", "split", loop=L("Y", 0), factors=[2, None])


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("splt", (), "TVM's schedule has no primitive 'splt': it has 'split'"),
        (
            "get_loops",
            (),
            "'get_loops' is not a step of a schedule: it is a query and changes nothing",
        ),
        ("sample_perfect_tile", (), "it samples a value for a later step"),
        ("split", (L("Y", 0),), "split: missing a required argument: 'factors'; it takes loop"),
        ("unroll", (L("Y", 0), 4), "unroll: too many positional arguments; it takes loop (a loop)"),
    ],
)
def test_what_tvm_would_not_take_is_refused_before_it_is_tried(name, arguments, words):
    with pytest.raises(TransformError) as refused:
        schedule_step("mm_relu", name, *arguments)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("name", "chosen", "given"),
    [
        ("split", [L("Y", 0)], {"loop": L("Y", 0)}),
        ("split", [B("Y")], None),
        ("split", [L("Y", 0), L("Y", 1)], None),
        ("split", [], None),
        ("reorder", [L("Y", 2), L("Y", 0)], {"ordered_loops": [L("Y", 2), L("Y", 0)]}),
        ("fuse", [L("Y", 2)], None),
        ("compute_at", [L("Y", 0), B("C")], {"block": B("C"), "loop": L("Y", 0)}),
        ("compute_at", [B("C"), L("Y", 0)], {"block": B("C"), "loop": L("Y", 0)}),
        ("compute_at", [B("C")], None),
        (
            *("fuse_reduction_epilogue", [B("P"), B("D")]),
            {"reduction_block": B("P"), "epilogue_block": B("D")},
        ),
        ("annotate", [L("Y", 0)], {"block_or_loop": L("Y", 0)}),
        ("annotate", [B("Y")], {"block_or_loop": B("Y")}),
        ("annotate", [B("Y"), L("Y", 0)], None),
        ("blockize", [B("Y"), B("C")], {"target": [B("Y"), B("C")]}),
        ("blockize", [L("Y", 1)], {"target": L("Y", 1)}),
        ("cache_read", [B("Y")], {"block": B("Y")}),
    ],
)
def test_what_was_chosen_fits_a_primitive_or_does_not(name, chosen, given):
    assert primitive(name).placed(chosen) == given


def test_kinds_that_are_chosen_are_never_written():
    for one in primitives().values():
        assert all(parameter.kind in ADDRESSES for parameter in one.addresses)
        optional = [each for each in one.values if each.kind in ADDRESSES]
        assert all(each.kind is ArgumentKind.BLOCKS and not each.is_required for each in optional)
