"""Run, trace and compare the stages of a session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from irviz.errors import RunError, UntrustedError
from irviz.ir.framework_calls import CANNOT
from irviz.ir.module_functions import drawable_functions
from irviz.ir.tvmscript import source_words
from irviz.model.graph.graph import Graph, NodeId
from irviz.model.graph.layers import layer_name
from irviz.model.runs.array_diff import summarise
from irviz.model.runs.execution_trace import (
    Array,
    Divergence,
    NodeDifference,
    NodeValue,
    NodeVisit,
    Trace,
    first_divergence,
    node_differences,
)
from irviz.model.runs.run_result import RunResult, compare_runs
from irviz.model.runs.timing_statistics import Measurement, Timing
from irviz.runtime.run import CallInputs, Inputs, TraceRequest, measure, run
from irviz.session.compare_with_origin import origin_verdict
from irviz.session.run_overlays import difference_overlay, dimmed_places
from irviz.session.session_state import SessionState
from irviz.session.shown_function import StageView
from irviz.session.stage_cache import (
    array_of,
    graph_of,
    inlined_graph,
    node_correspondence,
    reading_of,
    source_lines_of,
)
from irviz.transforms.stage import Stage
from irviz.view.graph.overlay import Overlay
from irviz.view.run_result_html import (
    StageTable,
    StageTableRow,
    TimingTable,
    difference_summary,
    divergence_summary,
)
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
    try:
        result = run(
            stage.module,
            state.function,
            call,
            trace=trace,
            config=state.config_for(stage),
            on_progress=on_progress,
        )
    except RunError as failure:
        raise _with_places(failure, stage, state.function) from failure.__cause__
    verdict = origin_verdict(state, stage, call, result, on_progress)
    result = replace(result, origin=verdict, value=_value(state, stage, result))
    if trace is None or result.trace is None:
        return result
    return replace(result, trace=_with_constants(result.trace, stage, trace.budget))


def measure_stages(
    state: SessionState,
    stages: Sequence[Stage],
    inputs: Inputs,
    case: int,
    on_progress: OnProgress | None = None,
) -> TimingTable:
    """Time stages alternately; ratios are relative to the first."""
    state.check_run("measuring stages", *stages)
    seconds = measure(
        [stage.module for stage in stages],
        state.function,
        call_inputs_for(state, inputs),
        case=case,
        names=[f"{stage.id} {stage.label}" for stage in stages],
        config=state.config_for(*stages),
        on_progress=on_progress,
    )
    timings = [Timing(s.id, s.label, taken) for s, taken in zip(stages, seconds, strict=True)]
    return TimingTable(Measurement(tuple(timings), state.run_config.clock))


def stage_table(state: SessionState) -> StageTable:
    """Run all stages that have the function, and compare each with the first."""
    rows: list[StageTableRow] = []
    first: RunResult | None = None
    for stage in state.stages:
        if state.function not in drawable_functions(stage.module):
            continue
        result, error = None, stage.error
        if not error:
            try:
                result = run_stage(state, stage.id)
            except (RunError, ValueError, UntrustedError) as failure:
                error = str(failure)
        first = first or result
        comparison = compare_runs(result, first) if result and first else None
        rows.append(StageTableRow(stage.id, stage.label, result, comparison, error))
    return StageTable(tuple(rows))


def _value(state: SessionState, stage: Stage, result: RunResult) -> object:
    """Return the outputs of the first case as the model returns them that a stage comes from."""
    origin = state.tree.lineage(stage.id)[0].origin
    if origin is None or state.function != "main" or not result.cases:
        return None
    return origin.value([np.asarray(output[0]) for output in result.outputs])


def _with_places(failure: RunError, stage: Stage, function: str) -> RunError:
    """Add the layers and lines of the nodes that an error of a framework's call may mean."""
    calls = [
        node
        for node in (graph_of(stage, function).nodes if CANNOT in str(failure) else ())
        if any(f"{node.callee}({one.text})" in str(failure) for one in node.literals)
    ]
    if not calls:
        return failure
    lines = source_lines_of(stage, function)
    layers = dict.fromkeys(layer_name(one) for node in calls for one in node.layers)
    words = [
        ", ".join(node.id for node in calls),
        " and ".join(f"layer {name}" for name in layers if name),
        source_words(lines[node.id] for node in calls if node.id in lines),
    ]
    return RunError(f"{failure}; it is {', '.join(filter(None, words))}")


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
    request = TraceRequest(case, kept=(node,))
    trace = run_stage(state, stage_id, trace=request, on_progress=on_progress).trace
    assert trace is not None, "it was requested"
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
        for node in reading_of(stage, trace.function).constants
        if (array := array_of(stage, trace.function, node)) is not None
    }
    if sum(array.nbytes for array in arrays.values()) > budget:
        return trace
    constants = {
        node: NodeVisit(NodeValue((summarise(array),), (array,))) for node, array in arrays.items()
    }
    return replace(trace, visits={**constants, **trace.visits})


@dataclass(frozen=True, eq=False)
class DivergenceReport:
    """A stage's trace compared with a reference's, node by node.

    Attributes:
        stages: The ids of the stage and of the reference.
        traces: Their traces on the same input.
        divergence: Where they first differ, None if they do not.
        differences: The difference of each node's value, by node of the stage.
        graph: The stage's function with all called functions inlined, which has the nodes of its
            trace.
    """

    stages: tuple[str, str]
    traces: tuple[Trace, Trace]
    divergence: Divergence | None
    differences: Mapping[NodeId, NodeDifference]
    graph: Graph

    def __repr__(self) -> str:
        """Return where the stages first differ, in words."""
        return f"<DivergenceReport: {self.line}>"

    @property
    def line(self) -> str:
        """Where the stages first differ, in words."""
        return divergence_summary(self.divergence, *self.stages, self.graph)

    def line_of(self, node_id: str) -> str:
        """Return how a node's value compares with the reference's, "" if unknown."""
        difference = self.differences.get(NodeId(node_id))
        return "" if difference is None else difference_summary(difference, self.stages[1])

    def overlay(self, view: StageView, stage_id: str) -> Overlay:
        """Return the differences as an overlay for the view of one of the two stages."""
        is_first = stage_id == self.stages[0]
        deltas = {
            (one if is_first else difference.reference): difference.max_abs
            for one, difference in self.differences.items()
            if difference.verdict is not None
        }
        first = self.divergence
        flagged = [first.node if is_first else first.reference] if first else []
        return difference_overlay(deltas, view, flagged)

    def dimmed(self, view: StageView, stage_id: str) -> list[str]:
        """Return the equal nodes before the first difference, in the view of one of the two."""
        if self.divergence is None:
            return []
        upstream = self.divergence.upstream
        if stage_id == self.stages[0]:
            return dimmed_places(upstream, self.differences, view)
        other = {one: difference.reference for one, difference in self.differences.items()}
        return dimmed_places([other[one] for one in upstream], other.values(), view)


def compare_traces(
    state: SessionState,
    stages: tuple[str, str],
    traces: tuple[Trace, Trace],
    on_progress: OnProgress | None = None,
) -> DivergenceReport:
    """Compare two traces of the same input; raise what `run` raises.

    Values that were too large to keep are recorded again if they are not equal.
    """
    stage_of: dict[int, str] = {id(trace): one for one, trace in zip(stages, traces, strict=True)}

    def fetch(trace: Trace, node: NodeId) -> Sequence[Array | None]:
        return node_arrays(state, stage_of[id(trace)], node, trace.case, on_progress)

    graph = inlined_graph(state.stage(stages[0]), state.function).graph
    pairs = node_correspondence(state.tree, state.function, *stages)
    found = node_differences(*traces, pairs, fetch=fetch)
    return DivergenceReport(stages, traces, first_divergence(traces[0], graph, found), found, graph)
