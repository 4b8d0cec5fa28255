"""A PrimFunc by itself: the module that it needs, what it is called with, and what it writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import tvm_ffi
from tvm import ir, s_tir, tirx

from irviz.ir.fit import Argument
from irviz.ir.sizes import parameter_types
from irviz.ir.sizes import symbolic_sizes as sizes_of
from irviz.ir.statements import walk
from irviz.runtime.inputs import InputError, Inputs, plan_inputs
from irviz.runtime.machine import RunError
from irviz.runtime.made_up import RANDOM


@dataclass(frozen=True, eq=False)
class Lone:
    """A module of a PrimFunc and of those it calls, and an argument for each parameter.

    `written` are the numbers of the arguments that it writes, which are its outputs; `signature`
    has the names and types of its parameters: what are alike get the same arguments.
    """

    module: ir.IRModule
    arguments: list[Argument]
    written: tuple[int, ...]
    signature: str


def lone(mod: ir.IRModule, name: str, inputs: Inputs, sizes: Mapping[str, int], seed: int) -> Lone:
    """Return what it takes to call a PrimFunc by itself, for one case.

    Of the inputs it takes those of its parameters' names; other buffers get random numbers, those
    that are written too. Raises InputError or MisfitError for wrong ones, and RunError for one
    that is written for a GPU.
    """
    function = prim_func(mod, name)
    threads = _threads(function)
    if threads:
        raise RunError(
            f"{name!r} cannot be run on the CPU: its loops are bound to {', '.join(threads)} of a "
            "GPU"
        )
    arguments = _arguments(function, name, own_inputs(function, inputs), sizes, seed)
    types = parameter_types(function).items()
    signature = ", ".join(f"{each!r}: {type_}" for each, type_ in types)
    return Lone(with_callees(mod, name), arguments, written(function), signature)


def prim_func(mod: ir.IRModule, name: str) -> tirx.PrimFunc:
    """Return the PrimFunc of this name; raise InputError with the names that there are."""
    there = {g.name_hint: f for g, f in mod.functions.items() if isinstance(f, tirx.PrimFunc)}
    if name not in there:
        listed = ", ".join(map(repr, sorted(there))) or "none"
        raise InputError(f"there is no PrimFunc {name!r}; there are {listed}")
    return there[name]


def symbolic_sizes(mod: ir.IRModule, name: str) -> tuple[str, ...]:
    """Return the names of a PrimFunc's symbolic dimensions, and of its whole numbers."""
    return sizes_of(prim_func(mod, name))


def own_inputs(function: tirx.PrimFunc, inputs: Inputs) -> Inputs:
    """Return what of a session's inputs is a PrimFunc's, by the names of its parameters.

    The others are random, unless one word stands for all.
    """
    if isinstance(inputs, str):
        return inputs
    named = inputs if isinstance(inputs, Mapping) else {}
    return {name: named.get(name, RANDOM) for name in parameter_types(function)}


def written(function: tirx.PrimFunc) -> tuple[int, ...]:
    """Return the numbers of the parameters that are written, of all buffers if none is seen."""
    found: set[ir.Var] = set()
    for stmt, _ in walk(function.body):
        if isinstance(stmt, s_tir.SBlockRealize):
            found.update(region.source for region in stmt.block.writes)
        elif isinstance(stmt, tirx.BufferStore):
            found.add(stmt.buffer)
    buffers = tuple(n for n, param in enumerate(function.params) if tirx.is_buffer_var(param))
    return tuple(n for n in buffers if function.params[n] in found) or buffers


def with_callees(mod: ir.IRModule, name: str) -> ir.IRModule:
    """Return a module of a PrimFunc, as one to be called from outside, and of those it calls."""
    found: dict[ir.GlobalVar, tirx.PrimFunc] = {}
    waiting = [mod.get_global_var(name)]
    while waiting:
        gvar = waiting.pop()
        if gvar not in found and isinstance(mod[gvar], tirx.PrimFunc):
            found[gvar] = mod[gvar]
            tvm_ffi.structural_walk(mod[gvar].body, (ir.GlobalVar, waiting.append))
    root = mod.get_global_var(name)  # the others stay private where they are
    return ir.IRModule({**found, root: found[root].with_attr("global_symbol", name)})


def _arguments(
    function: tirx.PrimFunc, name: str, inputs: Inputs, sizes: Mapping[str, int], seed: int
) -> list[Argument]:
    """Return an argument for each parameter."""
    types = parameter_types(function)
    pointers = [each for each, type_ in types.items() if isinstance(type_, ir.PointerType)]
    if pointers:
        raise InputError(f"{pointers[0]!r} of {name!r} is memory of unknown size")
    plan = plan_inputs(function, inputs, {}, seed=seed, sizes=sizes)
    if plan.cases > 1:
        raise InputError(f"there are {plan.cases} cases, and {name!r} is called once: give one")
    return plan.argument_lists()[0]


def _threads(function: tirx.PrimFunc) -> list[str]:
    bound = [s.thread_binding for s, _ in walk(function.body) if isinstance(s, tirx.For)]
    return list(dict.fromkeys(str(each.thread_tag) for each in bound if each is not None))
