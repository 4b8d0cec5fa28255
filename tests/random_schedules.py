# ruff: noqa: N803, N805, N806, N812
"""Random legal schedules, and what their blocks visit, counted by running the loops in Python.

The second reading knows neither irviz nor TVM's arithmetic: it runs every iteration, and counts how
often each block touches which elements.
"""

import operator
import random
from collections import Counter
from typing import NamedTuple

import tvm_ffi
from tvm import ir, s_tir, tirx
from tvm.script import ir as I
from tvm.script import tirx as T

from irviz.model.diff.diff_result import ChangeKind
from irviz.model.loop_nest import walk


@I.ir_module
class Matmul:
    @T.prim_func(s_tir=True)
    def main(
        A: T.Buffer((6, 8), "float32"),
        B: T.Buffer((8, 10), "float32"),
        C: T.Buffer((6, 10), "float32"),
    ):
        Y = T.sblock_alloc_buffer((6, 10), "float32")
        for i, j, k in T.grid(6, 10, 8):
            with T.sblock("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(6, 10):
            with T.sblock("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(Y[vi, vj], T.float32(0))


@I.ir_module
class Pointwise:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((7, 9), "float32"), D: T.Buffer((7, 9), "float32")):
        B = T.sblock_alloc_buffer((7, 9), "float32")
        C = T.sblock_alloc_buffer((7, 9), "float32")
        for i, j in T.grid(7, 9):
            with T.sblock("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)
        for i, j in T.grid(7, 9):
            with T.sblock("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] + T.float32(1)
        for i, j in T.grid(7, 9):
            with T.sblock("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = T.exp(C[vi, vj])


@I.ir_module
class Convolution:
    @T.prim_func(s_tir=True)
    def main(
        X: T.Buffer((2, 6, 6), "float32"),
        W: T.Buffer((3, 2, 3, 3), "float32"),
        Y: T.Buffer((3, 6, 6), "float32"),
    ):
        P = T.sblock_alloc_buffer((2, 8, 8), "float32")
        for c, h, w in T.grid(2, 8, 8):
            with T.sblock("pad"):
                vc, vh, vw = T.axis.remap("SSS", [c, h, w])
                P[vc, vh, vw] = T.if_then_else(
                    vh >= 1 and vh < 7 and vw >= 1 and vw < 7,
                    X[vc, vh - 1, vw - 1],
                    T.float32(0),
                )
        for f, y, x, c, r, s in T.grid(3, 6, 6, 2, 3, 3):
            with T.sblock("conv"):
                vf, vy, vx, vc, vr, vs = T.axis.remap("SSSRRR", [f, y, x, c, r, s])
                with T.init():
                    Y[vf, vy, vx] = T.float32(0)
                Y[vf, vy, vx] = Y[vf, vy, vx] + P[vc, vy + vr, vx + vs] * W[vf, vc, vr, vs]


KERNELS = (Matmul, Pointwise, Convolution)


def random_schedule(seed: int, steps: int = 4) -> tuple[ir.IRModule, ir.IRModule, list[str]]:
    """Return a kernel, a random legal schedule of it, and the primitives that made it."""
    rng = random.Random(seed)
    before = after = rng.choice(KERNELS)
    done: list[str] = []
    for _ in range(steps * 3):
        step = rng.choice(_STEPS)
        schedule = s_tir.Schedule(after)  # a step that fails may leave half of its work behind
        try:
            blocks = [block for block in _leaves(schedule) if schedule.get_loops(block)]
            step(schedule, rng.choice(blocks), blocks, rng)
            s_tir.Schedule(schedule.mod)  # some steps make functions that TVM itself refuses
        except (s_tir.ScheduleError, RuntimeError, ValueError, IndexError):
            continue
        after = schedule.mod
        done.append(step.__name__.strip("_"))
        if len(done) == steps:
            break
    return before, after, done


def _leaves(schedule):
    places = blocks_of(schedule.mod["main"])
    names = [place.realize.block.name_hint for place in places if place.is_leaf]
    return [schedule.get_sblock(name) for name in names if names.count(name) == 1]


def _split(schedule, block, _, rng):
    loop = rng.choice(schedule.get_loops(block))
    schedule.split(loop, rng.choice([[None, 2], [None, 3], [4, None], [None, 4], [2, None, 2]]))


def _fuse(schedule, block, _, rng):
    loops = schedule.get_loops(block)
    at = rng.randrange(len(loops) - 1)
    schedule.fuse(*loops[at : at + rng.choice([2, 2, 3])])


def _reorder(schedule, block, _, rng):
    loops = list(schedule.get_loops(block))
    schedule.reorder(*rng.sample(loops, min(len(loops), 3)))


def _compute_at(schedule, block, blocks, rng):
    schedule.compute_at(block, rng.choice(schedule.get_loops(rng.choice(blocks))))


def _reverse_compute_at(schedule, block, blocks, rng):
    schedule.reverse_compute_at(block, rng.choice(schedule.get_loops(rng.choice(blocks))))


def _cache_read(schedule, block, _, __):
    schedule.cache_read(block, 0, "shared")


def _cache_write(schedule, block, _, __):
    schedule.cache_write(block, 0, "local")


def _decompose_reduction(schedule, block, _, rng):
    schedule.decompose_reduction(block, rng.choice(schedule.get_loops(block)))


def _blockize(schedule, block, _, rng):
    schedule.blockize(rng.choice(schedule.get_loops(block)))


def _unroll(schedule, block, _, rng):
    schedule.unroll(rng.choice(schedule.get_loops(block)))


def _parallel(schedule, block, _, rng):
    schedule.parallel(rng.choice(schedule.get_loops(block)))


def _vectorize(schedule, block, _, rng):
    schedule.vectorize(rng.choice(schedule.get_loops(block)))


def _add_unit_loop(schedule, block, _, rng):
    schedule.add_unit_loop(rng.choice(schedule.get_loops(block)))


_STEPS = (
    *(_split, _split, _fuse, _reorder, _reorder, _compute_at, _reverse_compute_at, _cache_read),
    *(
        _cache_write,
        _decompose_reduction,
        _blockize,
        _unroll,
        _parallel,
        _vectorize,
        _add_unit_loop,
    ),
)


# --- what blocks visit ------------------------------------------------------------------------


class Place(NamedTuple):
    """A block; around it are loops, conditions and outer blocks, outermost first."""

    realize: s_tir.SBlockRealize
    around: list
    is_leaf: bool


def blocks_of(function):
    """Return each block but the root."""
    found = []

    def visit(stmt, around):
        match stmt:
            case tirx.SeqStmt():
                for each in stmt.seq:
                    visit(each, around)
            case tirx.For():
                visit(stmt.body, [*around, stmt])
            case tirx.IfThenElse():
                visit(stmt.then_case, [*around, stmt.condition])
            case s_tir.SBlockRealize():
                at = len(found)
                found.append(None)
                for part in filter(None, [stmt.block.init, stmt.block.body]):
                    visit(part, [*around, stmt])
                found[at] = Place(stmt, around, len(found) == at + 1)

    visit(function.body, [])
    return [one for one in found if one.realize.block.name_hint != "root"]


def visited(function, name):
    """Count the points at which a block runs: the values of its axes, and what it accesses.

    Returns:
        For each point of the axes how often it is visited, and the same for the indices of the
        accesses of single elements, by kind, buffer, number and dimension.
    """
    (place,) = [one for one in blocks_of(function) if one.realize.block.name_hint == name]
    realize, points = place.realize, _accesses(place.realize.block)
    axes, accesses = Counter(), Counter()
    for env in _environments(place.around, {}):
        if value(realize.predicate, env):
            own = _axis_values(realize, env)
            axes[tuple(own.values())] += 1
            inner = {**env, **own}
            accesses[tuple((key, value(expr, inner)) for key, expr in points)] += 1
    return axes, accesses


def _environments(around, env):
    """Yield the values of variables in each iteration of what is around a block."""
    if not around:
        yield env
        return
    first, *others = around
    match first:
        case tirx.For():
            start = value(first.min, env)
            for at in range(start, start + value(first.extent, env)):
                yield from _environments(others, {**env, first.loop_var: at})
        case s_tir.SBlockRealize():
            if value(first.predicate, env):
                yield from _environments(others, {**env, **_axis_values(first, env)})
        case _:
            if value(first, env):
                yield from _environments(others, env)


def _axis_values(realize, env):
    pairs = zip(realize.block.iter_vars, realize.iter_values, strict=True)
    return {axis.var: value(bound, env) for axis, bound in pairs}


def _accesses(block):
    found = []
    counts = Counter()
    for kind, regions in (("read", block.reads), ("write", block.writes)):
        for region in regions:
            key = kind, region.source.name
            if all(isinstance(r.extent, tirx.IntImm) and int(r.extent) == 1 for r in region.region):
                indices = enumerate(region.region)
                found += [((*key, counts[key], dim), each.min) for dim, each in indices]
            counts[key] += 1
    return found


def is_same_domain(one, two, names):
    """Return whether two blocks visit the same, by their axes if these are alike, else accesses."""
    blocks = [
        next(each.realize.block for each in blocks_of(f) if each.realize.block.name_hint == name)
        for f, name in zip((one, two), names, strict=True)
    ]
    kinds = [[(int(a.iter_type), int(a.dom.extent)) for a in block.iter_vars] for block in blocks]
    (axes, accesses), (other_axes, other_accesses) = (
        visited(f, name) for f, name in zip((one, two), names, strict=True)
    )
    if kinds[0] == kinds[1]:
        return axes == other_axes
    common = {key for key, _ in _accesses(blocks[0])} & {key for key, _ in _accesses(blocks[1])}
    return _restricted(accesses, common) == _restricted(other_accesses, common)


def _restricted(points, keys):
    found = Counter()
    for point, count in points.items():
        found[tuple(sorted(each for each in point if each[0] in keys))] += count
    return found


_PYTHON = {
    tirx.Add: operator.add,
    tirx.Sub: operator.sub,
    tirx.Mul: operator.mul,
    tirx.FloorDiv: operator.floordiv,
    tirx.FloorMod: operator.mod,
    tirx.Min: min,
    tirx.Max: max,
    tirx.LT: operator.lt,
    tirx.LE: operator.le,
    tirx.GT: operator.gt,
    tirx.GE: operator.ge,
    tirx.EQ: operator.eq,
    tirx.And: lambda one, two: one and two,
}


def value(expr, env):
    """Return the value of an expression of integers."""
    if isinstance(expr, tirx.IntImm):
        return int(expr.value)
    if isinstance(expr, ir.Var):
        return env[expr]
    if isinstance(expr, ir.Call):  # T.likely
        return value(expr.args[0], env)
    return _PYTHON[type(expr)](value(expr.a, env), value(expr.b, env))


# --- what a diff says of it ---------------------------------------------------------------------

NOT_THE_SAME = ("covers", "visits", "not known")


def verdicts(diff, before, after):
    """Return for each pair of blocks whether the diff says that they visit the same, and the truth.

    Left out are blocks that are around others, and those that do a part of what another did.
    """
    (function,) = diff.functions
    if function.loops is None:
        return []
    names = [{node.id: getattr(node, "name", "") for node in walk(nest)} for nest in function.nests]
    leaves = [
        {place.realize.block.name_hint for place in blocks_of(mod["main"]) if place.is_leaf}
        for mod in (before, after)
    ]
    found = []
    for block in function.loops.blocks:
        if not block.before or not block.after:
            continue
        one, two = names[0][block.before[-1]], names[1][block.after[-1]]
        is_whole = block.change is not ChangeKind.SPLIT or two in (one, f"{one}_update")
        if is_whole and one in leaves[0] and two in leaves[1]:
            words = [*map(str, block.loops), *(each.what for each in block.differences)]
            said = not any(each in word for word in words for each in NOT_THE_SAME)
            found.append((said, is_same_domain(before["main"], after["main"], (one, two))))
    return found


def with_planted_error(mod, rng):
    """Return a module where one number in the bindings or extents around a block is another."""
    leaf = rng.choice([place for place in blocks_of(mod["main"]) if place.is_leaf])
    numbers = []
    for part in (*leaf.realize.iter_values, leaf.realize.predicate):
        tvm_ffi.structural_walk(part, (tirx.IntImm, numbers.append))
    loops = [one for one in leaf.around if isinstance(one, tirx.For)]
    target = rng.choice([*(one for one in numbers if one.value > 1), *loops])

    def change(node):
        if not node.same_as(target):
            return node
        if isinstance(node, tirx.IntImm):
            return tirx.IntImm(node.ty, node.value - 1)
        thread = node.thread_binding
        return tirx.For(node.loop_var, node.min, node.extent - 1, node.kind, node.body, thread)

    changed = tvm_ffi.structural_map(mod["main"], ((tirx.IntImm, tirx.For), change), order="pre")
    return ir.IRModule({"main": changed})
