"""Run a function of a module, for its results, its trace or its time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from tvm import ir, tirx

from irviz.errors import InputError
from irviz.ir.functions import function_named
from irviz.ir.shapes.type_check import Argument
from irviz.model.runs.run_result import RunResult
from irviz.runtime.executor import RunConfig, module_key, perform
from irviz.runtime.inputs.call_inputs import CallInputs
from irviz.runtime.inputs.prim_func_call import PrimFuncCall, prim_func_call
from irviz.runtime.jobs.job import Job, run_job
from irviz.runtime.jobs.measure import BUDGET, ROUNDS, TimedCall, time_in_turn
from irviz.runtime.jobs.prim_func_job import PrimFuncJob, run_prim_func_job
from irviz.runtime.local.python_callees import python_callees
from irviz.runtime.local.trace_recorder import TraceRequest
from irviz.runtime.local.vm import error_summary
from irviz.worker.supervisor import OnProgress

__all__ = [
    "CallInputs",
    "RunConfig",
    "TraceRequest",
    "error_summary",
    "measure",
    "run",
]


def run(
    mod: ir.IRModule,
    function: str = "main",
    inputs: CallInputs | None = None,
    *,
    trace: TraceRequest | None = None,
    config: RunConfig | None = None,
    on_progress: OnProgress | None = None,
) -> RunResult:
    """Build the module for `llvm` and call the function on a CPU, once for each case.

    A PrimFunc is called by itself, with the inputs that have its parameters' names and random
    numbers for the others. It has one case, no labels and no trace; its outputs are the buffers
    it writes. If one call is short and calls no Python function, its time is the median of more
    calls.

    The last sixteen built modules are kept. Times are measured on the machine that runs the
    function; on another machine they include the transfer if a call takes 0.1 s or more, or is
    impure.

    Args:
        mod: The module.
        function: The name of a Relax function or a PrimFunc.
        inputs: What to call it with; random values by default.
        trace: Also record a trace of one case.
        config: Where to run, and the limits.
        on_progress: Gets a message for each phase.

    Raises:
        RunError: TVM cannot build or run the function, it crashed or exceeded a limit, or the
            other machine cannot be reached.
        InputError: The inputs do not fit the function; TypeMismatchError for shape or dtype.
    """
    inputs, config = inputs or CallInputs(), config or RunConfig()
    if _is_prim_func(mod, function):
        return _run_prim_func(mod, function, inputs, trace, config, on_progress)
    where, cases = config.where, inputs.cases(mod, function)
    _check_case(cases, trace.case if trace else 0)
    if trace is not None and where.remote is not None:
        raise InputError(
            f"a trace needs this machine, because values are not reported from {where.remote}: "
            "run without device, or without a trace"
        )
    job = Job(module_key(mod), function, cases, trace, where)
    work = partial(run_job, job)
    result = perform(work, {job.key: mod}, function, config, on_progress)
    return replace(result, labels=inputs.labels)


def measure(
    mods: Sequence[ir.IRModule],
    function: str = "main",
    inputs: CallInputs | None = None,
    *,
    case: int = 0,
    names: Sequence[str] = (),
    rounds: int = ROUNDS,
    seconds: float = BUDGET,
    config: RunConfig | None = None,
    on_progress: OnProgress | None = None,
) -> list[tuple[float, ...]]:
    """Time a function in several modules, in turn; return the seconds of each round per module.

    Args:
        mods: The modules.
        function: The name of a Relax function, or of a PrimFunc, which is called by itself.
        inputs: What to call it with; random values by default.
        case: The case to time.
        names: The names of the modules, for errors.
        rounds: The number of rounds; fewer, but at least six, where calls are long.
        seconds: About how long all calls together take.
        config: Where to run (`config.clock` says whose clock measures), and the limits.
        on_progress: Gets a message for each phase.

    Raises:
        RunError: As `run` raises it, and so InputError and TypeMismatchError.
    """
    if rounds < 1:
        raise InputError(f"there are {rounds} rounds: give 1 or more")
    inputs, config = inputs or CallInputs(), config or RunConfig()
    labels = names or [f"module {number} of {len(mods)}" for number in range(1, len(mods) + 1)]
    work, by_key, made = [], {}, dict[str, list[Argument]]()
    for mod, name in zip(mods, labels, strict=True):
        try:
            one, sent = _timed(mod, function, inputs, case, config, made)
        except ValueError as failure:
            raise type(failure)(f"{name}: {failure}") from None
        work.append(replace(one, name=name))
        by_key[one.key] = sent
    timing = partial(time_in_turn, work, rounds=rounds, budget=seconds)
    return perform(timing, by_key, function, config, on_progress)


def _timed(
    mod: ir.IRModule,
    function: str,
    inputs: CallInputs,
    case: int,
    config: RunConfig,
    made: dict[str, list[Argument]],
) -> tuple[TimedCall, ir.IRModule]:
    """Return the call to time and its module.

    PrimFuncs with the same parameters share the arguments in `made`, which are then sent once.
    """
    if not _is_prim_func(mod, function):
        cases = inputs.cases(mod, function)
        _check_case(cases, case)
        return TimedCall(module_key(mod), function, cases[case], where=config.where), mod
    _check_case([inputs], case)
    key, prim_func = _prim_func_call(mod, function, inputs)
    arguments = made.setdefault(prim_func.parameters, prim_func.arguments)
    work = TimedCall(key, function, arguments, where=config.where, is_prim=True)
    return work, prim_func.module


def _run_prim_func(
    mod: ir.IRModule,
    function: str,
    inputs: CallInputs,
    trace: TraceRequest | None,
    config: RunConfig,
    on_progress: OnProgress | None,
) -> RunResult:
    if trace is not None:
        raise InputError(
            f"{function!r} is a PrimFunc, which has no bindings: trace a Relax function"
        )
    key, prim_func = _prim_func_call(mod, function, inputs)
    is_once = bool(python_callees(prim_func.module))
    job = PrimFuncJob(key, function, prim_func.arguments, prim_func.written, is_once, config.where)
    work = partial(run_prim_func_job, job)
    return perform(work, {key: prim_func.module}, function, config, on_progress)


def _prim_func_call(
    mod: ir.IRModule, function: str, inputs: CallInputs
) -> tuple[str, PrimFuncCall]:
    """Return a PrimFunc as a call by itself, and the key of its module."""
    prim_func = prim_func_call(mod, function, inputs.inputs, inputs.sizes, inputs.seed)
    return f"{module_key(mod)}, {function}", prim_func


def _is_prim_func(mod: ir.IRModule, function: str) -> bool:
    return isinstance(function_named(mod, function), tirx.PrimFunc)


def _check_case(cases: Sequence[object], case: int) -> None:
    if not 0 <= case < len(cases):
        raise InputError(f"there is no case {case}: give one of 0 to {len(cases) - 1}")
