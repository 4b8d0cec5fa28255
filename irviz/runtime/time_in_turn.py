"""Time functions alternately, so that noise affects all of them alike."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from irviz.errors import RunError
from irviz.limits import TIMED_CALLS_SECONDS
from irviz.runtime.remote_vm import BuiltModule
from irviz.runtime.run_function import CalledFunction, ModuleOf, build
from irviz.worker.progress import report_progress

ROUNDS = 20
BUDGET = 2.0
"""The approximate time of all calls together, if calls are short."""
_LEAST_SECONDS = 1e-7
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
    jobs: Sequence[TimedCall],
    module: ModuleOf,
    rounds: int = ROUNDS,
    budget: float = BUDGET,
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
    fitting = int(TIMED_CALLS_SECONDS / max(sum(once), _LEAST_SECONDS))
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
