"""Run, trace and measure the stages of a session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from irviz.errors import RunError
from irviz.model.graph.graph import NodeId
from irviz.model.runs.array_summary import summarise
from irviz.model.runs.measurement import Measurement, Timing
from irviz.model.runs.run_result import RunResult, compare_runs
from irviz.model.runs.trace import NodeValue, NodeVisit, Trace
from irviz.runtime.inputs.argument_lists import Array, Inputs
from irviz.runtime.run import CallInputs, TraceRequest, measure, run
from irviz.session.stage_cache import array_of, constants_of
from irviz.session.state import SessionState
from irviz.transforms.stage import Stage
from irviz.view.text.tables import StageRow, StageTable, TimingTable
from irviz.worker.supervisor import OnProgress


def call_inputs_for(state: SessionState, inputs: Inputs) -> CallInputs:
    """Return the session's call inputs, with other inputs (which have no labels) where given."""
    own = state.call_inputs
    return own if inputs is None else replace(own, inputs=inputs, labels=None)


def resolved_sizes(state: SessionState, stage_id: str | None = None) -> Mapping[str, int]:
    """Return the symbolic sizes of a run, by name; the session's own if it cannot be run."""
    call = state.call_inputs
    try:
        return call.plan(state.stage(stage_id).module, state.function).dims
    except ValueError:
        return call.sizes


def run_stage(
    state: SessionState,
    stage_id: str | None,
    inputs: Inputs = None,
    trace: TraceRequest | None = None,
    on_progress: OnProgress | None = None,
) -> RunResult:
    """Run a stage; raise what `run` raises.

    The trace, if one is requested, begins with the values of the function's constants.
    """
    stage, call = state.stage(stage_id), call_inputs_for(state, inputs)
    result = run(
        stage.module,
        state.function,
        call,
        trace=trace,
        config=state.run_config,
        on_progress=on_progress,
    )
    if trace is None or result.trace is None:
        return result
    return replace(result, trace=_with_constants(result.trace, stage, trace.budget))


def trace_stage(
    state: SessionState,
    stage_id: str | None,
    request: TraceRequest,
    on_progress: OnProgress | None = None,
) -> Trace:
    """Run a stage and return the value at every node; raise what `run` raises."""
    trace = run_stage(state, stage_id, trace=request, on_progress=on_progress).trace
    assert trace is not None, "it was requested"
    return trace


def node_arrays(
    state: SessionState,
    stage_id: str | None,
    node: NodeId,
    case: int,
    on_progress: OnProgress | None = None,
) -> tuple[Array, ...]:
    """Return the whole tensors of a node's value: the stage is run for them, constants are read.

    Raises KeyError for a node that was not reached, and what `run` raises.
    """
    constant = array_of(state.stage(stage_id), state.function, node)
    if constant is not None:  # a trace leaves large ones out
        return (constant,)
    trace = trace_stage(state, stage_id, TraceRequest(case, kept=(node,)), on_progress)
    return tuple(np.asarray(one) for one in trace[node].value.arrays)


def measure_stages(
    state: SessionState,
    stage_ids: Sequence[str],
    inputs: Inputs,
    case: int,
    on_progress: OnProgress | None,
) -> TimingTable:
    """Measure stages in turn, by default all that did not fail; raise what `run` raises."""
    stages = [state.stage(one) for one in stage_ids] or [
        stage for stage in state.tree.stages if not stage.error
    ]
    seconds = measure(
        [stage.module for stage in stages],
        state.function,
        call_inputs_for(state, inputs),
        case=case,
        names=[f"{stage.id} {stage.label}" for stage in stages],
        config=state.run_config,
        on_progress=on_progress,
    )
    timings = [
        Timing(stage.id, stage.label, taken) for stage, taken in zip(stages, seconds, strict=True)
    ]
    return TimingTable(Measurement(tuple(timings), state.run_config.clock))


def report(state: SessionState) -> StageTable:
    """Run all stages and compare each with the first that ran: a table, one row a stage.

    A stage that failed, or that cannot be run, has a row with the reason.
    """
    rows: list[StageRow] = []
    first: RunResult | None = None
    for stage in state.tree.stages:
        result, error = None, stage.error
        if not error:
            try:
                result = run_stage(state, stage.id)
            except (RunError, ValueError) as failure:
                error = str(failure)
        first = first or result
        comparison = compare_runs(result, first) if result and first else None
        rows.append(StageRow(stage.id, stage.label, result, comparison, error))
    return StageTable(tuple(rows))


def input_of_case(inputs: Inputs, case: int) -> Array | None:
    """Return the one input array of a case, or None where there are more inputs or none."""
    arrays = list(inputs.values()) if isinstance(inputs, Mapping) else [inputs]
    chosen = arrays[0] if len(arrays) == 1 else None
    if not isinstance(chosen, np.ndarray) or chosen.ndim < 2 or not 0 <= case < len(chosen):
        return None
    array: Array = chosen[case]
    return array


def _with_constants(trace: Trace, stage: Stage, budget: int) -> Trace:
    """Put the constants of the stage's function before what was recorded, if they fit a budget."""
    arrays = {
        node: array
        for node in constants_of(stage, trace.function)
        if (array := array_of(stage, trace.function, node)) is not None
    }
    if sum(array.nbytes for array in arrays.values()) > budget:
        return trace
    constants = {
        node: NodeVisit(NodeValue((summarise(array),), (array,))) for node, array in arrays.items()
    }
    return replace(trace, visits={**constants, **trace.visits})
