# TVMScript is read by TVM, not run by Python: it has its own rules for names.
"""Each schedule primitive is named by the diff of the PrimFunc before and after it."""

import pytest
import tvm
from tvm import relax, s_tir
from tvm.script import from_source
from tvm_ffi import structural_equal

import irviz
from irviz.course.mlp import MyModule
from irviz.course.mlp_high_level import MyModuleHighLevel
from irviz.course.mm_relu import MyModule as MatmulRelu
from irviz.loaders.load import load_content
from irviz.model.diff.diff_result import ChangeKind
from irviz.model.loop_nest import walk
from tests.random_schedules import random_schedule

pytestmark = pytest.mark.worker


def _split(schedule, _, loops):
    schedule.split(loops[1], [None, 4])


def _tile(schedule, _, loops):
    _, inner = schedule.split(loops[1], [None, 4])
    schedule.reorder(loops[2], inner)


def _into_consumer(schedule, block, _):
    schedule.compute_at(block, schedule.get_loops(schedule.get_sblock("C", func_name="mm_relu"))[0])


STEPS = {
    "split": (_split, {"Y": ["j → j_0, j_1: split"]}),
    "fuse": (lambda s, _, at: s.fuse(at[0], at[1]), {"Y": ["i, j → i_j_fused: fused"]}),
    "reorder": (lambda s, _, at: s.reorder(at[2], at[1]), {"Y": ["k: reordered"]}),
    "split and reorder": (_tile, {"Y": ["j → j_0, j_1: split", "k: reordered"]}),
    "parallel": (lambda s, _, at: s.parallel(at[0]), {"Y": ["i: made parallel"]}),
    "vectorize": (lambda s, _, at: s.vectorize(at[1]), {"Y": ["j: vectorized"]}),
    "unroll": (lambda s, _, at: s.unroll(at[2]), {"Y": ["k: unrolled"]}),
    "bind": (lambda s, _, at: s.bind(at[0], "threadIdx.x"), {"Y": ["i: bound"]}),
    "compute_at": (_into_consumer, {"Y": "moved"}),
    "decompose_reduction": (
        lambda s, block, at: s.decompose_reduction(block, at[2]),
        {"Y": "split"},
    ),
    "cache_read": (
        lambda s, block, _: s.cache_read(block, 0, "shared"),
        {"A_shared": "added", "Y": "changed"},
    ),
    "annotate": (lambda s, block, _: s.annotate(block, "k", 1), {"Y": "changed"}),
}


def stepped_schedule(step):
    schedule = s_tir.Schedule(MatmulRelu)
    block = schedule.get_sblock("Y", func_name="mm_relu")
    step(schedule, block, schedule.get_loops(block))
    return schedule


def stepped(step):
    return irviz.diff(MatmulRelu, stepped_schedule(step).mod)


def nest(diff):
    (function,) = diff.functions
    return function.loops


@pytest.mark.parametrize("name", STEPS)
def test_a_schedule_primitive_is_named(name):
    step, expected = STEPS[name]
    found = nest(stepped(step))
    changed = {one.name: one for one in found.blocks if one.change is not ChangeKind.SAME}
    assert changed.keys() == expected.keys()
    for block, what in expected.items():
        if isinstance(what, str):
            assert changed[block].change.value == what
        else:
            assert list(map(str, changed[block].changed_loops)) == what


def test_a_block_that_came_into_the_loops_of_its_producer_is_named():
    schedule = s_tir.Schedule(MatmulRelu)
    block = schedule.get_sblock("Y", func_name="mm_relu")
    schedule.split(schedule.get_loops(block)[1], [None, 4])
    before = schedule.mod
    consumer = schedule.get_sblock("C", func_name="mm_relu")
    schedule.reverse_compute_at(consumer, schedule.get_loops(block)[1])
    changes = {one.name: one.change.value for one in nest(irviz.diff(before, schedule.mod)).blocks}
    assert changes == {"Y": "same", "C": "moved"}


def test_a_block_that_was_inlined_is_named():
    schedule = s_tir.Schedule(MatmulRelu)
    schedule.cache_read(schedule.get_sblock("Y", func_name="mm_relu"), 0, "global")
    before = schedule.mod
    schedule.compute_inline(schedule.get_sblock("A_global", func_name="mm_relu"))
    found = nest(irviz.diff(before, schedule.mod))
    changes = {one.name: one.change.value for one in found.blocks}
    assert changes == {"A_global": "inlined", "Y": "changed", "C": "same"}


def _tiled(schedule):
    """Schedule the product as chapter 7 does, with the results of a tile in local memory."""
    block = schedule.get_sblock("Y", func_name="mm_relu")
    schedule.cache_write(block, 0, "local")
    i, j, k = schedule.get_loops(block)
    i_0, i_1 = schedule.split(i, [None, 8])
    j_0, j_1 = schedule.split(j, [None, 8])
    schedule.reorder(i_0, j_0, k, i_1, j_1)
    schedule.reverse_compute_at(schedule.get_sblock("Y_local", func_name="mm_relu"), j_0)
    schedule.decompose_reduction(block, k)


def _block_lines(before, after):
    lines = irviz.diff(before, after).text().splitlines()
    return [line.strip() for line in lines if line.startswith("  block ")]


TILED = [
    "block Y: split into Y_init, Y_update; loop i → i_0, i_1: split; "
    "loop j → j_0, j_1: split, reordered; loop k: reordered; writes: Y → Y_local",
    "block Y_local: added",
]


def test_a_product_that_is_computed_in_a_local_cache_is_split_and_copied_back():
    schedule = s_tir.Schedule(MatmulRelu)
    _tiled(schedule)
    assert _block_lines(MatmulRelu, schedule.mod) == TILED


def test_steps_of_a_schedule_are_compared_as_if_they_were_one():
    session = irviz.Session(MatmulRelu, isolate=False).schedule("mm_relu", _tiled)
    lines = session.diff("0", session.current.id).text().splitlines()
    assert [line.strip() for line in lines if line.startswith("  block ")] == TILED


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Y_local[vi, vj] = T.float32(0.0)", "Y_local[vi, vj] = T.float32(1.0)"),
        ("+ A[vi, vk] *", "- A[vi, vk] *"),
        ("+ A[vi, vk] *", "+ A[vi, vj] *"),
    ],
)
def test_what_a_split_block_computes_otherwise_is_told(old, new):
    schedule = s_tir.Schedule(MatmulRelu)
    _tiled(schedule)
    text = schedule.mod.script()
    assert old in text
    before, after = (from_source(each) for each in (text, text.replace(old, new, 1)))
    assert not any("statement" in line for line in _block_lines(MatmulRelu, before))
    assert any("statement" in line for line in _block_lines(MatmulRelu, after))


def test_a_block_that_is_inlined_is_named_with_the_blocks_inside_it():
    before, after, _ = random_schedule(4, 5)
    lines = _block_lines(after, before)
    assert {"block C_local_o: inlined with C_local", "block C_local: inlined"} <= {*lines}


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_blockize_keeps_the_loops_and_puts_a_block_around_the_inner_ones(depth):
    blockized = stepped_schedule(lambda s, _, at: s.blockize(at[depth])).mod
    assert _block_lines(MatmulRelu, blockized) == [
        "block Y_o: added around Y_init, Y",
        "block Y: split into Y_init, Y",
    ]
    assert _block_lines(blockized, MatmulRelu) == [
        "block Y: fused from Y_init, Y",
        "block Y_o: removed around Y_init, Y",
    ]


def _rfactor(schedule, _, loops):
    schedule.rfactor(schedule.split(loops[2], [None, 4])[1], 2)


def _common_loop(schedule, _, loops):
    schedule.loop_partition(loops[1], [4, None])


def _tile_of_blocks(schedule, _, loops):
    parts = [schedule.split(loop, [None, 16]) for loop in loops]
    schedule.reorder(*(outer for outer, _ in parts), *(inner for _, inner in parts))
    schedule.blockize(parts[0][1])


STORIES = {
    "rfactor": (
        _rfactor,
        ["block Y: split into Y_rf, Y; loop k → k_0, k_1: split; writes: Y → Y_rf"],
    ),
    "loop_partition": (
        _common_loop,
        [
            "block Y_j_common: added around Y_j0_partition, Y_j0, Y_j1_partition, Y_j1",
            "block Y_j0_partition: added around Y_j0",
            "block Y: split into Y_j0, Y_j1; loop j → j0: changed",
            "block Y_j1_partition: added around Y_j1",
        ],
    ),
    "split, reorder and blockize": (
        _tile_of_blocks,
        [
            "block Y_o: added around Y_init, Y",
            "block Y: split into Y_init, Y; loop i → i_0, i_1: split; "
            "loop j → j_0, j_1: split, reordered; loop k → k_0, k_1: split, reordered",
        ],
    ),
    "reverse_compute_at": (
        lambda s, _, at: s.reverse_compute_at(s.get_sblock("C", func_name="mm_relu"), at[1]),
        ["block C: moved"],
    ),
    "cache_read into the loops": (
        lambda s, block, at: s.compute_at(s.cache_read(block, 0, "shared"), at[1]),
        ["block A_shared: added", "block Y: statement; reads"],
    ),
    "transform_block_layout": (
        lambda s, _, __: s.transform_block_layout(
            s.get_sblock("C", func_name="mm_relu"), lambda i, j: (i * 128 + j,)
        ),
        ["block C: loop i, j → ax0: fused; axes; statement; reads; writes"],
    ),
    "pad_einsum": (
        lambda s, block, _: s.pad_einsum(block, [1, 1, 96]),
        [
            "block A_pad: added",
            "block B_pad: added",
            "block Y: loop k: changed, but visits 64 more; axes; statement; reads",
        ],
    ),
}


@pytest.mark.parametrize("name", STORIES)
def test_the_diff_tells_what_a_schedule_primitive_does(name):
    step, lines = STORIES[name]
    assert _block_lines(MatmulRelu, stepped_schedule(step).mod) == lines


TILE = """
@T.prim_func(s_tir=True)
def main(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (16, 16), "float32", offset_factor=1)
    B = T.match_buffer(b, (16, 16), "float32", offset_factor=1)
    C = T.match_buffer(c, (16, 16), "float32", offset_factor=1)
    with T.sblock("root"):
        T.reads(C[0:16, 0:16], A[0:16, 0:16], B[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        {}
"""
PRODUCT = """for i, j, k in T.grid(16, 16, 16):
            with T.sblock("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]"""
CALL = 'T.evaluate(T.call_extern("int32", "gemm", C.data, A.data, B.data))'


def test_loops_that_an_intrinsic_replaced_were_removed_and_not_fused():
    sides = (from_source(TILE.format(body)) for body in (PRODUCT, CALL))
    s_tir.TensorIntrin.register("irviz.test.gemm", *sides, override=True)
    schedule = s_tir.Schedule(MatmulRelu)
    block = schedule.get_sblock("Y", func_name="mm_relu")
    parts = [schedule.split(loop, [None, 16]) for loop in schedule.get_loops(block)]
    schedule.reorder(*(outer for outer, _ in parts), *(inner for _, inner in parts))
    schedule.decompose_reduction(block, parts[2][0])
    before = schedule.mod
    update = schedule.get_sblock("Y_update", func_name="mm_relu")
    schedule.tensorize(schedule.get_loops(update)[3], "irviz.test.gemm")
    (line,) = _block_lines(before, schedule.mod)
    assert line.startswith(
        "block Y_update_o: loop i_1 → none: removed; loop j_1 → none: removed; "
        "loop k_1 → none: removed; "
    )
    assert "not known whether it visits the same" in line


def test_a_block_that_was_inlined_into_its_producer_is_named():
    schedule = s_tir.Schedule(MatmulRelu)
    schedule.cache_write(schedule.get_sblock("C", func_name="mm_relu"), 0, "global")
    before = schedule.mod
    schedule.reverse_compute_inline(schedule.get_sblock("C_global", func_name="mm_relu"))
    changes = {one.name: one.change.value for one in nest(irviz.diff(before, schedule.mod)).blocks}
    assert changes == {"Y": "same", "C": "changed", "C_global": "inlined"}


EXCHANGED = """
@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def f(
        {}: T.Buffer((16, 16), "float32"),
        {}: T.Buffer((16, 16), "float32"),
        C: T.Buffer((16, 16), "float32"),
    ):
        for i, j in T.grid(16, 16):
            with T.sblock("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = {}[vi, vj] - {}[vi, vj]
"""


def exchanged(*names):
    return load_content(EXCHANGED.format(*names).encode(), "module.py").module


def test_parameters_that_were_exchanged_are_said_as_that():
    diff = irviz.diff(exchanged("A", "B", "A", "B"), exchanged("B", "A", "A", "B"))
    (function,) = diff.functions
    assert function.loops.differs
    assert {one.change for one in function.loops.blocks} == {ChangeKind.SAME}
    text = diff.text()
    assert "order of parameters: A, B, C → B, A, C" in text
    assert "+ def f(B: T.Buffer((16, 16)" in text


def test_operands_that_were_exchanged_are_no_exchange_of_parameters():
    text = irviz.diff(exchanged("A", "B", "A", "B"), exchanged("A", "B", "B", "A")).text()
    assert "block C: statement; reads" in text
    assert "parameters" not in text


def test_parameters_named_the_other_way_round_do_not_differ():
    assert not irviz.diff(exchanged("A", "B", "A", "B"), exchanged("B", "A", "B", "A"))


def test_only_what_else_differs_is_told_of_parameters_named_the_other_way_round():
    other = EXCHANGED.replace("C[vi, vj] = ", "C[vi, vj] = T.float32(2) * ")
    after = load_content(other.format("B", "A", "B", "A").encode(), "module.py").module
    diff = irviz.diff(exchanged("A", "B", "A", "B"), after)
    assert "block C: statement\n" in diff.text()
    assert "parameters" not in diff.text()


def test_statements_in_another_order_are_told():
    both = [("b[i] = a[i] * T.float32(2)", "b[i] = a[i]\n            a[i] = b[i]")]
    turned = [("b[i] = a[i] * T.float32(2)", "a[i] = b[i]\n            b[i] = a[i]")]
    (function,) = (
        one
        for one in irviz.diff(without_blocks(*both), without_blocks(*turned)).functions
        if one.name == "f"
    )
    assert [str(one) for one in function.loops.statements] == [
        "order of statements: b[i] = a[i] → a[i] = b[i]"
    ]


def test_a_buffer_in_another_scope_or_layout_is_named():
    found = nest(stepped(lambda s, block, _: s.set_scope(block, 0, "shared")))
    (buffer,) = (one for one in found.buffers if one.change is not ChangeKind.SAME)
    assert list(map(str, buffer.differences)) == ["storage scope: global → shared"]
    assert {one.change for one in found.blocks} == {ChangeKind.SAME}
    found = nest(
        stepped(
            lambda s, block, _: s.transform_layout(
                block, ("write", 0), lambda i, j: (i // 16, j, i % 16)
            )
        )
    )
    (buffer,) = (one for one in found.buffers if one.change is not ChangeKind.SAME)
    assert list(map(str, buffer.differences)) == ["shape: (128, 128) → (8, 128, 16)"]


def test_other_names_of_variables_are_no_difference():
    text = MatmulRelu["mm_relu"].script()
    for name in ("vi", "vj", "Y", "i"):
        text = text.replace(f"{name} ", f"{name}z ").replace(f"{name},", f"{name}z,")
        text = text.replace(f"{name}[", f"{name}z[").replace(f"{name}]", f"{name}z]")
        text = text.replace(f"{name})", f"{name}z)")
    module = load_content(text.replace("mm_reluz", "mm_relu").encode(), "m.py").module
    assert "Yz[viz, vjz]" in module.script()
    assert not irviz.diff(MatmulRelu, module)


def test_a_call_of_a_changed_prim_func_says_so():
    schedule = s_tir.Schedule(MyModule)
    block = schedule.get_sblock(next(iter(_block_names("linear0"))), func_name="linear0")
    schedule.parallel(schedule.get_loops(block)[0])
    diff = irviz.diff(MyModule, schedule.mod)
    (main,) = (one for one in diff.functions if one.name == "main")
    assert {one.after for one in main.changed_nodes} == {("lv0",), ("out",)}
    for node in main.changed_nodes:
        assert list(map(str, node.differences)) == ["callee's body: linear0 → linear0"]
    assert "~         lv0 = " in diff.text()


def _block_names(function):
    return [node.id for node in irviz.graph(MyModule, function).nodes if node.kind.value == "block"]


def test_the_loops_around_a_block_that_was_split_have_kept_their_place():
    schedule = stepped_schedule(lambda s, block, at: s.decompose_reduction(block, at[2]))
    diff = irviz.diff(MatmulRelu, schedule.mod)
    (block,) = (one for one in nest(diff).blocks if one.change is ChangeKind.SPLIT)
    assert list(map(str, block.loops)) == ["i: same", "j: same", "k: same"]


def test_blocks_that_were_lowered_to_loops_are_not_called_inlined():
    passes = (
        s_tir.transform.LowerInitBlock(),
        s_tir.transform.PlanAndUpdateBufferAllocationLocation(),
        s_tir.transform.ConvertBlocksToOpaque(),
        s_tir.transform.LowerOpaqueBlock(),
    )
    lowered = MatmulRelu
    for each in passes:
        lowered = each(lowered)
    changes = {one.name: one.change.value for one in nest(irviz.diff(MatmulRelu, lowered)).blocks}
    assert changes == {"Y": "removed", "C": "removed"}


def test_loops_are_the_same_where_a_block_has_no_axes_any_more():
    before = s_tir.transform.PlanAndUpdateBufferAllocationLocation()(
        s_tir.transform.LowerInitBlock()(MatmulRelu)
    )
    found = nest(irviz.diff(before, s_tir.transform.ConvertBlocksToOpaque()(before)))
    assert [[str(each) for each in one.loops] for one in found.blocks] == [
        ["i: same", "j: same", "k: same"],
        ["i: same", "j: same"],
    ]


def test_new_buffers_are_in_the_order_of_the_text():
    def cache(schedule, block, _):
        for index in (1, 0):
            schedule.cache_read(block, index, "shared")
        schedule.cache_write(block, 0, "local")

    found = nest(stepped(cache)).buffers
    names = [one.after for one in found if one.change is ChangeKind.ADDED]
    assert names == ["B_shared", "A_shared", "Y_local"]


def test_a_prim_func_that_differs_has_its_loop_nests():
    (function,) = stepped(_split).functions
    before, after = function.nests
    assert [len(list(walk(one))) for one in (before, after)] == [10, 11]
    assert irviz.diff(MatmulRelu, MatmulRelu).functions[0].nests == (None, None)
    legalized = irviz.diff(MyModuleHighLevel, relax.transform.LegalizeOps()(MyModuleHighLevel))
    new = {one.name: one.nests for one in legalized.functions if one.change.value == "added"}
    assert new.keys() >= {"matmul", "relu"}
    assert all(one is None and two.name == name for name, (one, two) in new.items())


def test_no_pass_over_prim_funcs_makes_the_diff_fail(constructs):
    for name in constructs.WELL_FORMED:
        mod = constructs.construct(name)
        after = relax.transform.LegalizeOps()(mod) if name == "network" else mod
        assert not irviz.diff(after, after)


def test_the_text_names_what_became_of_blocks():
    text = stepped(_split).text()
    assert "  block Y: loop j → j_0, j_1: split\n" in text
    assert "for j_0, j_1 in" in text or "T.grid(128, 32, 4, 128)" in text


WITHOUT_BLOCKS = """
@I.ir_module
class Module:
    @T.prim_func
    def f(a: T.Buffer((16,), "float32"), b: T.Buffer((16,), "float32")):
        for i in range(16):
            b[i] = a[i] * T.float32(2)

    @R.function
    def middle(x: R.Tensor((16,), "float32")) -> R.Tensor((16,), "float32"):
        y = R.call_tir(Module.f, (x,), R.Tensor((16,), "float32"))
        return y

    @R.function
    def main(x: R.Tensor((16,), "float32")) -> R.Tensor((16,), "float32"):
        z = Module.middle(x)
        return z
"""


def without_blocks(*replacements):
    text = WITHOUT_BLOCKS
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    return load_content(text.encode(), "module.py").module


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("T.float32(2)", "T.float32(3)", "b[i] = a[i] * T.float32(3.0)"),
        ("range(16)", "range(15)", "for i in range(15):"),
        ("range(16)", "T.parallel(16)", "for i in T.parallel(16):"),
        ("range(16)", "range(1, 16)", "for i in range(1, 16):"),
    ],
)
def test_a_difference_in_a_function_without_blocks_is_shown_with_its_line(old, new, line):
    diff = irviz.diff(without_blocks(), without_blocks((old, new)))
    (function,) = (one for one in diff.functions if one.name == "f")
    assert function.loops.statements
    added = next(text for text in diff.text().splitlines() if text.startswith("+ "))
    assert added.removeprefix("+ ").strip() == line


def test_other_names_in_a_function_without_blocks_are_no_difference():
    names = [("for i in", "for k in"), ("b[i]", "out[k]"), ("a[i]", "in_[k]")]
    renamed = without_blocks(*names, ("b: T", "out: T"), ("a: T", "in_: T"))
    assert "out[k] = in_[k]" in renamed.script()
    assert not irviz.diff(without_blocks(), renamed)


@pytest.mark.build
def test_two_equal_builds_have_no_differences_in_lowered_functions():
    one, two = (_packed(MyModule) for _ in range(2))
    assert not structural_equal(one, two)  # attributes name variables of their own
    assert not irviz.diff(one, two)


def _packed(mod):
    """Return the module after MakePackedAPI as TVM compiles it."""
    with irviz.record() as recording:
        tvm.compile(mod, "llvm")
    stages = recording.session().stages
    return next(one.module for one in stages if one.label == "tirx.MakePackedAPI")


def test_another_layout_of_a_buffer_is_named():
    other = without_blocks(
        ('a: T.Buffer((16,), "float32")', 'a: T.Buffer((16,), "float32", align=8)')
    )
    lines = irviz.diff(without_blocks(), other).text().splitlines()
    (line,) = (line for line in lines if line.startswith("  buffer a: memory layout: "))
    assert "data_alignment=8" in line.partition(" → ")[2]


def test_a_call_is_changed_by_its_callees_own_body_alone_and_the_chain_leads_there():
    diff = irviz.diff(without_blocks(), without_blocks(("T.float32(2)", "T.float32(3)")))
    functions = {one.name: one for one in diff.functions}
    assert [one.change.value for one in diff.functions if one.name == "main"] == ["same"]
    (call,) = functions["middle"].changed_nodes
    assert list(map(str, call.differences)) == ["callee's body: f → f"]
    assert functions["f"].change.value == "changed"
