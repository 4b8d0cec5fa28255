"""A loop nest has everything that TVM's own walk and TVMScript show of a PrimFunc."""

import re

import pytest
import tvm
import tvm_ffi
from tvm import IRModule, s_tir, te, tirx, topi

from irviz.course.mlp import MODULES
from irviz.ir.loop_nest_reader import loop_nest
from irviz.model.loop_nest import Axis, AxisKind, Block, Buffer, BufferRegion, Loop, LoopKind
from irviz.model.loop_nest import Statement as Line

S, R = AxisKind.SPATIAL, AxisKind.REDUCTION


def placeholder(name, *shape, dtype="float32"):
    return te.placeholder(shape, name=name, dtype=dtype)


A, B = placeholder("A", 16, 8), placeholder("B", 8, 16)
IMAGE, KERNEL = placeholder("X", 1, 3, 8, 8), placeholder("W", 4, 3, 3, 3)
ROWS = placeholder("S", tirx.Var("n", "int64"), 8)
MATMUL = te.create_prim_func([A, B, topi.matmul(A, B)])
COMPUTED = {
    "matmul": MATMUL,
    "softmax": te.create_prim_func([A, topi.nn.softmax(A)]),
    "conv2d": te.create_prim_func([IMAGE, KERNEL, topi.nn.conv2d(IMAGE, KERNEL, 1, 1, 1)]),
    "argmax": te.create_prim_func([A, topi.argmax(A, 1)]),
    "concat": te.create_prim_func([A, topi.concatenate([A, A], 0)]),
    "sort": te.create_prim_func([A, topi.sort(A)]),
    "symbolic": te.create_prim_func([ROWS, topi.sum(topi.add(topi.add(ROWS, 1.0), 1.0), 1)]),
}


def schedule(step):
    made = s_tir.Schedule(MATMUL)
    block = made.get_sblock("T_matmul")
    step(made, block, *made.get_loops(block))
    return made


def tiled(made, block, i, j, k):
    (i0, i1), (j0, j1) = made.split(i, [None, 3]), made.split(j, [4, 4])
    k0, k1 = made.split(k, [2, None])
    made.reorder(i0, j0, k0, i1, k1, j1)
    made.parallel(i0)
    made.vectorize(j1)
    made.unroll(k1)
    made.decompose_reduction(block, k0)


def cached(made, block, i, _j, _k):
    made.cache_read(block, 0, "shared")
    made.reverse_compute_at(made.cache_write(block, 0, "local"), i)
    made.annotate(i, "pragma_auto_unroll_max_step", 16)
    made.annotate(block, "empty", "")


def factored(made, _block, _i, _j, k):
    made.rfactor(made.split(k, [2, None])[0], 0)


def blockized(made, _block, i, j, k):
    (i0, i1), (j0, j1), (k0, k1) = (made.split(loop, [None, 4]) for loop in (i, j, k))
    made.reorder(i0, j0, k0, i1, j1, k1)
    made.blockize(i1)


def bound(made, _block, i, j, _k):
    made.bind(i, "blockIdx.x")
    made.bind(j, "threadIdx.x")


SCHEDULED = {step.__name__: schedule(step) for step in (tiled, cached, factored, blockized, bound)}
COURSE = {
    f"{module}.{gvar.name_hint}": function
    for module, mod in MODULES.items()
    for gvar, function in mod.functions_items()
    if isinstance(function, tirx.PrimFunc)
}
HIGH = {**COURSE, **COMPUTED, **{name: made.mod["main"] for name, made in SCHEDULED.items()}}


def lowerings(function):
    """Yield what each pass of a pipeline for the CPU makes of a function."""
    target = tvm.target.Target("llvm")
    mod = IRModule({"main": function.with_attr({"global_symbol": "main", "target": target})})
    s, t = s_tir.transform, tirx.transform
    for step in (
        *(s.LowerInitBlock(), s.PlanAndUpdateBufferAllocationLocation(), s.ConvertBlocksToOpaque()),
        *(s.CompactBufferAllocation(), s.LowerMatchBuffer(), s.LowerOpaqueBlock()),
        *(t.FlattenBuffer(), t.VectorizeLoop(), t.UnrollLoop(), t.CommonSubexprElim()),
        *(t.AnnotateEntryFunc(), t.MakePackedAPI(), t.LowerIntrin()),
    ):
        mod = step(mod)
        yield mod["main"]


def every(nodes, kind=object):
    """Return all nodes of a kind, in the order of the text."""
    found = []
    for node in nodes:
        found += [node] if isinstance(node, kind) else []
        found += every(node.init, kind) if isinstance(node, Block) else []
        found += every(node.children, kind)
    return found


def walked(function, kind):
    found = []
    tvm_ffi.structural_walk(function.body, (kind, found.append), order="pre")
    return found


def blocks_of(function):
    """Return TVM's blocks without the root that TVMScript does not write either."""
    found = walked(function, s_tir.SBlock)
    return found[1:] if '# with T.sblock("root")' in function.script() else found


def short(text):
    return re.sub(r"\bT\.int64\((-?\d+)\)", r"\1", text)


def check(function):
    """Compare a nest with TVM's own walk over the function and its TVMScript."""
    nest = loop_nest(function, "f")
    script = function.script(syntax_sugar=False).splitlines()
    loops, blocks = every(nest.body, Loop), every(nest.body, Block)
    kinds = [loop.kind.value for loop in loops]
    assert kinds == [tirx.ForKind(each.kind).name.lower() for each in walked(function, tirx.For)]
    named = [found[1] for line in script if (found := re.match(r"\s*for (\w+) in ", line))]
    assert [loop.variable for loop in loops] == named
    originals = blocks_of(function)
    assert [block.name for block in blocks] == [each.name_hint for each in originals]
    for block, original in zip(blocks, originals, strict=True):
        types = {S: tirx.IterVar.DataPar, R: tirx.IterVar.CommReduce}
        assert [types[a.kind] for a in block.axes] == [v.iter_type for v in original.iter_vars]
        assert bool(block.init) == (original.init is not None)
    touched = [short(line.strip()) for line in script]
    for block in blocks:
        for word, accesses in (("reads", block.reads), ("writes", block.writes)):
            regions = ", ".join(f"{access.buffer}[{access.region}]" for access in accesses)
            assert f"T.{word}({regions})" in touched
    # every line is somewhere: TVM's statements that hold no others are the lines without children
    leaves = walked(function, (tirx.BufferStore, tirx.Evaluate, tirx.Bind, tirx.AllocBuffer))
    leaves += walked(function, (tirx.AssertStmt, tirx.DeclBuffer, tirx.stmt.Return))
    lines = every(nest.body, Line)
    assert len([line for line in lines if not line.children]) == len(leaves)
    written = {line.strip() for line in script}
    assert {line.text for line in lines if not line.children} <= written


@pytest.mark.parametrize("function", HIGH.values(), ids=HIGH)
def test_loops_blocks_axes_and_regions_are_those_of_tvm(function):
    check(function)


@pytest.mark.parametrize("name", ["MyModuleStatic.linear0", "softmax", "conv2d", "tiled", "cached"])
def test_every_step_of_lowering_can_be_read(name):
    for lowered in lowerings(HIGH[name]):
        check(lowered)


@pytest.mark.parametrize("made", SCHEDULED.values(), ids=SCHEDULED)
def test_blocks_and_the_loops_around_them_are_those_the_schedule_finds(made):
    nest = loop_nest(made.mod["main"], "f")
    found = [block.name for block in every(nest.body, Block)]
    around = {id(block): loops for block, loops in paths(nest.body)}
    for block in made.get_child_blocks(made.get_sblock("root")):
        name = made.get(block).name_hint
        assert name in found
        extents = [str(made.get(loop).extent.value) for loop in made.get_loops(block)]
        assert extents in [
            [loop.extent for loop in around[id(each)]]
            for each in every(nest.body, Block)
            if each.name == name
        ]


def paths(nodes, loops=()):
    """Yield each block with the loops around it."""
    for node in nodes:
        if isinstance(node, Block):
            yield node, loops
            yield from paths(node.init)
            yield from paths(node.children)
        else:
            yield from paths(node.children, (*loops, node) if isinstance(node, Loop) else loops)


def test_the_linear_layer_of_the_lecture():
    nest = loop_nest(MODULES["MyModuleStatic"]["linear0"], "linear0")
    assert nest.name == "linear0"
    assert [f"{p.name}{p.shape}" for p in nest.parameters] == [
        *("X(1, 784)", "W(128, 784)", "B(128,)", "Z(1, 128)")
    ]
    assert nest.temporaries == (Buffer("Y", "(1, 128)", "float32"),)
    loops = every(nest.body, Loop)
    assert [(loop.variable, loop.extent, loop.axes) for loop in loops] == [
        *(("i", "1", (S,)), ("j", "128", (S,)), ("k", "784", (R,))),
        *(("i", "1", (S,)), ("j", "128", (S,))),
    ]
    product, _sum = every(nest.body, Block)
    assert product.axes == (
        *(Axis("vi", S, "1", "i"), Axis("vj", S, "128", "j"), Axis("vk", R, "784", "k")),
    )
    assert product.reads == (BufferRegion("X", "vi, vk"), BufferRegion("W", "vj, vk"))
    assert product.writes == (BufferRegion("Y", "vi, vj"),)
    assert product.init == (Line("Y[vi, vj] = T.float32(0.0)"),)
    assert product.children == (Line("Y[vi, vj] = Y[vi, vj] + X[vi, vk] * W[vj, vk]"),)


def test_symbolic_sizes_have_their_names():
    nest = loop_nest(COMPUTED["symbolic"], "f")
    assert nest.parameters[0] == Buffer("S", "(n, 8)", "float32")
    assert [loop.extent for loop in every(nest.body, Loop)][:2] == ["n", "8"]


def test_variables_that_are_called_alike_can_be_told_apart():
    nest = loop_nest(COMPUTED["symbolic"], "f")
    assert [buffer.name for buffer in nest.temporaries] == ["T_add", "T_add_1"]
    first, second, last = every(nest.body, Block)
    assert first.writes == second.reads == (BufferRegion("T_add", "v_ax0, v_ax1"),)
    assert second.writes[0].buffer == last.reads[0].buffer == "T_add_1"
    cached_nest = loop_nest(HIGH["cached"], "f")
    assert every(cached_nest.body, Block)[-1].axes[1].binding == "ax0_1"


def test_a_schedule_shows_in_kinds_predicates_scopes_and_annotations():
    nest = loop_nest(HIGH["tiled"], "f")
    kinds = {loop.variable: loop.kind for loop in every(nest.body, Loop)}
    assert kinds["ax0_0"] is LoopKind.PARALLEL
    assert kinds["ax1_1"] is LoopKind.VECTORIZED
    assert kinds["k_1"] is LoopKind.UNROLLED
    assert every(nest.body, Block)[0].predicate == "ax0_0 * 3 + ax0_1_init < 16"
    threads = [loop.thread for loop in every(loop_nest(HIGH["bound"], "f").body, Loop)]
    assert threads == ["blockIdx.x", "threadIdx.x", ""]
    nest = loop_nest(HIGH["cached"], "f")
    assert {b.name: b.scope for b in nest.temporaries}["A_shared"] == "shared"
    assert every(nest.body, Loop)[2].annotations == (("pragma_auto_unroll_max_step", "16"),)
    assert every(nest.body, Block)[1].annotations == (("empty", ""),)
