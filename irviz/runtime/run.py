"""Run a function of a module, for its results, its trace or its time."""

from __future__ import annotations

import contextlib
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import count
from typing import NamedTuple, TypeVar, get_args

from tvm import ir, s_tir, tirx

from irviz.errors import CancelledRunError, InputError, RunError, error_summary
from irviz.ir.module_functions import function_named
from irviz.ir.parameter_values import Argument
from irviz.ir.relax_calls import with_callees
from irviz.ir.symbolic_shapes import parameter_types
from irviz.ir.tir_statements import parts_of, walk_statements
from irviz.model.runs.run_result import RunResult
from irviz.runtime import kernel_cache, run_jobs
from irviz.runtime.build_module import PLAIN
from irviz.runtime.call_inputs import CallInputs, Cases, Inputs
from irviz.runtime.kv_caches import cache_in
from irviz.runtime.local_vm import remembered
from irviz.runtime.module_serialization import (
    CalleeNotSentError,
    pack_callees,
    pack_module,
    python_callees,
)
from irviz.runtime.run_config import RunConfig, check_limits, check_place
from irviz.runtime.trace_recorder import TraceRequest
from irviz.worker import shared_arrays, supervisor
from irviz.worker.responses import answer_type
from irviz.worker.sandbox import default_memory_limit

__all__ = ["CallInputs", "Inputs", "RunConfig", "TraceRequest", "measure", "run"]
supervisor.load_ahead(run_jobs.__name__)


def run(
    mod: ir.IRModule,
    function: str = "main",
    inputs: CallInputs | Cases | None = None,
    *,
    trace: TraceRequest | None = None,
    config: RunConfig | None = None,
    on_progress: supervisor.OnProgress | None = None,
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
    call = _prepare(mod, function, inputs, config)
    callee, is_prim = call.callee, call.callee.written is not None
    if is_prim and trace is not None:
        raise InputError(
            f"{function!r} is a PrimFunc, which has no bindings: trace a Relax function"
        )
    _check_case(len(call.cases), trace.case if trace else 0)
    if trace is not None and config.remote is not None:
        raise InputError(
            f"a trace needs this machine, because values are not reported from "
            f"{config.remote}: run without device, or without a trace"
        )
    if config.remote is not None and any(map(cache_in, call.cases)):
        raise InputError(
            f"{function!r} takes a cache, which is made on this machine alone: run without device"
        )
    job = run_jobs.Job(callee, call.cases, trace, is_prim and bool(python_callees(call.module)))
    work = partial(run_jobs.run_job, job)
    result = perform(work, {callee.key: call.module}, function, config, on_progress)
    labels = None if is_prim or isinstance(inputs, Cases) else inputs.labels
    build = PLAIN if is_prim else config.build
    return replace(result, labels=labels, build=build, is_confined=config.confine)


def measure(
    mods: Sequence[ir.IRModule],
    function: str = "main",
    inputs: CallInputs | None = None,
    *,
    case: int = 0,
    names: Sequence[str] = (),
    rounds: int = run_jobs.ROUNDS,
    seconds: float = run_jobs.BUDGET,
    config: RunConfig | None = None,
    on_progress: supervisor.OnProgress | None = None,
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
            call = _prepare(mod, function, inputs, config)
            _check_case(len(call.cases), case)
        except ValueError as failure:
            raise type(failure)(f"{name}: {failure}") from None
        arguments = call.cases[case]
        if call.parameters:  # PrimFuncs with the same ones share arguments, which are sent once
            arguments = made.setdefault(call.parameters, arguments)
        work.append(run_jobs.TimedCall(call.callee, arguments, name))
        by_key[call.callee.key] = call.module
    timing = partial(run_jobs.time_in_turn, work, rounds=rounds, budget=seconds)
    return perform(timing, by_key, function, config, on_progress)


def _prepare(
    mod: ir.IRModule, function: str, inputs: CallInputs | Cases, config: RunConfig
) -> PreparedCall:
    if isinstance(function_named(mod, function), tirx.PrimFunc):
        check_place(config)
        return _prim_func_call(mod, function, inputs, config)
    cases = inputs if isinstance(inputs, Cases) else inputs.cases(mod, function)
    check_cache_maker(mod, cases)
    check_place(config)
    callee = run_jobs.CalledFunction(module_key(mod), function, config)
    return PreparedCall(callee, mod, cases)


def _check_case(cases: int, case: int) -> None:
    if not 0 <= case < cases:
        raise InputError(f"there is no case {case}: give one of 0 to {cases - 1}")


# --- The call of a PrimFunc alone ----------------------------------------------------------------


class PreparedCall(NamedTuple):
    """A call of a function: the module that it needs, and the arguments of each case.

    `parameters` are the names and types of a PrimFunc's parameters as text: calls with equal ones
    may share their arguments.
    """

    callee: run_jobs.CalledFunction
    module: ir.IRModule
    cases: Cases
    parameters: str = ""


def _prim_func_call(
    mod: ir.IRModule, name: str, inputs: CallInputs | Cases, config: RunConfig
) -> PreparedCall:
    """Return a call of a PrimFunc alone, for one case.

    Inputs are matched by its parameters' names; other buffers, including those it writes, get
    random numbers. Raises InputError or TypeMismatchError for inputs that do not fit, and RunError
    for a function that is scheduled for a GPU.
    """
    function = mod[name]
    if threads := gpu_threads(function):
        raise RunError(
            f"{name!r} cannot be run on the CPU: its loops are bound to {', '.join(threads)} of a "
            "GPU"
        )
    types = parameter_types(function)
    pointers = [each for each, type_ in types.items() if isinstance(type_, ir.PointerType)]
    if pointers:
        raise InputError(f"{pointers[0]!r} of {name!r} is a pointer to memory of unknown size")
    if isinstance(inputs, Cases):
        inputs = CallInputs(dict(zip(types, inputs[0], strict=True)))
    plan = inputs.plan(mod, name)
    if plan.cases > 1:
        raise InputError(f"there are {plan.cases} cases, and {name!r} is called once: give one")
    parameters = ", ".join(f"{each!r}: {type_}" for each, type_ in types.items())
    key, written = f"{module_key(mod)}, {name}", written_parameters(function)
    callee = run_jobs.CalledFunction(key, name, config, written)
    functions = with_callees(mod, [name])  # private functions stay private
    functions[mod.get_global_var(name)] = function.with_attr("global_symbol", name)
    return PreparedCall(callee, ir.IRModule(functions), plan.argument_lists(), parameters)


def gpu_threads(function: tirx.PrimFunc) -> list[str]:
    """Return the threads of a GPU that a PrimFunc's loops are bound to."""
    loops = (stmt for stmt, _ in walk_statements(function.body) if isinstance(stmt, tirx.For))
    bound = (loop.thread_binding for loop in loops)
    return list(dict.fromkeys(str(each.thread_tag) for each in bound if each is not None))


def check_cache_maker(mod: ir.IRModule, cases: Cases) -> None:
    """Raise RunError if the function that makes a call's cache gives it kernels for a GPU."""
    cache = cache_in(cases[0])
    if cache is None:
        return
    for kernel in parts_of(mod[cache.maker].body, ir.GlobalVar):
        if isinstance(mod[kernel], tirx.PrimFunc) and (threads := gpu_threads(mod[kernel])):
            raise RunError(
                f"{cache.maker!r} makes a cache that cannot be used on the CPU: the loops of "
                f"{kernel.name_hint!r} are bound to {', '.join(threads)} of a GPU. Export the "
                "module again with target=Target('llvm') for the cache"
            )


def written_parameters(function: tirx.PrimFunc) -> tuple[int, ...]:
    """Return the indices of the parameters that are written, of all buffers if none is found."""
    found = {store.buffer for store in parts_of(function.body, tirx.BufferStore)}
    for block in parts_of(function.body, s_tir.SBlock):
        found.update(region.source for region in block.writes)
    buffers = tuple(n for n, param in enumerate(function.params) if tirx.is_buffer_var(param))
    return tuple(n for n in buffers if function.params[n] in found) or buffers


# --- Run work in the worker, sending modules that it lacks and translating errors ----------------


Result = TypeVar("Result")

_MOST_MODULES = 64
_sent: OrderedDict[str, object] = OrderedDict()
"""The keys of modules that were sent to the worker, which may have been replaced since."""
_numbers = count()


def forget_kernels() -> None:
    """Delete all compiled kernels: on disk, in memory, and in the workers."""
    for worker in (supervisor.RUNS, supervisor.TRIES):
        worker.stop()
    kernel_cache.forget_kernels()


@lru_cache(maxsize=_MOST_MODULES)
def module_key(_: ir.IRModule) -> str:
    """Return the key that stands for this module object in messages to the worker."""
    return f"module {next(_numbers)}"


def perform(
    work: Callable[[run_jobs.ModuleOf], Callable[[], Result]],
    mods: Mapping[str, ir.IRModule],
    name: str,
    config: RunConfig,
    on_progress: supervisor.OnProgress | None,
) -> Result:
    """Do work on modules by key, in the worker or in this process as the config says.

    Modules are sent to the worker only if it does not have them; `name` is the function's, for
    errors. Raises RunError when the work fails, crashes, is cancelled, or exceeds a limit.
    """
    kernel_cache.say_if_none_are_kept()
    if config.confine and (not config.isolate or config.remote is not None):
        raise InputError("confine=True is for a process of its own on this machine: see isolate")
    if config.isolate:
        return _perform_in_worker(work, mods, name, config, on_progress)
    try:
        return work(mods.__getitem__)()
    except MemoryError as failure:
        raise RunError(f"{name!r} needs more memory than there is") from failure


def _perform_in_worker(
    work: Callable[[run_jobs.ModuleOf], Callable[[], Result]],
    mods: Mapping[str, ir.IRModule],
    name: str,
    config: RunConfig,
    on_progress: supervisor.OnProgress | None,
) -> Result:
    check_limits(config)
    memory = default_memory_limit() if config.memory is None else config.memory
    since = supervisor.RUNS.cancels

    def ask(packed: bytes, modules: run_jobs.Modules) -> Result:
        answer: Result = supervisor.RUNS.call(  # type: ignore[assignment]
            partial(run_jobs.run_packed, config=config),
            packed,
            modules,
            seconds=config.seconds,
            memory=memory,
            on_progress=on_progress,
            on_output=_print,
            since=since,
            answer=get_args(answer_type(work))[-1],
            is_run=config.remote is None and not modules,
        )
        return answer

    try:
        callees = {n: one for mod in mods.values() for n, one in python_callees(mod).items()}
        packed = shared_arrays.dumps((work, pack_callees(callees)))
        try:
            return ask(packed, _pickled(mods) if not mods.keys() <= _sent.keys() else {})
        except run_jobs.UnknownModuleError:
            return ask(packed, _pickled(mods))
        except shared_arrays.UnsharedError:  # a system that hides the memory of processes
            packed = shared_arrays.dumps((work, pack_callees(callees)), whole=True)
            return ask(packed, _pickled(mods, whole=True))
    except (RunError, CalleeNotSentError) as failure:
        raise RunError(str(failure)) from failure.__cause__  # the other process's stack, as text
    except MemoryError:
        most = "there is" if memory is None else f"the {_size(memory)} that it may take"
        raise RunError(
            f"{name!r} needs more memory than {most}{_while(supervisor.RUNS.doing)}: give it more "
            "with memory=…, in bytes, or smaller inputs"
        ) from None
    except supervisor.WorkerError as failure:
        if not isinstance(failure, supervisor.StartError):
            supervisor.RUNS.start()
        raise _run_error(failure, name) from None
    except Exception as failure:  # pickling and unpickling may raise anything
        raise RunError(
            f"{name!r} cannot be run{_while(supervisor.RUNS.doing)}: {error_summary(failure)}"
        ) from failure


def _pickled(mods: Mapping[str, ir.IRModule], *, whole: bool = False) -> dict[str, bytes]:
    for key in mods:
        remembered(_sent, key, lambda: None, _MOST_MODULES)
    return {key: pack_module(mod, whole=whole) for key, mod in mods.items()}


def _run_error(failure: supervisor.WorkerError, name: str) -> RunError:
    """Return the error for a run without an answer."""
    doing = _while(failure.doing)
    if isinstance(failure, supervisor.CancelledError):
        return CancelledRunError(f"{name!r} was cancelled{doing}")
    if isinstance(failure, supervisor.TimedOutError):
        advice = "It may never end; give it more with seconds=…"
    elif isinstance(failure, supervisor.StartError):
        advice = "Try again, or run it in this process with isolate=False"
    elif failure.doing.startswith("building"):
        advice = (
            "The compiler does so where memory is too little, or by a fault of its own: give it "
            "more with memory=…, in bytes"
        )
    else:
        advice = (
            "It may read or write outside of its buffers, call itself without end, or end the "
            "process; so may what it calls"
        )
    return RunError(f"{name!r} cannot be run: {failure}{doing}. {advice}")


def _while(doing: str) -> str:
    return f" while {doing}" if doing else ""


def _print(text: str) -> None:
    with contextlib.suppress(AttributeError, ValueError, OSError):  # a closed stream, or none
        sys.stdout.write(text)
        sys.stdout.flush()


def _size(nbytes: int) -> str:
    """Return a limit in the units in which it is given."""
    for unit, size in (("GB", 10**9), ("MB", 10**6)):
        if nbytes >= size:
            return f"{nbytes / size:.3g} {unit}"
    return f"{nbytes:,} bytes"
