"""Modules that are one step simpler than another: without a branch or call, or with a smaller size.

A step is a function from the module to the simpler one. It can be sent to a worker, because it may
crash TVM; it raises what TVM raises.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial

import tvm_ffi
from tvm import ir, relax, s_tir, tirx
from tvm.relax.expr import _update_type

from irviz.ir.module_functions import prim_funcs, relax_function, relax_functions, with_functions
from irviz.ir.relax_calls import with_callees
from irviz.ir.tir_statements import parts_of

Step = Callable[[ir.IRModule], ir.IRModule]
_LEAST_SIZE = 2
"""The smallest size tried before 1, because a pass may treat axes of size 1 specially."""


def without_branch_or_call(mod: ir.IRModule, function: str) -> Iterator[Step]:
    """Yield the steps that replace an `if` by a branch, or a call by the function's body.

    A function that calls others is not inlined, as it may be recursive.
    """
    for block_at, block in enumerate(relax_function(mod, function).body.blocks):
        for at, binding in enumerate(block.bindings):
            if isinstance(binding.value, relax.If):
                for taken in (True, False):
                    place = partial(_with_branch, function=function, block_at=block_at, at=at)
                    yield partial(place, taken=taken)
    others = relax_functions(mod)
    for name in sorted(_called_names(others[function]) & others.keys()):
        if not _called_names(others[name]) & others.keys():
            yield partial(_with_inlined, function=function, callee=name)


def count_stores(mod: ir.IRModule) -> int:
    """Return how many statements of PrimFuncs write to a buffer."""
    return sum(len(parts_of(one.body, tirx.BufferStore)) for one in prim_funcs(mod).values())


def keep_stores(mod: ir.IRModule, kept: Collection[int]) -> ir.IRModule:
    """Return the module with all other statements of PrimFuncs writing zero.

    In a sequence, a statement is removed if no other reads what it writes.
    """
    numbers = itertools.count()

    def stored(store: tirx.BufferStore) -> tirx.BufferStore:
        if next(numbers) in kept:
            return store
        zero = tirx.const(0, store.value.ty.dtype)
        return tirx.BufferStore(store.buffer, zero, store.indices)

    changed = {
        name: _without_unread(tvm_ffi.structural_map(one, (tirx.BufferStore, stored)))
        for name, one in prim_funcs(mod).items()
    }
    return with_functions(mod, changed)


def _without_unread(function: tirx.PrimFunc) -> tirx.PrimFunc:
    """Return a PrimFunc without the statements in sequences whose results no other reads."""
    read = Counter(_read_names(function))
    read.update(param.name for param in function.params)

    def left(sequence: tirx.SeqStmt) -> ir.Stmt:
        parts = list(sequence.seq)
        for part in parts[::-1]:
            own = Counter(_read_names(part))
            written = [store.buffer.name for store in parts_of(part, tirx.BufferStore)]
            if written and not any(read[name] > own[name] for name in written):
                parts.remove(part)
                read.subtract(own)
        return parts[0] if len(parts) == 1 else tirx.SeqStmt(parts)

    return tvm_ffi.structural_map(function, (tirx.SeqStmt, left))


def _read_names(part: object) -> list[str]:
    """Return the name of the buffer for each read; several buffers may share a name."""
    return [load.source.name for load in parts_of(part, ir.TensorLoad)]


def with_smaller_sizes(mod: ir.IRModule) -> Iterator[Step]:
    """Yield the steps that reduce one size, and its multiples too where possible."""
    functions = relax_functions(mod).values()
    sizes = {int(number.value) for one in functions for number in parts_of(one, tirx.IntImm)}
    for size in sorted((one for one in sizes if one > 1), reverse=True):
        for least in (1, _LEAST_SIZE):
            if size > least:
                yield partial(_with_sizes, sizes={size: least})
                multiples = {one: one // size * least for one in sizes if one % size == 0 and one}
                yield partial(_with_sizes, sizes=multiples)


def _with_branch(
    mod: ir.IRModule, *, function: str, block_at: int, at: int, taken: bool
) -> ir.IRModule:
    """Return the module with a branch in the place of the `if` that a binding of a block is."""
    old = relax_function(mod, function)
    blocks = list(old.body.blocks)
    bindings = blocks[block_at].bindings
    chosen = bindings[at]
    branch = chosen.value.true_branch if taken else chosen.value.false_branch
    result = relax.VarBinding(chosen.var, branch.body)
    blocks[block_at : block_at + 1] = [
        relax.BindingBlock(bindings[:at]),
        *branch.blocks,
        relax.BindingBlock([result, *bindings[at + 1 :]]),
    ]
    body = relax.BlockBuilder(mod).normalize(relax.SeqExpr(blocks, old.body.body))
    new = relax.Function(old.params, body, old.ret_ty, old.is_pure, old.attrs)
    return relax.transform.CanonicalizeBindings()(with_functions(mod, {function: new}))


def _with_inlined(mod: ir.IRModule, *, function: str, callee: str) -> ir.IRModule:
    called = {mod.get_global_var(callee): mod[callee]}
    new = relax_function(mod, function).inline_functions(called)
    inlined = relax.transform.Normalize()(with_functions(mod, {function: new}))
    return relax.transform.CanonicalizeBindings()(inlined)


def _with_sizes(mod: ir.IRModule, *, sizes: Mapping[int, int]) -> ir.IRModule:
    def resized(number: tirx.IntImm) -> tirx.IntImm:
        size = int(number.value)
        return tirx.IntImm(number.ty, sizes[size]) if size in sizes else number

    renamed = dict[str, ir.GlobalVar]()

    def retyped(gvar: ir.GlobalVar) -> ir.GlobalVar:
        if gvar.name_hint not in renamed:
            renamed[gvar.name_hint] = ir.GlobalVar(gvar.name_hint)
            _update_type(renamed[gvar.name_hint], tvm_ffi.structural_map(gvar.ty, changes))
        return renamed[gvar.name_hint]

    changes = ((tirx.IntImm, resized), (ir.GlobalVar, retyped))
    functions = {retyped(gvar): one for gvar, one in mod.functions.items()}
    made = {gvar: tvm_ffi.structural_map(one, changes) for gvar, one in functions.items()}
    resized_mod = ir.IRModule(made, attrs=mod.attrs, global_infos=mod.global_infos)
    # an index that is a constant may be outside now, where a PrimFunc reads any value
    return s_tir.analysis.OOBChecker()(resized_mod)


def _called_names(function: ir.BaseFunc) -> set[str]:
    return {gvar.name_hint for gvar in parts_of(function, ir.GlobalVar)}


# --- Make a module of some of a function's bindings, with their other operands as parameters -----


def count_bindings(mod: ir.IRModule, function: str) -> int:
    """Return how many bindings the blocks of a Relax function have."""
    return sum(len(block.bindings) for block in relax_function(mod, function).body.blocks)


def keep_bindings(mod: ir.IRModule, function: str, kept: Collection[int]) -> ir.IRModule:
    """Return a module with some bindings of a function, and the functions that they call.

    A variable that they use and that a removed binding defines becomes a parameter, before the
    function's own; all variables that they do not use themselves are returned. Raises what TVM
    raises if a type depends on a removed binding.

    Args:
        kept: The indices of the bindings in the order of the text, from 0.
    """
    old = relax_function(mod, function)
    numbered = itertools.count()
    blocks = [
        (type(block), [binding for binding in block.bindings if next(numbered) in kept])
        for block in old.body.blocks
    ]
    bindings = [binding for _, part in blocks for binding in part]
    defined = [binding.var for binding in bindings]
    used = dict.fromkeys(
        var for binding in bindings for var in relax.analysis.free_vars(binding.value)
    )
    own = {param: param for param in old.params if param in used}
    known = {*own, *defined}
    params = {var: relax.Var(var.name, var.ty) for var in used if var not in known} | own
    outputs = {
        var: relax.Var(var.name, var.ty) if isinstance(var, relax.DataflowVar) else var
        for var in defined
        if var not in used
    }
    body = relax.SeqExpr(
        [kind(_rewritten(part, params, outputs)) for kind, part in blocks if part],
        next(iter(outputs.values())) if len(outputs) == 1 else relax.Tuple([*outputs.values()]),
    )
    body = relax.BlockBuilder(mod).normalize(body)
    made = relax.Function([*params.values()], body, None, old.is_pure, old.attrs)
    if "num_input" in (old.attrs or {}).keys():  # noqa: SIM118 - no iterator
        made = made.without_attr("num_input")
    whole = with_functions(mod, {function: made})
    needed = with_callees(whole, [function])
    return ir.IRModule(needed, attrs=mod.attrs, global_infos=mod.global_infos)


def _rewritten(
    bindings: Sequence[relax.Binding],
    params: Mapping[ir.Var, ir.Var],
    outputs: Mapping[ir.Var, ir.Var],
) -> list[relax.Binding]:
    """Return bindings that use parameters; results are bound to variables for that."""
    new = []
    for binding in bindings:
        var = outputs.get(binding.var, binding.var)
        value = tvm_ffi.structural_map(binding.value, (ir.Var, lambda one: params.get(one, one)))
        is_cast = isinstance(binding, relax.MatchCast)
        new.append(
            relax.MatchCast(var, value, binding.ty) if is_cast else relax.VarBinding(var, value)
        )
    return new
