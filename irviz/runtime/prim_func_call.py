"""Prepare a call of a PrimFunc alone: its module, its arguments, and which of them it writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import tvm_ffi
from tvm import ir, s_tir, tirx

from irviz.errors import InputError, RunError
from irviz.ir.statements import walk_statements
from irviz.ir.symbolic_shapes import parameter_types
from irviz.ir.symbolic_shapes import symbolic_sizes as sizes_of
from irviz.runtime.argument_lists import Cases, Inputs, plan_inputs
from irviz.runtime.synthetic_inputs import RANDOM


class PreparedCall(NamedTuple):
    """The module that a call of a function needs, and the arguments of each case.

    `written` are the indices of the arguments that a PrimFunc writes, None for a Relax function.
    `parameters` are the names and types of a PrimFunc's parameters as text: calls with equal ones
    may share their arguments.
    """

    module: ir.IRModule
    cases: Cases
    written: tuple[int, ...] | None = None
    parameters: str = ""


def prim_func_call(
    mod: ir.IRModule, name: str, inputs: Inputs, sizes: Mapping[str, int], seed: int
) -> PreparedCall:
    """Return a call of a PrimFunc alone, for one case.

    Inputs are matched by its parameters' names; other buffers, including those it writes, get
    random numbers. Raises InputError or TypeMismatchError for inputs that do not fit, and RunError
    for a function that is scheduled for a GPU.
    """
    function = prim_func(mod, name)
    loops = (stmt for stmt, _ in walk_statements(function.body) if isinstance(stmt, tirx.For))
    bound = (loop.thread_binding for loop in loops)
    threads = dict.fromkeys(str(each.thread_tag) for each in bound if each is not None)
    if threads:
        raise RunError(
            f"{name!r} cannot be run on the CPU: its loops are bound to {', '.join(threads)} of a "
            "GPU"
        )
    types = parameter_types(function)
    pointers = [each for each, type_ in types.items() if isinstance(type_, ir.PointerType)]
    if pointers:
        raise InputError(f"{pointers[0]!r} of {name!r} is a pointer to memory of unknown size")
    plan = plan_inputs(function, own_inputs(function, inputs), {}, seed=seed, sizes=sizes)
    if plan.cases > 1:
        raise InputError(f"there are {plan.cases} cases, and {name!r} is called once: give one")
    parameters = ", ".join(f"{each!r}: {type_}" for each, type_ in types.items())
    written = written_parameters(function)
    return PreparedCall(with_callees(mod, name), plan.argument_lists(), written, parameters)


def prim_func(mod: ir.IRModule, name: str) -> tirx.PrimFunc:
    """Return the PrimFunc of this name; raise InputError, listing the known names."""
    there = {g.name_hint: f for g, f in mod.functions.items() if isinstance(f, tirx.PrimFunc)}
    if name not in there:
        listed = ", ".join(map(repr, sorted(there))) or "none"
        raise InputError(f"there is no PrimFunc {name!r}; there are {listed}")
    return there[name]


def prim_func_sizes(mod: ir.IRModule, name: str) -> tuple[str, ...]:
    """Return the names of a PrimFunc's symbolic dimensions and integer parameters."""
    return sizes_of(prim_func(mod, name))


def own_inputs(function: tirx.PrimFunc, inputs: Inputs) -> Inputs:
    """Return the inputs that have the names of a PrimFunc's parameters, "random" for the rest.

    A single word applies to all parameters.
    """
    if isinstance(inputs, str):
        return inputs
    named = inputs if isinstance(inputs, Mapping) else {}
    return {name: named.get(name, RANDOM) for name in parameter_types(function)}


def written_parameters(function: tirx.PrimFunc) -> tuple[int, ...]:
    """Return the indices of the parameters that are written, of all buffers if none is found."""
    found: set[ir.Var] = set()
    for stmt, _ in walk_statements(function.body):
        if isinstance(stmt, s_tir.SBlockRealize):
            found.update(region.source for region in stmt.block.writes)
        elif isinstance(stmt, tirx.BufferStore):
            found.add(stmt.buffer)
    buffers = tuple(n for n, param in enumerate(function.params) if tirx.is_buffer_var(param))
    return tuple(n for n in buffers if function.params[n] in found) or buffers


def with_callees(mod: ir.IRModule, name: str) -> ir.IRModule:
    """Return a module of a PrimFunc, with its name exported, and its callees."""
    found: dict[ir.GlobalVar, tirx.PrimFunc] = {}
    waiting = [mod.get_global_var(name)]
    while waiting:
        gvar = waiting.pop()
        if gvar not in found and isinstance(mod[gvar], tirx.PrimFunc):
            found[gvar] = mod[gvar]
            tvm_ffi.structural_walk(mod[gvar].body, (ir.GlobalVar, waiting.append))
    root = mod.get_global_var(name)  # private functions stay private
    return ir.IRModule({**found, root: found[root].with_attr("global_symbol", name)})
