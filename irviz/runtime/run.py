"""Run a function of a module, for its results, its trace and its times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from tvm import ir, tirx

from irviz.ir.fit import Argument
from irviz.ir.identity import function_named, relax_function
from irviz.model.result import RunResult
from irviz.runtime.inputs import Array, InputError, Inputs, Plan, plan_inputs
from irviz.runtime.job import Job, do, perform
from irviz.runtime.machine import RunError, said
from irviz.runtime.measure import BUDGET, ROUNDS, Timed, perform_timed, timed
from irviz.runtime.place import CancelledRunError, Place, elsewhere, key_of
from irviz.runtime.tracing import Wish
from irviz.worker.pool import Heard

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

    A module is built once and kept while it is among the last sixteen. With `trace` the result
    has a trace of one case. `heard` is told what is being done. Seconds are those of the machine
    that runs it: of another one (`place.device`) they are told by its server, but with the way
    there and back where a call takes 0.1 s or more, or is impure. Raises RunError when TVM cannot
    build or run it, when it ends its process, takes more time or memory than it may, or the other
    machine is not there or gets lost; InputError or MisfitError for wrong inputs.
    """
    given, place = given or Given(), place or Place()
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
        try:
            result = do(job, lambda: mod)
        except MemoryError as failure:
            raise RunError(f"{function!r} asked for more memory than there is") from failure
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
    work, by_key = [], {}
    for mod, name in zip(mods, told, strict=True):
        try:
            one, sent = _timed(mod, function, given, case, place)
        except ValueError as failure:
            raise type(failure)(f"{name}: {failure}") from None
        work.append(replace(one, name=name))
        by_key[one.key] = sent
    if not place.isolate:
        return timed(work, by_key.__getitem__, rounds, seconds)
    answer = elsewhere(perform_timed, (work, rounds, seconds), by_key, function, place, heard)
    assert isinstance(answer, list), "it is what timing gives"
    return answer


def _timed(
    mod: ir.IRModule, function: str, given: Given, case: int, place: Place
) -> tuple[Timed, ir.IRModule]:
    """Return what is to be timed, and the module that it is in."""
    if not isinstance(function_named(mod, function), tirx.PrimFunc):
        cases = given.cases(mod, function)
        _check_case(cases, case)
        return Timed(key_of(mod), function, cases[case], where=place.where), mod
    from irviz.runtime.lone import lone  # which needs what is above

    _check_case([given], case)
    alone, arguments = lone(mod, function, given.inputs, given.sizes or {}, given.seed)
    key = f"{key_of(mod)}, {function}"
    return Timed(key, function, arguments, where=place.where, is_prim=True), alone


def _check_case(cases: Sequence[object], case: int) -> None:
    if not 0 <= case < len(cases):
        raise InputError(f"there is no case {case}: give one of 0 to {len(cases) - 1}")
