"""Run a function of a module, for its results, its trace or its time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from tvm import ir, tirx

from irviz.errors import InputError
from irviz.ir.check_arguments import Argument
from irviz.ir.module_functions import function_named
from irviz.ir.symbolic_shapes import parameter_types
from irviz.model.runs.run_result import RunResult
from irviz.runtime.argument_lists import CallInputs, Cases
from irviz.runtime.local.build_module import PLAIN
from irviz.runtime.local.python_callees import python_callees
from irviz.runtime.local.run_errors import error_summary
from irviz.runtime.local.trace_recorder import TraceRequest
from irviz.runtime.prim_func_call import PreparedCall, prim_func_call
from irviz.runtime.run_config import RunConfig
from irviz.runtime.run_function import CalledFunction, Job, run_job
from irviz.runtime.run_in_worker import module_key, perform
from irviz.runtime.time_in_turn import BUDGET, ROUNDS, TimedCall, time_in_turn
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
    inputs: CallInputs | Cases | None = None,
    *,
    trace: TraceRequest | None = None,
    config: RunConfig | None = None,
    on_progress: OnProgress | None = None,
) -> RunResult:
    """Build the module for `llvm` and call the function on a CPU, once per case.

    A PrimFunc is called alone, with inputs matched by its parameters' names and random numbers for
    the others. It has no labels and no trace; its outputs are the buffers it writes. If
    one call is short and calls no Python function, its time is the median of more calls.

    The last sixteen built modules are kept. Times are measured on the machine that runs the
    function; on another machine they include the transfer if a call takes 0.1 s or more, or is
    impure.

    Args:
        inputs: The inputs, or the arguments of each case; random values by default.
        trace: Also record a trace of one case.
        on_progress: Gets a message for each phase.

    Raises:
        RunError: TVM cannot build or run the function, it crashed or exceeded a limit, or the
            other machine cannot be reached.
        InputError: The inputs do not fit the function; TypeMismatchError for shape or dtype.
    """
    inputs, config = inputs or CallInputs(), config or RunConfig()
    is_prim = _is_prim_func(mod, function)
    if is_prim and trace is not None:
        raise InputError(
            f"{function!r} is a PrimFunc, which has no bindings: trace a Relax function"
        )
    callee, call = _prepare(mod, function, inputs, config)
    _check_case(len(call.cases), trace.case if trace else 0)
    if trace is not None and config.where.remote is not None:
        raise InputError(
            f"a trace needs this machine, because values are not reported from "
            f"{config.where.remote}: run without device, or without a trace"
        )
    job = Job(callee, call.cases, trace, is_prim and bool(python_callees(call.module)))
    work = partial(run_job, job)
    result = perform(work, {callee.key: call.module}, function, config, on_progress)
    result = replace(result, is_confined=callee.where.is_confined)
    if is_prim:
        return replace(result, labels=None, build=PLAIN)
    labels = None if isinstance(inputs, Cases) else inputs.labels
    return replace(result, labels=labels, build=callee.where.recipe.kind)


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
    """Time a function in several modules alternately; return the seconds per round and module.

    The arguments are those of `run`, and `config.clock` says whose clock measures; errors are too.

    Args:
        case: The case to time.
        names: The names of the modules, for errors.
        rounds: The number of rounds; fewer, but at least six, where calls are long.
        seconds: About how long all calls together take.
    """
    if rounds < 1:
        raise InputError(f"there are {rounds} rounds: give 1 or more")
    inputs, config = inputs or CallInputs(), config or RunConfig()
    labels = names or [f"module {number} of {len(mods)}" for number in range(1, len(mods) + 1)]
    work, by_key, made = [], {}, dict[str, list[Argument]]()
    for mod, name in zip(mods, labels, strict=True):
        try:
            callee, call = _prepare(mod, function, inputs, config)
            _check_case(len(call.cases), case)
        except ValueError as failure:
            raise type(failure)(f"{name}: {failure}") from None
        arguments = call.cases[case]
        if call.parameters:  # PrimFuncs with the same ones share arguments, which are sent once
            arguments = made.setdefault(call.parameters, arguments)
        work.append(TimedCall(callee, arguments, name))
        by_key[callee.key] = call.module
    timing = partial(time_in_turn, work, rounds=rounds, budget=seconds)
    return perform(timing, by_key, function, config, on_progress)


def _prepare(
    mod: ir.IRModule, function: str, inputs: CallInputs | Cases, config: RunConfig
) -> tuple[CalledFunction, PreparedCall]:
    if not _is_prim_func(mod, function):
        callee = CalledFunction(module_key(mod), function, config.where)
        cases = inputs if isinstance(inputs, Cases) else inputs.cases(mod, function)
        return callee, PreparedCall(mod, cases)
    if isinstance(inputs, Cases):
        by_name = dict(zip(parameter_types(mod[function]), inputs[0], strict=True))
        inputs = CallInputs(by_name)
    call = prim_func_call(mod, function, inputs.inputs, inputs.sizes, inputs.seed)
    key = f"{module_key(mod)}, {function}"
    return CalledFunction(key, function, config.where, call.written), call


def _is_prim_func(mod: ir.IRModule, function: str) -> bool:
    return isinstance(function_named(mod, function), tirx.PrimFunc)


def _check_case(cases: int, case: int) -> None:
    if not 0 <= case < cases:
        raise InputError(f"there is no case {case}: give one of 0 to {cases - 1}")
