"""The jobs of running a function and of timing several, in this process or in the worker."""

from __future__ import annotations

import contextlib
import statistics
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from tvm import ir

from irviz.errors import RunError
from irviz.limits import TIMED_CALLS_SECONDS
from irviz.model.runs.run_result import RunResult
from irviz.runtime.argument_conversion import row
from irviz.runtime.call_inputs import Cases
from irviz.runtime.local_vm import LocalModule, filled_memory, remembered, stack_cases
from irviz.runtime.module_serialization import install_callees, unpack_module
from irviz.runtime.rpc_vm import BuiltModule, remote_module
from irviz.runtime.run_config import RunConfig
from irviz.runtime.trace_recorder import Instrumented, TraceRequest, instrument, record_trace
from irviz.worker import shared_arrays
from irviz.worker.captured_output import captured_stderr, warnings_in
from irviz.worker.one_shot_process import in_fresh_process
from irviz.worker.responses import report_progress

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
    """A function, and where it runs; `key` stands for its module.

    `written` are the indices of the arguments that a PrimFunc writes, which are its outputs, None
    for a Relax function. The module of a PrimFunc has only PrimFuncs.
    """

    key: str
    function: str
    config: RunConfig
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
        with filled_memory(callee.config.fill):
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


def run_packed(packed: bytes, modules: Modules, *, config: RunConfig) -> object:
    """Do pickled work in the worker; raise UnknownModuleError for a missing module.

    The Python functions that were sent with it are registered. What runs on this machine is run in
    a fresh process.
    """
    if config.confine:  # where nothing can be imported any more
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
    if config.remote is not None:
        return prepared()
    return in_fresh_process(prepared, is_confined=config.confine)


def build(callee: CalledFunction, module: ModuleOf) -> BuiltModule:
    """Return a built module, one of the last sixteen if it is among them; raise RunError."""
    config, written = callee.config, callee.written
    what = "the module" if written is None else repr(callee.function)
    if config.remote is not None:
        return remote_module(config, callee.key, lambda: module(callee.key), written, what)
    report_progress("building")
    return remembered(
        _built,
        (callee.key, config.built_as, written),
        lambda: LocalModule.build(module(callee.key), config, written, what),
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
        of = instrument(module(callee.key), callee.function)
        return LocalModule.build(of.module, callee.config, None), of

    try:
        return remembered(_built, (callee.key, callee.function, callee.config.built_as), built)
    except RunError as failure:
        raise RunError(f"{callee.function!r} can be run, but not traced: {failure}") from failure


ROUNDS = 20
BUDGET = 1.0
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
