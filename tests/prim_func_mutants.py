"""Mutants of PrimFuncs, and whether the diff of each agrees with TVM's structural equality."""

import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

import tvm
import tvm_ffi
from tvm import ir, relax, s_tir, tirx

import irviz
from irviz.course.mlp import MyModule
from irviz.course.mlp_high_level import MyModuleHighLevel
from irviz.course.mm_relu import MyModule as MatmulRelu
from irviz.course.mm_relu import lecture_schedule

REFUSED = (
    RuntimeError,
    ValueError,
    TypeError,
    AssertionError,
    KeyError,
    AttributeError,
    IndexError,
)


class Mutant(NamedTuple):
    """A changed function; `kind` says what was changed."""

    kind: str
    function: tirx.PrimFunc


def functions(random_schedule: Callable, count: int = 6) -> dict[str, tirx.PrimFunc]:
    """Return PrimFuncs of the course, scheduled ones and lowered ones, by a name."""
    legal = relax.transform.LegalizeOps()(MyModuleHighLevel)
    schedule = s_tir.Schedule(MatmulRelu)
    schedule.work_on("mm_relu")
    lecture_schedule(schedule)
    mods = {"course": MyModule, "legal": legal, "matmul": MatmulRelu, "lecture": schedule.mod}
    mods |= {f"random {seed}": random_schedule(seed)[1] for seed in range(count)}
    mods["lowered"] = _lowered(schedule.mod)
    mods["built"] = tirx.transform.MakePackedAPI()(_with_target(_lowered(legal)))
    return {
        f"{name} {gvar.name_hint}": function
        for name, mod in mods.items()
        for gvar, function in mod.functions.items()
        if isinstance(function, tirx.PrimFunc)
    }


def _lowered(mod: ir.IRModule) -> ir.IRModule:
    passes = (
        s_tir.transform.LowerInitBlock(),
        s_tir.transform.PlanAndUpdateBufferAllocationLocation(),
        s_tir.transform.ConvertBlocksToOpaque(),
        s_tir.transform.LowerOpaqueBlock(),
    )
    for each in passes:
        mod = each(mod)
    return mod


def _with_target(mod: ir.IRModule) -> ir.IRModule:
    target = tvm.target.Target("llvm", host="llvm")
    prim_funcs = {g: f for g, f in mod.functions.items() if isinstance(f, tirx.PrimFunc)}
    return tirx.transform.BindTarget(target)(ir.IRModule(prim_funcs))


# --- other functions ---------------------------------------------------------------------------


def mutants(function: tirx.PrimFunc, rng: random.Random, places: int = 2) -> Iterator[Mutant]:
    """Yield functions that differ from a given one in one place, chosen at random for each kind."""
    for type_, kinds in _CHANGES.items():
        for kind, change in kinds.items():
            count = _count(function, type_)
            for at in rng.sample(range(count), min(count, places)):
                try:
                    changed = _changed_at(function, type_, at, change)
                except REFUSED:
                    continue
                if not changed.same_as(function):
                    yield Mutant(kind, changed)
    for kind, change_type in _BUFFER_TYPES.items():
        buffers = _defined(function, tirx.is_buffer_var)
        if buffers:
            buffer = rng.choice(buffers)
            try:
                yield Mutant(
                    kind,
                    _with_vars(function, {buffer: ir.Var(buffer.name, change_type(buffer.ty))}),
                )
            except REFUSED:
                continue
    params = list(function.params)
    if len(params) > 1:
        one, two = rng.sample(range(len(params)), 2)
        params[one], params[two] = params[two], params[one]
        yield Mutant("parameters exchanged", _with_params(function, params))
    yield Mutant("attribute", function.with_attr("tirx.is_scheduled", 7))
    yield Mutant("attribute", function.with_attr("tirx.noalias", False))


def equal_mutants(function: tirx.PrimFunc) -> Iterator[Mutant]:
    """Yield functions that differ from a given one in names alone, or in nothing."""
    names = _defined(function)
    yield Mutant("renamed", _with_vars(function, {v: ir.Var(f"{v.name}_x", v.ty) for v in names}))
    turned = zip(names, [*names[1:], *names[:1]], strict=True)
    yield Mutant(
        "names exchanged", _with_vars(function, {v: ir.Var(w.name, v.ty) for v, w in turned})
    )
    yield Mutant("copied", tvm.ir.load_json(tvm.ir.save_json(function)))


def is_equal(one: tirx.PrimFunc, two: tirx.PrimFunc) -> bool:
    """Return whether TVM finds two functions equal up to names; variables may be free."""
    return bool(tvm_ffi.structural_equal(one, two, map_free_vars=True))


def diff_of(one: tirx.PrimFunc, two: tirx.PrimFunc):
    """Return the diff of modules with one function each."""
    return irviz.diff(ir.IRModule({"f": one}), ir.IRModule({"f": two}))


def _count(function, type_) -> int:
    found = []
    tvm_ffi.structural_walk(function, (type_, found.append))
    return len(found)


def _changed_at(function, type_, at, change):
    left = iter(range(1 << 30))
    return tvm_ffi.structural_map(
        function, (type_, lambda node: change(node) if next(left) == at else node)
    )


def _with_vars(function, replaced):
    """Return a function with other variables, also in the types of variables."""

    def of(var):
        return replaced.get(var, var)

    return tvm_ffi.structural_map(function, (ir.Var, of))


def _with_params(function, params):
    return tirx.PrimFunc(params, function.body, function.ret_type, function.attrs)


def _defined(function, wanted=None):
    """Return the variables of a function, each once."""
    found = {}
    tvm_ffi.structural_walk(function, (ir.Var, lambda var: found.setdefault(var, None)))
    return [var for var in found if wanted is None or wanted(var)]


def _loop(**changes):
    fields = ("loop_var", "min", "extent", "kind", "body", "thread_binding", "annotations", "step")

    def change(loop):
        own = {name: getattr(loop, name) for name in fields}
        own |= {name: make(loop) for name, make in changes.items()}
        return tirx.For(*(own[name] for name in fields))

    return change


def _block(**changes):
    fields = ("iter_vars", "reads", "writes", "name_hint", "body", "init", "alloc_buffers")
    fields += ("match_buffers", "annotations")

    def change(block):
        own = {name: getattr(block, name) for name in fields}
        own |= {name: make(block) for name, make in changes.items()}
        return s_tir.SBlock(*(own[name] for name in fields))

    return change


def _realize(values=lambda r: r.iter_values, predicate=lambda r: r.predicate):
    return lambda r: s_tir.SBlockRealize(list(values(r)), predicate(r), r.block)


def _other_kind(loop):
    is_serial = int(loop.kind) == int(tirx.ForKind.SERIAL)
    return tirx.ForKind.UNROLLED if is_serial else tirx.ForKind.SERIAL


def _thread(loop):
    thread = loop.thread_binding
    if thread is not None:
        return tirx.IterVar(thread.dom, thread.var, thread.iter_type, "threadIdx.z")
    return tirx.IterVar(ir.Range(0, loop.extent), "thread", 1, "threadIdx.x")


def _first_from_others(values):
    first, *others = values
    return [tirx.max(first - 1, 0), *others]


def _last_condition(realize):
    value = realize.iter_values[-1]
    return tirx.And(realize.predicate, value < 3) if len(realize.iter_values) else realize.predicate


def _int(by):
    return lambda number: tirx.IntImm(number.ty, number.value + by)


_CHANGES: dict[type, dict[str, Callable]] = {
    tirx.IntImm: {"integer": _int(1), "smaller integer": _int(-1), "other integer": _int(2)},
    tirx.FloatImm: {"constant": lambda number: tirx.FloatImm(number.ty, number.value + 1)},
    tirx.For: {
        "extent": _loop(extent=lambda loop: loop.extent - 1),
        "start": _loop(min=lambda loop: loop.min + 1),
        "loop kind": _loop(kind=_other_kind, thread_binding=lambda _: None),
        "thread": _loop(kind=lambda _: tirx.ForKind.THREAD_BINDING, thread_binding=_thread),
        "annotation of a loop": _loop(annotations=lambda _: {"pragma_unroll": 1}),
        "step": _loop(step=lambda _: tirx.IntImm("int32", 2)),
    },
    s_tir.SBlockRealize: {
        "binding": _realize(values=lambda r: _first_from_others(r.iter_values)),
        "bindings exchanged": _realize(values=lambda r: list(r.iter_values)[::-1]),
        "predicate": _realize(predicate=_last_condition),
    },
    s_tir.SBlock: {
        "reads": _block(reads=lambda block: list(block.reads)[:-1]),
        "order of reads": _block(reads=lambda block: list(block.reads)[::-1]),
        "writes": _block(writes=lambda block: [*block.writes, *block.writes]),
        "init": _block(init=lambda _: None),
        "block name": _block(name_hint=lambda block: f"{block.name_hint}_other"),
        "annotation of a block": _block(annotations=lambda _: {"note": 1}),
    },
    tirx.IterVar: {
        "kind of axis": lambda axis: tirx.IterVar(
            axis.dom, axis.var, 2 if int(axis.iter_type) == 0 else 0, axis.thread_tag
        ),
    },
    tirx.BufferStore: {
        "stored value": lambda store: tirx.BufferStore(
            store.buffer, store.value + store.value, list(store.indices)
        ),
        "stored index": lambda store: tirx.BufferStore(
            store.buffer, store.value, [store.indices[0] + 1, *store.indices[1:]]
        ),
        "stored indices exchanged": lambda store: tirx.BufferStore(
            store.buffer, store.value, list(store.indices)[::-1]
        ),
    },
    tirx.Add: {"operator": lambda add: tirx.Sub(add.a, add.b)},
    tirx.Mul: {"operands": lambda mul: tirx.Mul(mul.b, mul.a), "operator": lambda m: m.a + m.b},
    tirx.Max: {"operator": lambda one: tirx.Min(one.a, one.b)},
    tirx.SeqStmt: {
        "order of statements": lambda seq: tirx.SeqStmt(list(seq.seq)[::-1]),
        "statement twice": lambda seq: tirx.SeqStmt([*seq.seq, seq.seq[-1]]),
    },
    tirx.IfThenElse: {
        "condition": lambda stmt: tirx.IfThenElse(
            tirx.Not(stmt.condition), stmt.then_case, stmt.else_case
        ),
    },
    tirx.AttrStmt: {"no attribute": lambda stmt: stmt.body},
}
"""What is changed, by the type of the node and a name."""


def _type(**changes):
    fields = ("dtype", "storage_scope", "shape", "strides", "elem_offset", "data_alignment")
    fields += ("offset_factor", "layout", "allocated_addr")

    def change(type_):
        own = {name: getattr(type_, name) for name in fields}
        own |= {name: make(type_) for name, make in changes.items()}
        return tirx.BufferType(*(own[name] for name in fields))

    return change


_BUFFER_TYPES: dict[str, Callable] = {
    "scope": _type(
        storage_scope=lambda type_: "shared" if type_.storage_scope != "shared" else "local"
    ),
    "shape": _type(shape=lambda type_: [*list(type_.shape)[:-1], type_.shape[-1] + 1]),
    "strides": _type(strides=lambda type_: [tirx.IntImm("int32", 3) for _ in type_.shape]),
    "offset": _type(elem_offset=lambda _: tirx.IntImm("int32", 4)),
    "alignment": _type(data_alignment=lambda type_: int(type_.data_alignment) * 2),
    "offset factor": _type(offset_factor=lambda type_: int(type_.offset_factor) + 1),
}
"""What is changed in the type of a buffer."""
