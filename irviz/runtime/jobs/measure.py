"""Time functions in turn, so that noise of the machine affects all of them alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from irviz.errors import RunError
from irviz.runtime.jobs.job import ModuleOf, vm_for
from irviz.runtime.jobs.prim_func_job import library_for
from irviz.runtime.local.vm import Timer
from irviz.runtime.remote.address import LOCAL_TARGET, RunTarget
from irviz.worker.progress import report_progress

Result = TypeVar("Result")

ROUNDS = 20
BUDGET = 2.0
"""About how long all calls together take, where calls are short."""
_LEAST_SECONDS = 1e-7
"""Less than any call takes, because a clock may return zero."""
_MOST_SECONDS = 20.0
"""The limit for all calls together, where calls are long."""
_LONG_SECONDS = 0.3
"""In calls this long, the overhead of the first call is negligible."""
LEAST_ROUNDS = 6
"""The number of values needed for a confidence interval of their median."""


@dataclass(frozen=True)
class TimedCall:
    """A function to time, with its arguments; `key` stands for its module.

    The module of a PrimFunc (`is_prim`) has only PrimFuncs. `name` is the stage's, for errors.
    """

    key: str
    function: str
    arguments: Sequence[object]
    name: str = ""
    where: RunTarget = LOCAL_TARGET
    is_prim: bool = False


def time_in_turn(
    jobs: Sequence[TimedCall],
    module: ModuleOf,
    rounds: int = ROUNDS,
    budget: float = BUDGET,
) -> list[tuple[float, ...]]:
    """Return the seconds of a call of each function, one number for each round.

    Each round calls every function, in another order, and short ones several times. Long calls
    reduce the number of rounds, but not below six. Raises RunError with the stage's name when a
    function cannot be built or fails.
    """
    calls = []
    placed: dict[int, Sequence[object]] = {}  # stages may share arguments
    for number, job in enumerate(jobs, start=1):
        report_progress(f"building stage {number} of {len(jobs)}")
        calls.append(_with_stage_name(job, lambda job=job: _call(job, module, placed)))  # type: ignore[misc]
    report_progress("warming up")
    once = [_warm_up(call) for call in calls]
    fitting = int(_MOST_SECONDS / max(sum(once), _LEAST_SECONDS))
    rounds = min(rounds, max(fitting, LEAST_ROUNDS))
    each = budget / (rounds * max(len(jobs), 1))
    counts = [max(int(each / max(seconds, _LEAST_SECONDS)), 1) for seconds in once]
    found: list[list[float]] = [[] for _ in jobs]
    for number in range(rounds):
        report_progress(f"round {number + 1} of {rounds}")
        for index in call_order(len(jobs), number):
            found[index].append(calls[index](counts[index]))
    return [tuple(seconds) for seconds in found]


def call_order(count: int, number: int) -> list[int]:
    """Return the order of so many functions in a round.

    A function affects the caches for the next one: so each begins equally often, and none always
    follows the same one.
    """
    turned = [(place + number // 2) % count for place in range(count)]
    return turned[::-1] if number % 2 else turned


def _with_stage_name(job: TimedCall, work: Callable[[], Result]) -> Result:
    """Call a function; raise its RunError with the stage's name."""
    try:
        return work()
    except RunError as failure:
        words = f"{job.name}: {failure}" if job.name else str(failure)
        raise RunError(words) from failure.__cause__


def _warm_up(call: Callable[[int], float]) -> float:
    """Return the seconds of a call, of the second one if it is short."""
    first = call(1)
    return first if first >= _LONG_SECONDS else min(first, call(1))


def _call(
    job: TimedCall, module: ModuleOf, placed: dict[int, Sequence[object]]
) -> Callable[[int], float]:
    timer = _timer(job, module)
    if id(job.arguments) not in placed:
        placed[id(job.arguments)] = timer.copy_arguments(job.arguments)
    own = placed[id(job.arguments)]
    return lambda count: _with_stage_name(job, lambda: timer.seconds(job.function, own, count))


def _timer(job: TimedCall, module: ModuleOf) -> Timer:
    if job.is_prim:
        return library_for(job.where, job.key, job.function, module)
    return vm_for(job.where, job.key, module)
