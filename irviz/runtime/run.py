"""Run a function of a module, for its results, its trace and its times."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from tvm import ir, tirx

from irviz.ir.fit import Argument
from irviz.ir.identity import function_named, relax_function
from irviz.model.result import RunResult
from irviz.runtime.callees import python_callees
from irviz.runtime.inputs import Array, InputError, Inputs, Plan, plan_inputs
from irviz.runtime.job import Job, do, perform
from irviz.runtime.lone import LoneJob, do_lone, perform_lone
from irviz.runtime.machine import RunError, said
from irviz.runtime.measure import BUDGET, ROUNDS, Timed, perform_timed, timed
from irviz.runtime.place import CancelledRunError, Place, elsewhere, key_of
from irviz.runtime.prim_func import Lone, lone
from irviz.runtime.tracing import Wish
from irviz.worker.pool import Heard

Result = TypeVar("Result")

__all__ = ["CancelledRunError", "Given", "Place", "RunError", "Wish", "measure", "run", "said"]


@dataclass(frozen=True, eq=False)
class Given:
    """What functions are called with, as `argument_lists` takes it."""

    inputs: Inputs = None
    params: Mapping[str, Array] | None = None
    labels: NDArray[np.int64] | None = None
    seed: int = 0
    sizes: Mapping[str, int] | None = None

    def plan(self, mod: ir.IRModule, function: str) -> Plan:
        """Return what a function of a module will be called with; raise InputError."""
        source = relax_function(mod, function)
        return plan_inputs(
            source, self.inputs, self.params or {}, seed=self.seed, sizes=self.sizes or {}
        )

    def cases(self, mod: ir.IRModule, function: str) -> list[list[Argument]]:
        """Return the arguments of each case for a function of a module; raise InputError."""
        cases = self.plan(mod, function).argument_lists()
        if self.labels is not None and len(self.labels) != len(cases):
            raise InputError(
                f"there are {len(self.labels)} labels and {len(cases)} cases: give one label for "
                "each case"
            )
        return cases


def run(
    mod: ir.IRModule,
    function: str = "main",
    given: Given | None = None,
    *,
    trace: Wish | None = None,
    place: Place | None = None,
    heard: Heard | None = None,
) -> RunResult:
    """Build the module for `llvm` and call the function on a CPU, once for each case.

    A PrimFunc is called by itself, with those of the inputs that are named as its parameters are,
    and random numbers for the others: it has one case, no labels and no trace. What it writes are
    its outputs. Its seconds are the median of some calls more, if one is short, and it calls no
    functions of Python, which may do something else at each call.

    What is built is kept while it is among the last sixteen. With `trace` the result has a trace
    of one case. `heard` is told what is being done. Seconds are those of the machine that runs
    it: of another one (`place.device`) they are told by its server, but with the way there and
    back where a call takes 0.1 s or more, or is impure. Raises RunError when TVM cannot build or
    run it, when it ends its process, takes more time or memory than it may, or the other machine
    is not there or gets lost; InputError or MisfitError for wrong inputs.
    """
    given, place = given or Given(), place or Place()
    if _is_prim_func(mod, function):
        return _run_lone(mod, function, given, trace, place, heard)
    where, cases = place.where, given.cases(mod, function)
    _check_case(cases, trace.case if trace else 0)
    if trace is not None and where.remote is not None:
        raise InputError(
            f"a trace needs this machine, because values are not reported from {where.remote}: "
            "run without device, or without a trace"
        )
    job = Job(key_of(mod), function, cases, trace, where)
    if place.isolate:
        result = elsewhere(perform, job, {job.key: mod}, function, place, heard)
    else:
        result = _here(function, lambda: do(job, lambda: mod))
    assert isinstance(result, RunResult), "it is what a job gives"
    return replace(result, labels=given.labels)


def measure(
    mods: Sequence[ir.IRModule],
    function: str = "main",
    given: Given | None = None,
    *,
    case: int = 0,
    names: Sequence[str] = (),
    rounds: int = ROUNDS,
    seconds: float = BUDGET,
    place: Place | None = None,
    heard: Heard | None = None,
) -> list[tuple[float, ...]]:
    """Return how many seconds a call takes in each module, one number for each round.

    The function is a Relax function, or a PrimFunc, which is called by itself. The modules are
    called in turn, for about `seconds` in all; in fewer rounds, but six, where that takes long.
    The clock is that of the machine that runs them: `place.clock` says which. `names` of the
    modules are used in errors. Raises what `run` raises.
    """
    if rounds < 1:
        raise InputError(f"there are {rounds} rounds: give 1 or more")
    given, place = given or Given(), place or Place()
    told = names or [f"module {number} of {len(mods)}" for number in range(1, len(mods) + 1)]
    work, by_key, made = [], {}, dict[str, list[Argument]]()
    for mod, name in zip(mods, told, strict=True):
        try:
            one, sent = _timed(mod, function, given, case, place, made)
        except ValueError as failure:
            raise type(failure)(f"{name}: {failure}") from None
        work.append(replace(one, name=name))
        by_key[one.key] = sent
    if not place.isolate:
        return _here(function, lambda: timed(work, by_key.__getitem__, rounds, seconds))
    answer = elsewhere(perform_timed, (work, rounds, seconds), by_key, function, place, heard)
    assert isinstance(answer, list), "it is what timing gives"
    return answer


def _timed(
    mod: ir.IRModule,
    function: str,
    given: Given,
    case: int,
    place: Place,
    made: dict[str, list[Argument]],
) -> tuple[Timed, ir.IRModule]:
    """Return what is to be timed, and the module that it is in.

    PrimFuncs with the same parameters get the very same arguments, which are then sent once;
    `made` are those of before.
    """
    if not _is_prim_func(mod, function):
        cases = given.cases(mod, function)
        _check_case(cases, case)
        return Timed(key_of(mod), function, cases[case], where=place.where), mod
    _check_case([given], case)
    key, alone = _lone(mod, function, given)
    arguments = made.setdefault(alone.signature, alone.arguments)
    work = Timed(key, function, arguments, where=place.where, is_prim=True)
    return work, alone.module


def _run_lone(
    mod: ir.IRModule,
    function: str,
    given: Given,
    trace: Wish | None,
    place: Place,
    heard: Heard | None,
) -> RunResult:
    if trace is not None:
        raise InputError(
            f"{function!r} is a PrimFunc, which has no bindings: trace a Relax function"
        )
    key, alone = _lone(mod, function, given)
    is_once = bool(python_callees(alone.module))
    job = LoneJob(key, function, alone.arguments, alone.written, is_once, place.where)
    if not place.isolate:
        return _here(function, lambda: do_lone(job, lambda: alone.module))
    result = elsewhere(perform_lone, job, {key: alone.module}, function, place, heard)
    assert isinstance(result, RunResult), "it is what a job gives"
    return result


def _lone(mod: ir.IRModule, function: str, given: Given) -> tuple[str, Lone]:
    """Return a PrimFunc by itself, and what stands for its module."""
    alone = lone(mod, function, given.inputs, given.sizes or {}, given.seed)
    return f"{key_of(mod)}, {function}", alone


def _is_prim_func(mod: ir.IRModule, function: str) -> bool:
    return isinstance(function_named(mod, function), tirx.PrimFunc)


def _here(function: str, work: Callable[[], Result]) -> Result:
    """Do some work in this process; raise RunError where its memory is too little."""
    try:
        return work()
    except MemoryError as failure:
        raise RunError(f"{function!r} asked for more memory than there is") from failure


def _check_case(cases: Sequence[object], case: int) -> None:
    if not 0 <= case < len(cases):
        raise InputError(f"there is no case {case}: give one of 0 to {len(cases) - 1}")
