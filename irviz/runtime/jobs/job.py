"""The job of running a Relax function, in this process or in the worker."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import cloudpickle
from tvm import ir

from irviz.errors import RunError
from irviz.model.runs.run_result import RunResult
from irviz.runtime.local.instrument import Instrumented, instrument
from irviz.runtime.local.python_callees import install_callees
from irviz.runtime.local.trace_recorder import TraceRequest, record_trace
from irviz.runtime.local.vm import Caller, LocalVM, call_function, local_vm, stack_cases
from irviz.runtime.remote.address import LOCAL_TARGET, RunTarget, tvm_target
from irviz.runtime.remote.remote_vm import remote_vm
from irviz.worker.progress import report_progress

Modules = Mapping[str, bytes]
"""Pickled modules by key, those that the receiver may not have yet."""
ModuleOf = Callable[[str], ir.IRModule]
"""Returns the module of a key."""


class UnknownModuleError(LookupError):
    """A module that was not sent yet, or has been dropped."""


@dataclass(frozen=True)
class Job:
    """A Relax function to call once for each case; `key` stands for its module.

    With `trace` a case is called again and traced, which works only on this machine.
    """

    key: str
    function: str
    cases: Sequence[Sequence[object]]
    trace: TraceRequest | None = None
    where: RunTarget = LOCAL_TARGET


_instrumented: dict[tuple[str, str], Instrumented] = {}


def run_job(job: Job, module: ModuleOf) -> RunResult:
    """Build the module unless it is built, and call the function; raise RunError, MemoryError."""
    vm = vm_for(job.where, job.key, module)
    report_progress("copying the arguments")
    copied: dict[int, Sequence[object]] = {}  # a parameter is the same array in every case
    cases = []
    for case in job.cases:
        for argument in case:
            if id(argument) not in copied:
                copied[id(argument)] = vm.copy_arguments([argument])
        cases.append([one for argument in case for one in copied[id(argument)]])
    outputs, seconds = [], []
    for number, arguments in enumerate(cases, start=1):
        report_progress(f"running input {number} of {len(cases)}")
        found, taken = vm.call(job.function, arguments)
        outputs.append(found)
        seconds.append(taken)
    trace = None
    if job.trace is not None:
        report_progress("building for the trace")
        traced, of = _traced(job, module)
        function, chosen = job.function, cases[job.trace.case]
        usual = statistics.median(seconds)
        trace = record_trace(
            of, function, lambda: call_function(traced.vm, function, chosen), usual, job.trace
        )
    report_progress("sending the results")
    return RunResult(stack_cases(outputs), statistics.median(seconds), trace=trace)


def run_packed(packed: bytes, modules: Modules) -> bytes:
    """Do pickled work in the worker; raise UnknownModuleError for a module that is missing.

    The Python functions that were sent with it are registered.
    """
    report_progress("receiving")
    work, callees = cloudpickle.loads(packed)
    install_callees(callees)

    def module(key: str) -> ir.IRModule:
        if key not in modules:
            raise UnknownModuleError(key)
        return cloudpickle.loads(modules[key])

    answer: bytes = cloudpickle.dumps(work(module))
    return answer


def vm_for(where: RunTarget, key: str, module: ModuleOf) -> Caller:
    """Return the virtual machine of a module, built unless it is built; raise RunError."""
    if where.remote is not None:
        return remote_vm(where, key, lambda: module(key))
    report_progress("building")
    return local_vm(key, lambda: module(key), tvm_target(where.target))


def _traced(job: Job, module: ModuleOf) -> tuple[LocalVM, Instrumented]:
    key = (job.key, job.function)

    def build() -> ir.IRModule:
        _instrumented[key] = instrument(module(job.key), job.function)
        return _instrumented[key].module

    try:
        return local_vm(key, build, tvm_target(job.where.target)), _instrumented[key]
    except RunError as failure:
        raise RunError(f"{job.function!r} runs, but cannot be traced: {failure}") from failure
