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

from irviz.ir.scoped_names import variables
from irviz.ir.statements import walk
from irviz.model.result import RunResult
from irviz.runtime.inputs import Array, InputError
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
    inputs: Mapping[str, Array] | None = None,
    sizes: Mapping[str, int] | None = None,
) -> RunResult:
    """Return what a PrimFunc writes in one call, as one case; see `measure_prim_func`."""
    return measure_prim_func(mod, name, inputs, sizes).result


def measure_prim_func(
    mod: ir.IRModule,
    name: str,
    inputs: Mapping[str, Array] | None = None,
    sizes: Mapping[str, int] | None = None,
) -> Measured:
    """Build a PrimFunc for `llvm`, call it once, and measure calls for about 0.3 s.

    Buffers without an array in `inputs` get random numbers from a fixed seed, those that are
    written too; `sizes` are the symbolic dimensions that no input tells. Raises InputError for
    wrong inputs, and RunError when it cannot be built, fails, crashes or does not end.
    """
    function = _prim_func(mod, name)
    threads = _threads(function)
    if threads:
        raise RunError(
            f"{name!r} cannot be run on the CPU: its loops are bound to {', '.join(threads)} of a "
            "GPU"
        )
    arrays = _arguments(function, name, inputs or {}, sizes or {})
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
    """Return the names of the symbolic dimensions of a PrimFunc's buffers."""
    found: dict[str, None] = {}
    for param in filter(tirx.is_buffer_var, _prim_func(mod, name).params):
        for size in param.ty.shape:
            found |= dict.fromkeys(str(var.name) for var in variables(size))
    return tuple(found)


def _prim_func(mod: ir.IRModule, name: str) -> tirx.PrimFunc:
    there = {g.name_hint: f for g, f in mod.functions.items() if isinstance(f, tirx.PrimFunc)}
    if name not in there:
        listed = ", ".join(map(repr, sorted(there))) or "none"
        raise InputError(f"there is no PrimFunc {name!r}; there are {listed}")
    return there[name]


def _arguments(
    function: tirx.PrimFunc, name: str, inputs: Mapping[str, Array], sizes: Mapping[str, int]
) -> list[Array | int | float]:
    """Return an argument for each parameter."""
    names = [str(param.name) for param in function.params]
    unknown = [key for key in inputs if key not in names]
    if unknown:
        raise InputError(f"{name!r} has no parameter {unknown[0]!r}; it has {', '.join(names)}")
    known = dict(sizes)
    wrong = [key for key, size in sizes.items() if size < 1]
    if wrong:
        raise InputError(f"the size of {wrong[0]!r} is {sizes[wrong[0]]}: give 1 or more")
    for param in function.params:
        if tirx.is_buffer_var(param) and param.name in inputs:
            _learn(known, param, np.asarray(inputs[param.name]))
    generator = np.random.default_rng(0)
    given: list[Array | int | float] = []
    for param in function.params:
        if param.name in inputs:
            given.append(_fitting(param, inputs[param.name], known))
        elif tirx.is_buffer_var(param):
            given.append(_random(param, _shape(param, known), generator))
        elif param.name in known:
            given.append(known[param.name])
        else:
            is_pointer = isinstance(param.ty, ir.PointerType)
            what = "memory of unknown size" if is_pointer else "a number: give it in inputs"
            raise InputError(f"{str(param.name)!r} of {name!r} is {what}")
    return given


def _learn(known: dict[str, int], param: ir.Var, array: Array) -> None:
    for size, extent in zip(param.ty.shape, array.shape, strict=False):
        if isinstance(size, ir.Var):
            known.setdefault(str(size.name), int(extent))


def _shape(param: ir.Var, known: Mapping[str, int]) -> tuple[int, ...]:
    analyzer, shape = tvm.sym.Analyzer(), list[int]()
    for size in param.ty.shape:
        for var in variables(size):
            if var.name not in known:
                raise InputError(
                    f"{str(param.name)!r} has a symbolic dimension: give a size for "
                    f"{str(var.name)!r}, such as sizes={{{str(var.name)!r}: 128}}"
                )
        number = tvm_ffi.structural_map(
            size, (ir.Var, lambda var: tirx.IntImm(var.ty.dtype, known[var.name]))
        )
        shape.append(int(analyzer.simplify(number)))
    return tuple(shape)


def _fitting(param: ir.Var, value: Array | float, known: Mapping[str, int]) -> Array | int | float:
    if not tirx.is_buffer_var(param):
        return value.item() if isinstance(value, np.generic | np.ndarray) else value
    array, wanted = np.asarray(value), _shape(param, known)
    if array.shape != wanted or str(array.dtype) != str(param.ty.dtype):
        raise InputError(
            f"{param.name!r} is {wanted} {param.ty.dtype}, and the array given for it is "
            f"{array.shape} {array.dtype}"
        )
    return array


def _random(param: ir.Var, shape: tuple[int, ...], generator: np.random.Generator) -> Array:
    dtype = str(param.ty.dtype)
    if dtype == "bool":
        return generator.integers(0, 2, shape).astype(bool)
    if dtype.startswith(("int", "uint")):
        return generator.integers(0, 10, shape).astype(dtype)
    scale = 1 / max(shape[-1], 1) ** 0.5 if len(shape) > 1 else 1.0
    try:
        return (generator.standard_normal(shape) * scale).astype(dtype)
    except TypeError:
        raise InputError(
            f"no value can be made up for {param.name!r} of dtype {dtype}: give one in inputs"
        ) from None


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
