"""Running the stages of a session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from tvm import ir

from irviz.app.read import array_of, constants_of
from irviz.model.measurement import Measurement, Timing
from irviz.model.result import RunResult, compare
from irviz.model.summary import summarise
from irviz.model.trace import Trace, Value, Visit
from irviz.runtime.inputs import Array, Inputs
from irviz.runtime.run import Given, Place, RunError, Wish, measure, run
from irviz.transforms.stage import Stage
from irviz.view.report import Report, Row
from irviz.view.times import Times
from irviz.worker.pool import Heard


def run_function(
    mod: ir.IRModule,
    name: str,
    given: Given,
    wish: Wish | None = None,
    place: Place | None = None,
    heard: Heard | None = None,
) -> RunResult:
    """Run a function of a module; raise what `run` raises."""
    return run(mod, name, given, trace=wish, place=place, heard=heard)


def with_constants(trace: Trace, stage: Stage, budget: int) -> Trace:
    """Put the constants of the stage's function before what was recorded, if they fit a budget."""
    arrays = {
        node: array
        for node in constants_of(stage, trace.function)
        if (array := array_of(stage, trace.function, node)) is not None
    }
    if sum(array.nbytes for array in arrays.values()) > budget:
        return trace
    constants = {
        node: Visit(Value((summarise(array),), (array,))) for node, array in arrays.items()
    }
    return replace(trace, visits={**constants, **trace.visits})


def measured(
    stages: Sequence[Stage],
    function: str,
    given: Given,
    case: int,
    place: Place,
    heard: Heard | None,
) -> Times:
    """Measure a function of stages in turn; raise what `run` raises."""
    mods = [stage.module for stage in stages]
    names = [f"{stage.id} {stage.label}" for stage in stages]
    found = measure(mods, function, given, case=case, names=names, place=place, heard=heard)
    timings = [
        Timing(stage.id, stage.label, seconds) for stage, seconds in zip(stages, found, strict=True)
    ]
    return Times(Measurement(tuple(timings), place.clock))


def report(stages: Sequence[Stage], run: Callable[[str], RunResult]) -> Report:
    """Run stages and set each against the first that ran: a table, one row a stage.

    A stage that failed, or that cannot be run, has a row that says why.
    """
    rows: list[Row] = []
    first: RunResult | None = None
    for stage in stages:
        result, error = None, stage.error
        if not error:
            try:
                result = run(stage.id)
            except (RunError, ValueError) as failure:
                error = str(failure)
        first = first or result
        against = compare(result, first) if result and first else None
        rows.append(Row(stage.id, stage.label, result, against, error))
    return Report(tuple(rows))


def input_of_case(inputs: Inputs, case: int) -> Array | None:
    """Return the one input array of a case, or None where there are more inputs or none."""
    arrays = list(inputs.values()) if isinstance(inputs, Mapping) else [inputs]
    chosen = arrays[0] if len(arrays) == 1 else None
    if not isinstance(chosen, np.ndarray) or chosen.ndim < 2 or not 0 <= case < len(chosen):
        return None
    found: Array = chosen[case]
    return found
