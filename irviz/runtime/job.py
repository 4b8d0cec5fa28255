"""What is done where a stage runs: here or in another process."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import cloudpickle
from tvm import ir

from irviz.model.result import RunResult
from irviz.runtime.address import HERE, Where, built_for
from irviz.runtime.callees import install
from irviz.runtime.instrument import Instrumented, instrument
from irviz.runtime.machine import Caller, Machine, RunError, called, joined, machine
from irviz.runtime.remote import remote_machine
from irviz.runtime.tracing import Wish, record
from irviz.worker.progress import tell

Modules = Mapping[str, bytes]
"""Modules as they travel, by their keys: those that the sender thinks are not known here."""


class UnknownModuleError(LookupError):
    """A module that was not sent yet, or is forgotten."""


@dataclass(frozen=True)
class Job:
    """A function to call, once for each case; `key` stands for its module.

    With a wish a case is called again for its trace, which this machine alone can do.
    """

    key: str
    function: str
    cases: Sequence[Sequence[object]]
    wish: Wish | None = None
    where: Where = HERE


_instrumented: dict[tuple[str, str], Instrumented] = {}


def do(job: Job, module: Callable[[], ir.IRModule]) -> RunResult:
    """Build the module if it is not built, and call its function; raise RunError, MemoryError."""
    vm = machine_at(job.where, job.key, module)
    tell("copying the arguments")
    known: dict[int, Sequence[object]] = {}  # a parameter is the same array in every case
    cases = []
    for case in job.cases:
        for argument in case:
            if id(argument) not in known:
                known[id(argument)] = vm.placed([argument])
        cases.append([one for argument in case for one in known[id(argument)]])
    outputs, seconds = [], []
    for number, arguments in enumerate(cases, start=1):
        tell(f"running input {number} of {len(cases)}")
        found, taken = vm.call(job.function, arguments)
        outputs.append(found)
        seconds.append(taken)
    trace = None
    if job.wish is not None:
        tell("building for the trace")
        traced, of = _traced(job, module)
        function, chosen = job.function, cases[job.wish.case]
        usual = statistics.median(seconds)
        trace = record(of, function, lambda: called(traced.vm, function, chosen), usual, job.wish)
    tell("sending the results")
    return RunResult(joined(outputs), statistics.median(seconds), trace=trace)


def perform(packed: bytes, modules: Modules) -> bytes:
    """Do a job that came from another process; raise UnknownModuleError for a module to send."""
    job, made = received(packed, modules)
    answer: bytes = cloudpickle.dumps(do(job, lambda: made(job.key)))
    return answer


def received(packed: bytes, modules: Modules) -> tuple[Any, Callable[[str], ir.IRModule]]:
    """Return what came from another process, and what gives the module of a key.

    The Python functions that came with it are registered here.
    """
    tell("receiving")
    work, callees = cloudpickle.loads(packed)
    install(callees)

    def made(key: str) -> ir.IRModule:
        if key not in modules:
            raise UnknownModuleError(key)
        return cloudpickle.loads(modules[key])

    return work, made


def machine_at(where: Where, key: str, module: Callable[[], ir.IRModule]) -> Caller:
    """Return the machine of a module, here or elsewhere, built if it is not; raise RunError."""
    if where.remote is not None:
        return remote_machine(where, key, module)
    tell("building")
    return machine(key, module, built_for(where.target))


def _traced(job: Job, module: Callable[[], ir.IRModule]) -> tuple[Machine, Instrumented]:
    key = (job.key, job.function)

    def made() -> ir.IRModule:
        _instrumented[key] = instrument(module(), job.function)
        return _instrumented[key].module

    try:
        return machine(key, made, built_for(job.where.target)), _instrumented[key]
    except RunError as failure:
        raise RunError(f"{job.function!r} runs, but cannot be traced: {failure}") from failure
