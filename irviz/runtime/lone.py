"""What is done where a PrimFunc is called by itself: here or in another process."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import cloudpickle
import numpy as np
from tvm import ir

from irviz.model.result import RunResult
from irviz.runtime.address import HERE, Where, built_for
from irviz.runtime.job import Modules, received
from irviz.runtime.machine import KernelCaller, kernel
from irviz.runtime.remote import remote_kernel
from irviz.worker.progress import tell

BUDGET = 0.1
"""How many seconds of calls the time of one may take, where one call takes less."""
_ROUNDS = 10
_LEAST_SECONDS = 1e-9


@dataclass(frozen=True)
class LoneJob:
    """A PrimFunc to call once; `key` stands for its module, which has no other kind.

    `written` are the numbers of the arguments that are its outputs. What calls Python functions
    is called once (`is_once`): they may do something else at each call.
    """

    key: str
    function: str
    arguments: Sequence[object]
    written: Sequence[int]
    is_once: bool = False
    where: Where = HERE


def do_lone(job: LoneJob, module: Callable[[], ir.IRModule]) -> RunResult:
    """Build the module if it is not built, and call its function; raise RunError, MemoryError.

    The seconds are the median of some calls more, if one is short and they do the same.
    """
    there = kernel_at(job.where, job.key, job.function, module)
    tell("copying the arguments")
    placed = there.placed(job.arguments)
    tell("running")
    outputs, taken = there.call(job.function, placed, job.written)
    if taken < BUDGET and not job.is_once:
        tell("timing")
        taken = _usual(lambda count: there.seconds(job.function, placed, count))
    tell("sending the results")
    return RunResult(tuple(output[np.newaxis] for output in outputs), taken)


def perform_lone(packed: bytes, modules: Modules) -> bytes:
    """Do a job that came from another process; raise UnknownModuleError for a module to send."""
    job, made = received(packed, modules)
    answer: bytes = cloudpickle.dumps(do_lone(job, lambda: made(job.key)))
    return answer


def kernel_at(
    where: Where, key: str, function: str, module: Callable[[], ir.IRModule]
) -> KernelCaller:
    """Return the library of a PrimFunc, here or elsewhere, built if it is not; raise RunError."""
    if where.remote is not None:
        return remote_kernel(where, key, function, module)
    tell("building")
    return kernel(key, function, module, built_for(where.target))


def _usual(seconds: Callable[[int], float]) -> float:
    """Return the median seconds of calls; `seconds` makes so many and tells what one takes."""
    once = max(seconds(1), _LEAST_SECONDS)
    rounds = int(min(max(BUDGET // once, 1), _ROUNDS))
    number = int(max(BUDGET / _ROUNDS // once, 1))
    return statistics.median(seconds(number) for _ in range(rounds))
