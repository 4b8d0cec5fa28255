"""The job of calling a PrimFunc by itself, in this process or in the worker."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from irviz.model.runs.run_result import RunResult
from irviz.runtime.jobs.job import ModuleOf
from irviz.runtime.local.vm import KernelCaller, local_library
from irviz.runtime.remote.address import LOCAL_TARGET, RunTarget, tvm_target
from irviz.runtime.remote.remote_vm import remote_library
from irviz.worker.progress import report_progress

TIMING_SECONDS = 0.1
"""The seconds spent on timing calls that are shorter than that."""
_ROUNDS = 10
_LEAST_SECONDS = 1e-9


@dataclass(frozen=True)
class PrimFuncJob:
    """A PrimFunc to call once; `key` stands for its module, which has only PrimFuncs.

    `written` are the indices of the arguments that are outputs. With `is_once` it is not called
    again for timing, because it calls Python functions, which may behave differently each time.
    """

    key: str
    function: str
    arguments: Sequence[object]
    written: Sequence[int]
    is_once: bool = False
    where: RunTarget = LOCAL_TARGET


def run_prim_func_job(job: PrimFuncJob, module: ModuleOf) -> RunResult:
    """Build the module unless it is built, and call the function; raise RunError, MemoryError.

    If the call is short and may be repeated, the time is the median of more calls.
    """
    library = library_for(job.where, job.key, job.function, module)
    report_progress("copying the arguments")
    placed = library.copy_arguments(job.arguments)
    report_progress("running")
    outputs, taken = library.call(job.function, placed, job.written)
    if taken < TIMING_SECONDS and not job.is_once:
        report_progress("timing")
        taken = median_seconds(lambda count: library.seconds(job.function, placed, count))
    report_progress("sending the results")
    return RunResult(tuple(output[np.newaxis] for output in outputs), taken)


def library_for(where: RunTarget, key: str, function: str, module: ModuleOf) -> KernelCaller:
    """Return the library of a PrimFunc, built unless it is built; raise RunError."""
    if where.remote is not None:
        return remote_library(where, key, function, lambda: module(key))
    report_progress("building")
    return local_library(key, function, lambda: module(key), tvm_target(where.target))


def median_seconds(seconds: Callable[[int], float]) -> float:
    """Return the median time of a call; `seconds(n)` calls n times and returns the mean."""
    once = max(seconds(1), _LEAST_SECONDS)
    rounds = int(min(max(TIMING_SECONDS // once, 1), _ROUNDS))
    number = int(max(TIMING_SECONDS / _ROUNDS // once, 1))
    return statistics.median(seconds(number) for _ in range(rounds))
