"""Run one PrimFunc of a module on the CPU, in the worker, and measure how long a call takes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass

import cloudpickle
import numpy as np
import tvm
import tvm_ffi
from tvm import ir, s_tir, tirx

from irviz.ir.fit import Argument
from irviz.ir.sizes import parameter_types
from irviz.ir.sizes import symbolic_sizes as sizes_of
from irviz.ir.statements import walk
from irviz.model.result import RunResult
from irviz.runtime.inputs import InputError, Inputs, plan_inputs
from irviz.runtime.made_up import RANDOM
from irviz.runtime.run import RunError, said
from irviz.worker.pool import TRIES, CrashedError, TimedOutError

SECONDS = 30.0
"""How long building and running may take."""
_BUDGET = 0.3
"""How many seconds of calls a measurement may take, where one call takes less."""
_ROUNDS = 10
_ROUND = 0.5 * _BUDGET / _ROUNDS


@dataclass(frozen=True)
class PrimFuncTime:
    """How many seconds a call takes: the median of some rounds, the shortest and the longest."""

    median: float
    low: float
    high: float
    rounds: int


@dataclass(frozen=True, eq=False)
class Measured:
    """What a PrimFunc wrote when it was called once, and how long calls of it take."""

    result: RunResult
    time: PrimFuncTime


def run_prim_func(
    mod: ir.IRModule,
    name: str,
    inputs: Inputs = None,
    sizes: Mapping[str, int] | None = None,
    seed: int = 0,
) -> RunResult:
    """Return what a PrimFunc writes in one call, as one case; see `measure_prim_func`."""
    return measure_prim_func(mod, name, inputs, sizes, seed).result


def measure_prim_func(
    mod: ir.IRModule,
    name: str,
    inputs: Inputs = None,
    sizes: Mapping[str, int] | None = None,
    seed: int = 0,
) -> Measured:
    """Build a PrimFunc for `llvm`, call it once, and measure calls for about 0.3 s.

    Buffers without a value in `inputs` get random numbers, those that are written too; `sizes`
    are the symbolic dimensions that no input tells. What inputs and sizes may be, `argument_lists`
    says. Raises InputError or MisfitError for wrong ones, and RunError when it cannot be built,
    fails, crashes or does not end.
    """
    function = _prim_func(mod, name)
    threads = _threads(function)
    if threads:
        raise RunError(
            f"{name!r} cannot be run on the CPU: its loops are bound to {', '.join(threads)} of a "
            "GPU"
        )
    arrays = _arguments(function, name, inputs, sizes or {}, seed)
    written = _written(function)
    sent = cloudpickle.dumps((_with_callees(mod, name), name, arrays, written))
    try:
        return TRIES.call(_measure, sent, seconds=SECONDS)
    except CrashedError as failure:
        raise RunError(
            f"{name!r} cannot be run: {failure}. It may read or write outside of its buffers"
        ) from None
    except TimedOutError as failure:
        raise RunError(
            f"{name!r} cannot be run: {failure}. It may never end, or be too large to build"
        ) from None


def symbolic_sizes(mod: ir.IRModule, name: str) -> tuple[str, ...]:
    """Return the names of a PrimFunc's symbolic dimensions, and of its whole numbers."""
    return sizes_of(_prim_func(mod, name))


def own_inputs(function: tirx.PrimFunc, inputs: Inputs) -> Inputs:
    """Return what of a session's inputs is a PrimFunc's, by the names of its parameters.

    The others are random, unless one word stands for all.
    """
    if isinstance(inputs, str):
        return inputs
    named = inputs if isinstance(inputs, Mapping) else {}
    return {name: named.get(name, RANDOM) for name in parameter_types(function)}


def _prim_func(mod: ir.IRModule, name: str) -> tirx.PrimFunc:
    there = {g.name_hint: f for g, f in mod.functions.items() if isinstance(f, tirx.PrimFunc)}
    if name not in there:
        listed = ", ".join(map(repr, sorted(there))) or "none"
        raise InputError(f"there is no PrimFunc {name!r}; there are {listed}")
    return there[name]


def _arguments(
    function: tirx.PrimFunc, name: str, inputs: Inputs, sizes: Mapping[str, int], seed: int
) -> list[Argument]:
    """Return an argument for each parameter."""
    types = parameter_types(function)
    pointers = [each for each, type_ in types.items() if isinstance(type_, ir.PointerType)]
    if pointers:
        raise InputError(f"{pointers[0]!r} of {name!r} is memory of unknown size")
    given = {**dict.fromkeys(types, RANDOM), **inputs} if isinstance(inputs, Mapping) else inputs
    plan = plan_inputs(function, given, {}, seed=seed, sizes=sizes)
    if plan.cases > 1:
        raise InputError(f"there are {plan.cases} cases, and {name!r} is called once: give one")
    return plan.argument_lists()[0]


def _written(function: tirx.PrimFunc) -> list[int]:
    """Return the numbers of the parameters that are written, of all buffers if none is seen."""
    written: set[ir.Var] = set()
    for stmt, _ in walk(function.body):
        if isinstance(stmt, s_tir.SBlockRealize):
            written.update(region.source for region in stmt.block.writes)
        elif isinstance(stmt, tirx.BufferStore):
            written.add(stmt.buffer)
    buffers = [n for n, param in enumerate(function.params) if tirx.is_buffer_var(param)]
    return [n for n in buffers if function.params[n] in written] or buffers


def _threads(function: tirx.PrimFunc) -> list[str]:
    bound = [s.thread_binding for s, _ in walk(function.body) if isinstance(s, tirx.For)]
    return list(dict.fromkeys(str(each.thread_tag) for each in bound if each is not None))


def _with_callees(mod: ir.IRModule, name: str) -> ir.IRModule:
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


def _measure(sent: bytes) -> Measured:
    """Build, run and measure; the worker calls this."""
    mod, name, values, written = cloudpickle.loads(sent)
    try:
        library = tvm.compile(mod, target="llvm").jit()
        function = library[name]
    except Exception as failure:  # TVM raises what its C++ side threw, of any class
        raise RunError(f"{name!r} could not be built for the CPU: {said(failure)}") from None
    arguments = [
        tvm.runtime.tensor(value) if isinstance(value, np.ndarray) else value for value in values
    ]
    try:
        function(*arguments)
        outputs = tuple(arguments[number].numpy()[np.newaxis] for number in written)
        start = time.perf_counter()
        function(*arguments)
        once = max(time.perf_counter() - start, 1e-9)
        rounds = int(min(max(_BUDGET // once, 1), _ROUNDS))
        number = int(max(_ROUND // once, 1))
        timer = library.time_evaluator(name, tvm.cpu(), number=number, repeat=rounds)
        seconds = list(timer(*arguments).results)
    except Exception as failure:
        raise RunError(f"{name!r} failed as it ran: {said(failure)}") from None
    median = statistics.median(seconds)
    time_ = PrimFuncTime(median, min(seconds), max(seconds), rounds)
    return Measured(RunResult(outputs, median), time_)
