"""Build modules as `tvm.compile` does, but with cached kernels."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import NamedTuple

import tvm
import tvm_ffi
from tvm import ir, relax, tirx
from tvm.relax.backend import cpu_generic
from tvm.s_tir import dlight
from tvm.s_tir import meta_schedule as ms

from irviz.errors import RunError
from irviz.ir.function_graph import extract
from irviz.ir.module_functions import relax_functions
from irviz.ir.relax_calls import with_callees
from irviz.ir.symbolic_shapes import nbytes
from irviz.ir.tir_statements import parts_of
from irviz.model.graph.graph import Node
from irviz.runtime.kernel_cache import KernelError, can_be_kept, compiled, is_closed
from irviz.units import first_names

# --- How Relax functions are optimised before they are built -------------------------------------


PLAIN = "plain"
BUILDS = (PLAIN, "default", "dlight", "tuned")
"""The kinds of builds, as `RunConfig` says; PrimFuncs are built as they are."""


def optimised(
    mod: ir.IRModule, target: tvm.target.Target, build: str, database: str = ""
) -> ir.IRModule:
    """Return the module optimised for a target; raise RunError, and what TVM raises."""
    if build == PLAIN:
        return mod
    with target:
        mod = tvm.transform.Sequential(_legalizing(target))(mod)
        if build == "dlight":
            return dlight.ApplyDefaultSchedule(dlight.cpu.GEMV(), dlight.cpu.Reduction())(mod)
        return _tuned(mod, database) if build == "tuned" else mod


def _legalizing(target: tvm.target.Target) -> list[tvm.transform.Pass]:
    return [*cpu_generic.library_dispatch_passes(target), *cpu_generic.legalize_passes(target)]


def _tuned(mod: ir.IRModule, database: str) -> ir.IRModule:
    files = ("database_workload.json", "database_tuning_record.json")
    if missing := [name for name in files if not Path(database, name).is_file()]:
        raise RunError(
            f"{database!r} has no {missing[0]}: give the work_dir of "
            "tvm.s_tir.meta_schedule's tuning"
        )
    with ms.database.JSONDatabase(work_dir=database, allow_missing=False):
        return relax.transform.MetaScheduleApplyDatabase()(mod)


def tvm_target(target: str) -> tvm.target.Target:
    """Return TVM's target for one in JSON, or a name such as "llvm"."""
    return tvm.target.Target(json.loads(target) if target.startswith("{") else target)


_LARGE_BYTES = 1 << 20
_CONSTANT = "irviz.constant"
_constants: dict[int, tvm.runtime.Tensor] = {}
"""Large constants of built modules, by number."""
_numbers = count()


class Built(NamedTuple):
    """A module that can be run.

    `symbols` are the names in there of PrimFuncs that have others, `constants` the numbers of the
    large constants, to be released when nothing runs it any more. `is_closed` is whether no kernel
    calls anything by name, so that loading them runs nothing of the module.
    """

    module: tvm.runtime.Module
    symbols: Mapping[str, str]
    constants: Sequence[int] = ()
    is_closed: bool = False


@lru_cache(maxsize=64)
def why_not_confined(mod: ir.IRModule, build: str = PLAIN) -> str:
    """Return why building a module needs trust, "" if it does not.

    A target of its own may have options of LLVM, which can write files, and constant folding runs
    kernels as it builds.
    """
    functions = mod.functions.values()
    has_targets = any(
        parts_of(one, tvm.target.Target) or (one.attrs and "target" in one.attrs)
        for one in functions
    )
    if has_targets or mod.global_infos:
        return "it has targets of its own"
    if mod.attrs:
        return "the module has attributes"
    return f"build={build!r} folds constants" if build != PLAIN else ""


def build_relax(mod: ir.IRModule, target: tvm.target.Target) -> Built:
    """Return an executable of the virtual machine; raise what TVM raises, and RunError."""
    if not can_be_kept() or mod.global_infos:
        return Built(tvm.compile(mod, target=target).jit(), {})
    with target:
        lowered = relax.get_pipeline("default")(mod)
    if lowered.attrs:  # which libraries, constants and prefixes of names may be in
        return Built(tvm.compile(lowered, target=target, relax_pipeline=None).jit(), {})
    try:
        kernels = compiled(_keepable(lowered), target)
    except KernelError as failure:
        nodes = ""
        with contextlib.suppress(Exception):  # it is the first error that is said
            nodes = nodes_of(mod, failure.name, target)
        made_of = f"; it was made of {nodes}" if nodes else ""
        raise RunError(f"{failure}{made_of}") from failure.__cause__
    symbols = {name: kernel.symbol for name, kernel in kernels.items()}
    renamed = {_symbol(lowered[name]): symbol for name, symbol in symbols.items()}
    numbers: list[int] = []
    functions = {
        gvar: relax.ExternFunc(symbols[gvar.name_hint])
        if gvar.name_hint in symbols
        else _linked(function, renamed, numbers)
        for gvar, function in lowered.functions.items()
    }
    built = tvm.compile(ir.IRModule(functions), target=target, relax_pipeline=None)
    executable = built.mod  # not jit(): a C compiler would link what has no kernels
    for library in dict.fromkeys(kernel.library for kernel in kernels.values()):
        executable.import_module(library)
    others = any(isinstance(one, tirx.PrimFunc) for one in functions.values())
    return Built(executable, symbols, numbers, is_closed=not others)


def release_constants(numbers: Sequence[int]) -> None:
    """Forget the large constants of a built module."""
    for number in numbers:
        _constants.pop(number, None)


def build_prim_funcs(mod: ir.IRModule, target: tvm.target.Target) -> Built:
    """Return a library of PrimFuncs; raise what TVM raises, and RunError."""
    functions = {gvar.name_hint: one for gvar, one in mod.functions.items()}
    if len(functions) != 1 or not can_be_kept() or mod.attrs or not _keepable(mod):
        return Built(tvm.compile(mod, target=target).jit(), {})
    ((name, kernel),) = compiled(functions, target).items()
    return Built(kernel.library, {name: kernel.symbol}, is_closed=True)


def _keepable(mod: ir.IRModule) -> dict[str, tirx.PrimFunc]:
    """Return the PrimFuncs that call nothing by name, and that only Relax functions call."""
    # not by `prim_funcs`, which keeps the module, and with it its constants
    items = ((gvar.name_hint, one) for gvar, one in mod.functions.items())
    own = {name: one for name, one in items if isinstance(one, tirx.PrimFunc)}
    texts = (text for one in mod.functions.values() for text in parts_of(one, ir.StringImm))
    named = {str(text.value) for text in texts}  # which may be names that are called
    others = with_callees(mod, [name for name, one in own.items() if not is_closed(one)])
    called = named | {gvar.name_hint for gvar in others}
    return {name: one for name, one in own.items() if not {name, _symbol(one)} & called}


def _symbol(function: tirx.PrimFunc) -> str:
    return str(function.attrs.get("global_symbol", "")) if function.attrs else ""


def _linked(function: ir.Expr, names: Mapping[str, str], numbers: list[int]) -> ir.Expr:
    """Rename the callees of a lowered function, and let it ask for its large constants by number.

    The numbers are added to others. TVM's code generator hashes all bytes of what it puts into an
    executable.
    """
    if not isinstance(function, relax.Function) or not isinstance(function.body, relax.SeqExpr):
        return function
    asked = dict[int, tuple[relax.Var, relax.VarBinding]]()

    def renamed(callee: relax.ExternFunc) -> relax.ExternFunc:
        new = names.get(str(callee.global_symbol))
        return callee if new is None else relax.ExternFunc(new)

    def replaced(constant: ir.GenericConst) -> ir.Expr:
        tensor = constant.value
        if not isinstance(tensor, tvm.runtime.Tensor):
            return constant
        if nbytes(tuple(map(int, tensor.shape)), tensor.dtype) < _LARGE_BYTES:
            return constant
        address = tensor.__chandle__()
        if address not in asked:
            number, var = next(_numbers), relax.Var("constant", constant.ty)
            _constants[number] = tensor
            numbers.append(number)
            call = ir.Call(
                relax.ExternFunc(_CONSTANT), [relax.prim_value(number)], ty_args=[constant.ty]
            )
            asked[address] = var, relax.VarBinding(var, call)
        return asked[address][0]

    changes = ((relax.ExternFunc, renamed), (ir.GenericConst, replaced))
    body = tvm_ffi.structural_map(function.body, changes)
    first = [relax.BindingBlock([binding for _, binding in asked.values()])] if asked else []
    body = relax.SeqExpr([*first, *body.blocks], body.body)
    return relax.Function(function.params, body, function.ret_ty, function.is_pure, function.attrs)


tvm.register_global_func(_CONSTANT, _constants.__getitem__, override=True)


# --- The nodes that became a PrimFunc, for the error of one that cannot be built ------------------


_MOST_NODES = 3


def nodes_of(mod: ir.IRModule, prim_func: str, target: tvm.target.Target) -> str:
    """Return the nodes that call a PrimFunc once TVM has made it, such as "lv (relax.add)".

    They are those of the module, with its operators; "" where none is known.
    """
    before = {node.id: node.callee for node in _nodes(mod)}
    lowered = mod
    for step in (None, *_legalizing(target)):
        with target:
            lowered = lowered if step is None else step(lowered)
        found = [node.id for node in _nodes(lowered) if node.callee == prim_func]
        if found:
            names = [f"{one} ({before[one]})" if one in before else str(one) for one in found]
            return first_names(names, _MOST_NODES)
    return ""


def _nodes(mod: ir.IRModule) -> Iterator[Node]:
    for function in relax_functions(mod):
        yield from extract(mod, function).nodes
