"""Build modules as `tvm.compile` does, with kernels that were compiled before."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

import tvm
import tvm_ffi
from tvm import ir, relax, tirx

from irviz.errors import RunError
from irviz.runtime.local.build_failure import nodes_of
from irviz.runtime.local.kernels import KernelError, can_be_kept, compiled, is_closed
from irviz.runtime.local.python_callees import called_names

Built = tuple[tvm.runtime.Module, Mapping[str, str]]
"""A module that can be run, and the names in there of PrimFuncs that have others."""


def build_relax(mod: ir.IRModule, target: tvm.target.Target) -> Built:
    """Return an executable of the virtual machine; raise what TVM raises, and RunError."""
    if not can_be_kept() or mod.global_infos:
        return tvm.compile(mod, target=target).jit(), {}
    with target:
        lowered = relax.get_pipeline("default")(mod)
    if lowered.attrs:  # which libraries, constants and prefixes of names may be in
        return tvm.compile(lowered, target=target, relax_pipeline=None).jit(), {}
    try:
        kernels = compiled(_keepable(lowered), target)
    except KernelError as failure:
        nodes = ""
        with contextlib.suppress(Exception):  # it is the first error that is said
            nodes = nodes_of(mod, failure.name)
        made_of = f"; it was made of {nodes}" if nodes else ""
        raise RunError(f"{failure}{made_of}") from failure.__cause__
    symbols = {name: kernel.symbol for name, kernel in kernels.items()}
    functions = {
        gvar: relax.ExternFunc(symbols[gvar.name_hint]) if gvar.name_hint in symbols else function
        for gvar, function in lowered.functions.items()
    }
    built = tvm.compile(ir.IRModule(functions), target=target, relax_pipeline=None)
    executable = built.mod  # not jit(): a C compiler would link what has no kernels
    for library in dict.fromkeys(kernel.library for kernel in kernels.values()):
        executable.import_module(library)
    return executable, symbols


def build_prim_funcs(mod: ir.IRModule, target: tvm.target.Target) -> Built:
    """Return a library of PrimFuncs; raise what TVM raises, and RunError."""
    functions = {gvar.name_hint: one for gvar, one in mod.functions.items()}
    if len(functions) != 1 or not can_be_kept() or mod.attrs or not _keepable(mod):
        return tvm.compile(mod, target=target).jit(), {}
    ((name, kernel),) = compiled(functions, target).items()
    return kernel.library, {name: kernel.symbol}


def _keepable(mod: ir.IRModule) -> dict[str, tirx.PrimFunc]:
    """Return the PrimFuncs that call nothing by name, and that only Relax functions call."""
    own = {gvar: one for gvar, one in mod.functions.items() if isinstance(one, tirx.PrimFunc)}
    named, others = set(called_names(mod)), [gvar for gvar in own if not is_closed(own[gvar])]
    waiting, reached = list(others), set(others)
    while waiting:
        callees: list[ir.GlobalVar] = []
        tvm_ffi.structural_walk(own[waiting.pop()].body, (ir.GlobalVar, callees.append))
        new = {one for one in callees if one in own} - reached
        reached |= new
        waiting += new
    return {
        gvar.name_hint: one
        for gvar, one in own.items()
        if gvar not in reached and not {gvar.name_hint, _symbol(one)} & named
    }


def _symbol(function: tirx.PrimFunc) -> str:
    return str(function.attrs.get("global_symbol", "")) if function.attrs else ""
