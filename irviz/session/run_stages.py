"""Run and trace the stages of a session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from irviz.model.graph.graph import NodeId
from irviz.model.runs.array_summary import summarise
from irviz.model.runs.run_result import RunResult
from irviz.model.runs.trace import NodeValue, NodeVisit, Trace
from irviz.runtime.argument_lists import Array, Inputs
from irviz.runtime.run import CallInputs, TraceRequest, run
from irviz.session.origin_check import origin_verdict
from irviz.session.session_state import SessionState
from irviz.session.stage_cache import array_of, constants_of
from irviz.transforms.stage import Stage
from irviz.worker.supervisor import OnProgress


def call_inputs_for(state: SessionState, inputs: Inputs) -> CallInputs:
    """Return the session's call inputs; `inputs`, if given, replace its inputs and labels."""
    own = state.call_inputs
    return own if inputs is None else replace(own, inputs=inputs, labels=None)


def run_stage(
    state: SessionState,
    stage_id: str | None,
    inputs: Inputs = None,
    trace: TraceRequest | None = None,
    on_progress: OnProgress | None = None,
) -> RunResult:
    """Run a stage; raise what `run` raises, and UntrustedError.

    A requested trace starts with the values of the function's constants.
    """
    stage, call = state.stage(stage_id), call_inputs_for(state, inputs)
    state.check_run(f"running stage {stage.id}", stage)
    result = run(
        stage.module,
        state.function,
        call,
        trace=trace,
        config=state.config_for(stage),
        on_progress=on_progress,
    )
    verdict = origin_verdict(state, stage, call, result, on_progress)
    result = replace(result, origin=verdict)
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
    """Return the full tensors of a node's value, by running the stage unless it is a constant.

    Raises KeyError if the run did not reach the node, and what `run` raises.
    """
    constant = array_of(state.stage(stage_id), state.function, node)
    if constant is not None:  # a trace leaves large ones out
        return (constant,)
    trace = trace_stage(state, stage_id, TraceRequest(case, kept=(node,)), on_progress)
    return tuple(np.asarray(one) for one in trace[node].value.arrays)


def input_of_case(inputs: Inputs, case: int) -> Array | None:
    """Return the input array of a case, or None unless there is exactly one."""
    arrays = list(inputs.values()) if isinstance(inputs, Mapping) else [inputs]
    chosen = arrays[0] if len(arrays) == 1 else None
    if not isinstance(chosen, np.ndarray) or chosen.ndim < 2 or not 0 <= case < len(chosen):
        return None
    array: Array = chosen[case]
    return array


def _with_constants(trace: Trace, stage: Stage, budget: int) -> Trace:
    """Prepend the constants of the stage's function to a trace, within a budget of bytes."""
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
