"""The jobs of running a function and of timing several, in this process or in the worker."""

from __future__ import annotations

import contextlib
import statistics
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import tvm_ffi
from tvm import ir, s_tir, tirx

from irviz.errors import InputError, RunError
from irviz.ir.statements import walk_statements
from irviz.ir.symbolic_shapes import parameter_types
from irviz.ir.symbolic_shapes import symbolic_sizes as sizes_of
from irviz.limits import TIMED_CALLS_SECONDS
from irviz.model.runs.run_result import RunResult
from irviz.runtime.argument_conversion import row
from irviz.runtime.call_inputs import RANDOM, Cases, Inputs, plan_inputs
from irviz.runtime.kv_caches import cache_in
from irviz.runtime.local_vm import LocalModule, filled_memory, remembered, stack_cases
from irviz.runtime.module_bytes import install_callees, unpack_module
from irviz.runtime.remote_vm import BuiltModule, remote_module
from irviz.runtime.run_config import LOCAL_TARGET, RunTarget
from irviz.runtime.trace_recorder import Instrumented, TraceRequest, instrument, record_trace
from irviz.worker import shared_arrays
from irviz.worker.answers import report_progress
from irviz.worker.captured_output import captured_stderr, warnings_in
from irviz.worker.fresh_process import in_fresh_process

Modules = Mapping[str, bytes]
"""Pickled modules by key, which the receiver may not have yet."""
ModuleOf = Callable[[str], ir.IRModule]
"""Returns the module of a key."""

TIMING_SECONDS = 0.1
"""The seconds spent on timing calls of a PrimFunc that are shorter than that."""
_ROUNDS = 10
_LEAST_SECONDS = 1e-9
_TOLD_SECONDS = 0.02
"""Cases that take no longer than this together share a progress message, which takes 50 µs."""
_built: OrderedDict[Hashable, object] = OrderedDict()


class UnknownModuleError(LookupError):
    """A module was not sent yet, or has been dropped."""


@dataclass(frozen=True)
class CalledFunction:
    """A function, and the machine that runs it; `key` stands for its module.

    `written` are the indices of the arguments that a PrimFunc writes, which are its outputs, None
    for a Relax function. The module of a PrimFunc has only PrimFuncs.
    """

    key: str
    function: str
    where: RunTarget = LOCAL_TARGET
    written: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Job:
    """A function to call once for each case.

    With `trace` a case is called again and traced, which works only for a Relax function on this
    machine. With `is_once` a PrimFunc is not called again for timing, because it calls Python
    functions, which may behave differently each time.
    """

    callee: CalledFunction
    cases: Cases
    trace: TraceRequest | None = None
    is_once: bool = False


def run_job(job: Job, module: ModuleOf) -> Callable[[], RunResult]:
    """Build the module unless it is built, and return what calls the function; raise RunError.

    If a call of a PrimFunc is short and may be repeated, the time is the median of more calls.
    """
    with captured_stderr() as written:
        built = build(job.callee, module)
    traced = None
    if job.trace is not None:
        report_progress("building for the trace")
        traced = _traced(job.callee, module)
    return partial(_run, job, built, traced, warnings_in(written.text))


def _run(
    job: Job,
    built: BuiltModule,
    traced: tuple[LocalModule, Instrumented] | None,
    warnings: tuple[str, ...],
) -> RunResult:
    """Call the function for each case; raise RunError, MemoryError."""
    callee, is_prim = job.callee, job.callee.written is not None
    report_progress("copying the arguments")
    cases = _copied(built, job.cases)
    outputs, seconds, caches = [], list[float](), tuple[str, ...]()
    told = 0
    for number, arguments in enumerate(cases, start=1):
        if number > told:
            told = number + _told_together(seconds, len(cases) - number)
            report_progress("running" if is_prim else _numbered(number, told, len(cases)))
        with filled_memory(callee.where.fill):
            found, taken, caches = built.call(callee.function, arguments)
        outputs.append(found)
        seconds.append(taken)
    usual = statistics.median(seconds)
    if is_prim and usual < TIMING_SECONDS and not job.is_once:
        report_progress("timing")
        usual = median_seconds(lambda count: built.seconds(callee.function, cases[0], count))
    trace = None
    if job.trace is not None and traced is not None:
        report_progress("tracing")
        instrumented, of = traced
        chosen = cases[job.trace.case]
        trace = record_trace(
            of,
            callee.function,
            lambda: partial(instrumented.timed, callee.function, instrumented.with_cache(chosen)),
            usual,
            job.trace,
        )
    report_progress("sending the results")
    return RunResult(stack_cases(outputs), usual, trace=trace, warnings=warnings, caches=caches)


def _told_together(seconds: Sequence[float], left: int) -> int:
    """Return how many of the remaining cases share the next progress message."""
    return min(left, int(_TOLD_SECONDS / max(seconds[-1], _LEAST_SECONDS))) if seconds else 0


def _numbered(first: int, last: int, count: int) -> str:
    inputs = f"input {first}" if first == last else f"inputs {first} to {last}"
    return f"running {inputs} of {count}"


def run_packed(packed: bytes, modules: Modules, *, where: RunTarget) -> object:
    """Do pickled work in the worker; raise UnknownModuleError for a missing module.

    The Python functions that were sent with it are registered. What runs on this machine is run in
    a fresh process.
    """
    if where.is_confined:  # where nothing can be imported any more
        import numpy.ma
        import numpy.random  # noqa: F401
    report_progress("receiving")
    work, callees = shared_arrays.loads(packed)
    install_callees(callees)

    def module(key: str) -> ir.IRModule:
        if key not in modules:
            raise UnknownModuleError(key)
        return unpack_module(modules[key])

    prepared: Callable[[], object] = work(module)
    if where.remote is not None:
        return prepared()
    return in_fresh_process(prepared, is_confined=where.is_confined)


def build(callee: CalledFunction, module: ModuleOf) -> BuiltModule:
    """Return a built module, one of the last sixteen if it is among them; raise RunError."""
    where, written = callee.where, callee.written
    what = "the module" if written is None else repr(callee.function)
    if where.remote is not None:
        return remote_module(where, callee.key, lambda: module(callee.key), written, what)
    report_progress("building")
    is_pooled, is_confined = where.fill is None, where.is_confined
    key = callee.key, where.target, where.recipe, written, is_pooled, is_confined
    return remembered(
        _built,
        key,
        lambda: LocalModule.build(
            module(callee.key),
            *(where.target, written, what, where.recipe),
            is_pooled=is_pooled,
            is_confined=is_confined,
        ),
    )


def median_seconds(seconds: Callable[[int], float]) -> float:
    """Return the median time of a call; `seconds(n)` calls n times and returns the mean."""
    once = max(seconds(1), _LEAST_SECONDS)
    rounds = int(min(max(TIMING_SECONDS // once, 1), _ROUNDS))
    number = int(max(TIMING_SECONDS / _ROUNDS // once, 1))
    return statistics.median(seconds(number) for _ in range(rounds))


def _copied(built: BuiltModule, cases: Cases) -> list[list[object]]:
    """Copy the arguments to the device, shared ones only once."""
    # a server gets the fields of a tuple one by one
    columns = [
        [built.copy_arguments([row(values, case)]) for case in range(len(values))]
        for values in cases.columns
    ]
    return [
        [one for copied in columns for one in copied[case if len(copied) > 1 else 0]]
        for case in range(len(cases))
    ]


def _traced(callee: CalledFunction, module: ModuleOf) -> tuple[LocalModule, Instrumented]:
    def built() -> tuple[LocalModule, Instrumented]:
        of, where = instrument(module(callee.key), callee.function), callee.where
        made = LocalModule.build(
            of.module, where.target, None, recipe=where.recipe, is_confined=where.is_confined
        )
        return made, of

    try:
        return remembered(_built, callee, built)
    except RunError as failure:
        raise RunError(f"{callee.function!r} can be run, but not traced: {failure}") from failure


ROUNDS = 20
BUDGET = 2.0
"""The approximate time of all calls together, if calls are short."""
_CLOCK_SECONDS = 1e-7
"""Less than any call takes, because a clock may return zero."""
_LONG_SECONDS = 0.3
"""In calls this long, the overhead of the first call is negligible."""
LEAST_ROUNDS = 6
"""The number of values needed for a confidence interval of their median."""


@dataclass(frozen=True)
class TimedCall:
    """A function to time, with its arguments; `name` is the stage's, for errors."""

    callee: CalledFunction
    arguments: Sequence[object]
    name: str = ""


def time_in_turn(
    jobs: Sequence[TimedCall], module: ModuleOf, rounds: int = ROUNDS, budget: float = BUDGET
) -> Callable[[], list[tuple[float, ...]]]:
    """Build the functions, and return what times them: one number of seconds for each round.

    Each round calls every function, in another order, and short ones several times. Long calls
    reduce the number of rounds, but not below six. Raises RunError with the stage's name when a
    function cannot be built or fails.
    """
    built = []
    for number, job in enumerate(jobs, start=1):
        report_progress(f"building stage {number} of {len(jobs)}")
        with _stage_name(job):
            built.append(build(job.callee, module))
    return partial(_timed, jobs, built, rounds, budget)


def _timed(
    jobs: Sequence[TimedCall], built: Sequence[BuiltModule], rounds: int, budget: float
) -> list[tuple[float, ...]]:
    placed: dict[int, Sequence[object]] = {}  # stages may share arguments
    calls = [_call(job, one, placed) for job, one in zip(jobs, built, strict=True)]
    report_progress("warming up")
    once = [_warm_up(call) for call in calls]
    fitting = int(TIMED_CALLS_SECONDS / max(sum(once), _CLOCK_SECONDS))
    rounds = min(rounds, max(fitting, LEAST_ROUNDS))
    each = budget / (rounds * max(len(jobs), 1))
    counts = [max(int(each / max(seconds, _CLOCK_SECONDS)), 1) for seconds in once]
    found: list[list[float]] = [[] for _ in jobs]
    for number in range(rounds):
        report_progress(f"round {number + 1} of {rounds}")
        for index in call_order(len(jobs), number):
            found[index].append(calls[index](counts[index]))
    return [tuple(seconds) for seconds in found]


def call_order(count: int, number: int) -> list[int]:
    """Return the order of the functions in a round.

    A function affects the caches for the next one: so each begins equally often, and none always
    follows the same one.
    """
    turned = [(place + number // 2) % count for place in range(count)]
    return turned[::-1] if number % 2 else turned


@contextlib.contextmanager
def _stage_name(job: TimedCall) -> Iterator[None]:
    """Raise a RunError of the block with the stage's name."""
    try:
        yield
    except RunError as failure:
        words = f"{job.name}: {failure}" if job.name else str(failure)
        raise RunError(words) from failure.__cause__


def _warm_up(call: Callable[[int], float]) -> float:
    """Return the seconds of a call, of the second one if it is short."""
    first = call(1)
    return first if first >= _LONG_SECONDS else min(first, call(1))


def _call(
    job: TimedCall, built: BuiltModule, placed: dict[int, Sequence[object]]
) -> Callable[[int], float]:
    if id(job.arguments) not in placed:
        with _stage_name(job):
            placed[id(job.arguments)] = built.copy_arguments(job.arguments)
    own = placed[id(job.arguments)]

    def seconds(count: int) -> float:
        with _stage_name(job):
            return built.seconds(job.callee.function, own, count)

    return seconds


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
    if threads := gpu_threads(function):
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
    kernels: list[ir.GlobalVar] = []
    tvm_ffi.structural_walk(mod[cache.maker].body, (ir.GlobalVar, kernels.append))
    for kernel in kernels:
        if isinstance(mod[kernel], tirx.PrimFunc) and (threads := gpu_threads(mod[kernel])):
            raise RunError(
                f"{cache.maker!r} makes a cache that cannot be used on the CPU: the loops of "
                f"{kernel.name_hint!r} are bound to {', '.join(threads)} of a GPU. Export the "
                "module again with target=Target('llvm') for the cache"
            )


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
