"""Running the stages of a session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from tvm import ir, tirx

from irviz.ir.identity import function_named
from irviz.model.result import RunResult, compare
from irviz.runtime.inputs import Array
from irviz.runtime.prim_func import run_prim_func
from irviz.runtime.run import RunError, run
from irviz.transforms.stage import Stage
from irviz.view.report import Report, Row


def run_function(
    mod: ir.IRModule,
    name: str,
    inputs: Mapping[str, Array] | Array | None,
    params: Mapping[str, Array],
    labels: NDArray[np.int64] | None,
) -> RunResult:
    """Run a Relax function on the VM, or call a PrimFunc; raise what `run` raises.

    A PrimFunc takes those of the inputs that are named as its buffers are, in one case, and
    random numbers for the others.
    """
    function = function_named(mod, name)
    if not isinstance(function, tirx.PrimFunc):
        return run(mod, name, inputs, params, labels)
    named = inputs if isinstance(inputs, Mapping) else {}
    own = {param.name for param in function.params}
    return run_prim_func(mod, name, {key: named[key] for key in named if key in own})


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


def input_of_case(inputs: Mapping[str, Array] | Array | None, case: int) -> Array | None:
    """Return the one input array of a case, or None where there are more inputs or none."""
    arrays = list(inputs.values()) if isinstance(inputs, Mapping) else [inputs]
    if len(arrays) != 1 or arrays[0] is None or np.ndim(arrays[0]) < 2:
        return None
    chosen: Array = np.asarray(arrays[0])[case]
    return chosen
