"""Measure how long stages take, in turn, so that a noisy machine hurts all of them alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import cloudpickle
from tvm import ir

from irviz.runtime.address import HERE, Where
from irviz.runtime.job import Modules, machine_at, received
from irviz.runtime.lone import kernel_at
from irviz.runtime.machine import RunError, Timer
from irviz.worker.progress import tell

Result = TypeVar("Result")

ROUNDS = 20
BUDGET = 2.0
"""How many seconds all calls together take at least, where calls are short."""
_LEAST_SECONDS = 1e-7
"""Less than any call takes; a clock may say less."""
_MOST_SECONDS = 20.0
"""How many seconds all calls together may take, where calls are long."""
_LONG_SECONDS = 0.3
"""Of a call that takes so long, what is new at the first is a small part."""
LEAST_ROUNDS = 6
"""How many numbers it takes for an interval of their median."""


@dataclass(frozen=True)
class Timed:
    """A function to time, with its arguments; `key` stands for its module.

    The module of a PrimFunc (`is_prim`) has no other kind. `name` is the stage's in errors.
    """

    key: str
    function: str
    arguments: Sequence[object]
    name: str = ""
    where: Where = HERE
    is_prim: bool = False


def timed(
    jobs: Sequence[Timed],
    module: Callable[[str], ir.IRModule],
    rounds: int = ROUNDS,
    budget: float = BUDGET,
) -> list[tuple[float, ...]]:
    """Return the seconds of a call of each function, one number for each round.

    In each round the functions are called one after the other, beginning with another one; short
    ones several times; where they are long, in fewer rounds, but six. Raises RunError, with the
    stage's name, when one cannot be built or fails.
    """
    calls = []
    placed: dict[int, Sequence[object]] = {}  # stages may have the very same arguments
    for number, job in enumerate(jobs, start=1):
        tell(f"building stage {number} of {len(jobs)}")
        calls.append(_named(job, lambda job=job: _call(job, module, placed)))  # type: ignore[misc]
    tell("warming up")
    once = [_warm(call) for call in calls]
    fitting = int(_MOST_SECONDS / max(sum(once), _LEAST_SECONDS))
    rounds = min(rounds, max(fitting, LEAST_ROUNDS))
    each = budget / (rounds * max(len(jobs), 1))
    counts = [max(int(each / max(seconds, _LEAST_SECONDS)), 1) for seconds in once]
    found: list[list[float]] = [[] for _ in jobs]
    for number in range(rounds):
        tell(f"round {number + 1} of {rounds}")
        for index in order(len(jobs), number):
            found[index].append(calls[index](counts[index]))
    return [tuple(seconds) for seconds in found]


def order(count: int, number: int) -> list[int]:
    """Return the order of so many functions in a round.

    What runs before leaves the caches as it does: so each begins as often as the others, and none
    always follows the same.
    """
    turned = [(place + number // 2) % count for place in range(count)]
    return turned[::-1] if number % 2 else turned


def perform_timed(packed: bytes, modules: Modules) -> bytes:
    """Time functions that came from another process; raise UnknownModuleError for one to send."""
    (jobs, rounds, budget), made = received(packed, modules)
    answer: bytes = cloudpickle.dumps(timed(jobs, made, rounds, budget))
    return answer


def _named(job: Timed, work: Callable[[], Result]) -> Result:
    """Do something for a stage; raise RunError with its name."""
    try:
        return work()
    except RunError as failure:
        words = f"{job.name}: {failure}" if job.name else str(failure)
        raise RunError(words) from failure.__cause__


def _warm(call: Callable[[int], float]) -> float:
    """Return the seconds of a call; the first of short ones takes longer than others."""
    first = call(1)
    return first if first >= _LONG_SECONDS else min(first, call(1))


def _call(
    job: Timed, module: Callable[[str], ir.IRModule], placed: dict[int, Sequence[object]]
) -> Callable[[int], float]:
    timer = _timer(job, lambda: module(job.key))
    if id(job.arguments) not in placed:
        placed[id(job.arguments)] = timer.placed(job.arguments)
    own = placed[id(job.arguments)]
    return lambda count: _named(job, lambda: timer.seconds(job.function, own, count))


def _timer(job: Timed, made: Callable[[], ir.IRModule]) -> Timer:
    if job.is_prim:
        return kernel_at(job.where, job.key, job.function, made)
    return machine_at(job.where, job.key, made)
