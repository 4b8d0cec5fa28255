"""Running the stages of a session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from irviz.model.result import RunResult, compare
from irviz.runtime.inputs import Array
from irviz.runtime.run import RunError
from irviz.transforms.stage import Stage
from irviz.view.report import Report, Row


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
