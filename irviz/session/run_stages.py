"""Run, trace and compare the stages of a session."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from irviz.errors import RunError, UntrustedError, error_summary
from irviz.ir.framework_calls import CANNOT
from irviz.ir.module_functions import drawable_functions, relax_function
from irviz.ir.tvmscript import source_words
from irviz.model.graph.graph import Graph, NodeId
from irviz.model.graph.layers import layer_name
from irviz.model.runs.array_diff import scaled_tolerance, summarise
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
from irviz.model.runs.run_result import (
    Comparison,
    Origin,
    OriginRun,
    OriginVerdict,
    RunResult,
    compare_runs,
)
from irviz.model.runs.timing_statistics import Measurement, Timing
from irviz.runtime.local_vm import remembered
from irviz.runtime.run import CallInputs, Inputs, RunConfig, TraceRequest, measure, run
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
    difference_amount,
    difference_summary,
    divergence_summary,
    node_path,
)
from irviz.worker.sandbox import default_memory_limit
from irviz.worker.supervisor import RUNS, OnProgress


def call_inputs_for(state: SessionState, inputs: Inputs) -> CallInputs:
    """Return the session's call inputs; `inputs`, if given, replace its inputs and labels."""
    own = state.call_inputs
    return own if inputs is None else replace(own, inputs=inputs, labels=None)


class StageRuns(SessionState):
    """The state of a session, and runs of its stages."""

    def run(
        self,
        inputs: Inputs = None,
        *,
        stage: str | None = None,
        trace: TraceRequest | None = None,
        on_progress: OnProgress | None = None,
    ) -> RunResult:
        """Build and run a stage.

        If stage 0 was imported from torch or ONNX, the original is run too, and `RunResult.origin`
        compares its results with TVM's.

        Args:
            inputs: Inputs to use in place of the session's.
            trace: What to record for the result's `trace`, which also has the function's constants.
            on_progress: Called with the current step, as text.
        """
        chosen, call = self.stage(stage), call_inputs_for(self, inputs)
        self.check_run(f"running stage {chosen.id}", chosen)
        try:
            result = run(
                chosen.module,
                self.function,
                call,
                trace=trace,
                config=self.config_for(chosen),
                on_progress=on_progress,
            )
        except RunError as failure:
            raise _with_places(failure, chosen, self.function) from failure.__cause__
        verdict = origin_verdict(self, chosen, call, result, on_progress)
        result = replace(result, origin=verdict, value=_value(self, chosen, result))
        if trace is None or result.trace is None:
            return result
        return replace(result, trace=_with_constants(result.trace, chosen, trace.budget))

    def compare(self, stage: str, reference: str, inputs: Inputs = None) -> Comparison:
        """Run two stages on the same inputs and compare the first with the second."""
        return compare_runs(self.run(inputs, stage=stage), self.run(inputs, stage=reference))

    def measure(
        self,
        *stages: str,
        inputs: Inputs = None,
        case: int = 0,
        on_progress: OnProgress | None = None,
    ) -> TimingTable:
        """Time stages alternately, by default all; ratios are relative to the first."""
        chosen = [self.stage(one) for one in stages] or [s for s in self.stages if not s.error]
        self.check_run("measuring stages", *chosen)
        seconds = measure(
            [stage.module for stage in chosen],
            self.function,
            call_inputs_for(self, inputs),
            case=case,
            names=[f"{stage.id} {stage.label}" for stage in chosen],
            config=self.config_for(*chosen),
            on_progress=on_progress,
        )
        timings = [Timing(s.id, s.label, taken) for s, taken in zip(chosen, seconds, strict=True)]
        return TimingTable(Measurement(tuple(timings), self.run_config.clock))

    def report(self) -> StageTable:
        """Run all stages, compare each with the first, and return a table with one row per stage.

        A stage that failed or cannot be run has a row with the reason. A stage without the
        function, as most stages of a compilation are, has no row.
        """
        rows: list[StageTableRow] = []
        first: RunResult | None = None
        for stage in self.stages:
            if self.function not in drawable_functions(stage.module):
                continue
            result, error = None, stage.error
            if not error:
                try:
                    result = self.run(stage=stage.id)
                except (RunError, ValueError, UntrustedError) as failure:
                    error = str(failure)
            first = first or result
            comparison = compare_runs(result, first) if result and first else None
            rows.append(StageTableRow(stage.id, stage.label, result, comparison, error))
        return StageTable(tuple(rows))

    def trace(self, stage: str | None = None, *, case: int = 0) -> Trace:
        """Run a stage and return the value at every node."""
        trace = self.run(stage=stage, trace=TraceRequest(case)).trace
        assert trace is not None, "it was requested"
        return trace

    def first_difference(
        self, stage: str, reference: str = "0", *, case: int | None = None
    ) -> DivergenceReport:
        """Trace two stages and find the first node whose values differ.

        The result also tells how the values of all other nodes differ. By default `case` is the one
        whose outputs differ most.
        """
        ids = self.stage(stage).id, self.stage(reference).id
        if case is None:
            case = self.compare(*ids).worst_case or 0
        traces = self.trace(ids[0], case=case), self.trace(ids[1], case=case)
        return compare_traces(self, ids, traces)


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
    session: StageRuns,
    stage_id: str | None,
    node: NodeId,
    case: int,
    on_progress: OnProgress | None = None,
) -> tuple[Array, ...]:
    """Return the full tensors of a node's value, by running the stage unless it is a constant.

    Raises KeyError if the run did not reach the node, and what `run` raises.
    """
    constant = array_of(session.stage(stage_id), session.function, node)
    if constant is not None:  # a trace leaves large ones out
        return (constant,)
    request = TraceRequest(case, kept=(node,))
    trace = session.run(stage=stage_id, trace=request, on_progress=on_progress).trace
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
        own = self._nodes_in(stage_id)
        deltas = {
            own[one]: difference.max_abs
            for one, difference in self.differences.items()
            if difference.verdict is not None
        }
        flagged = [own[self.divergence.node]] if self.divergence else []
        return difference_overlay(deltas, view, flagged)

    def dimmed(self, view: StageView, stage_id: str) -> list[str]:
        """Return the equal nodes before the first difference, in the view of one of the two."""
        own = self._nodes_in(stage_id)
        upstream = self.divergence.upstream if self.divergence else ()
        return dimmed_places([own[one] for one in upstream], own.values(), view)

    def _nodes_in(self, stage_id: str) -> dict[NodeId, NodeId]:
        """Return the compared nodes in one of the two stages, by those of the first."""
        is_first = stage_id == self.stages[0]
        return {one: one if is_first else each.reference for one, each in self.differences.items()}


def compare_traces(
    session: StageRuns,
    stages: tuple[str, str],
    traces: tuple[Trace, Trace],
    on_progress: OnProgress | None = None,
) -> DivergenceReport:
    """Compare two traces of the same input; raise what `run` raises.

    Values that were too large to keep are recorded again if they are not equal.
    """
    stage_of: dict[int, str] = {id(trace): one for one, trace in zip(stages, traces, strict=True)}

    def fetch(trace: Trace, node: NodeId) -> Sequence[Array | None]:
        return node_arrays(session, stage_of[id(trace)], node, trace.case, on_progress)

    graph = inlined_graph(session.stage(stages[0]), session.function).graph
    pairs = node_correspondence(session.tree, session.function, *stages)
    found = node_differences(*traces, pairs, fetch=fetch)
    return DivergenceReport(stages, traces, first_divergence(traces[0], graph, found), found, graph)


# --- Compare an imported module's results with those of the model itself, by PyTorch or ONNX -----


_BUDGET = 1 << 28
"""The bytes of values kept to find the first node that differs."""
_MOST = 8
_verdicts: OrderedDict[Hashable, object] = OrderedDict()


def origin_verdict(
    state: SessionState,
    stage: Stage,
    call: CallInputs,
    result: RunResult,
    on_progress: OnProgress | None = None,
) -> OriginVerdict | None:
    """Return how a stage's results compare with its origin's, None if it has no origin.

    Only the first case is compared. The verdict is cached for the next run with the same inputs.
    """
    origin = stage.origin
    if origin is None or state.function != "main" or not result.outputs:
        return None
    config = state.config_for(stage)
    if origin.is_isolated and config.confine:
        return OriginVerdict(
            origin.name, None, "that runs code of the file, which session.trust() allows"
        )
    check = _OriginCheck(origin, stage, call, config, on_progress)
    key = origin, call, stage.module
    return remembered(_verdicts, key, lambda: check.verdict(result), _MOST)


@dataclass(frozen=True, eq=False)
class _OriginCheck:
    """A comparison of a stage's function "main" with its origin."""

    origin: Origin
    stage: Stage
    call: CallInputs
    config: RunConfig
    on_progress: OnProgress | None

    def verdict(self, result: RunResult) -> OriginVerdict:
        """Return how these results of the stage compare."""
        names = [one.name for one in relax_function(self.stage.module, "main").params]
        values = self.call.cases(self.stage.module, "main")[0]
        arguments = {
            name: np.asarray(value)
            for name, value in zip(names, values, strict=True)
            if isinstance(value, np.ndarray | np.generic | bool | int | float)
        }
        name = self.origin.name
        if self.on_progress is not None:
            self.on_progress(f"running {name} for comparison")
        try:
            expected = self.run_origin(arguments, 0)
        except Exception as failure:  # whatever it is, the stage itself has run
            return OriginVerdict(name, None, error_summary(failure))
        first = tuple(output[:1] for output in result.outputs)
        wanted = tuple(output[None] for output in expected.outputs)
        given = [value.dtype for value in values if isinstance(value, np.ndarray)]
        limits = [scaled_tolerance(*pair, given) for pair in zip(first, wanted, strict=False)]
        comparison = compare_runs(RunResult(first, 0.0), RunResult(wanted, 0.0), limits)
        verdict = OriginVerdict(name, comparison)
        if verdict.is_different:
            with contextlib.suppress(Exception):  # the verdict stands without it
                recorded = self.run_origin(arguments, _BUDGET)
                return replace(verdict, remark=self.first_difference(recorded))
        return verdict

    def run_origin(self, arguments: Mapping[str, Array], budget: int) -> OriginRun:
        """Run the origin, and keep so many bytes of values."""
        if not self.origin.is_isolated:
            return self.origin.run(arguments, budget)
        memory = self.config.memory
        return RUNS.call(
            self.origin.run,
            arguments,
            budget,
            seconds=self.config.seconds,
            memory=default_memory_limit() if memory is None else memory,
            on_progress=self.on_progress,
        )

    def first_difference(self, expected: OriginRun) -> str:
        """Describe the first node whose value differs from the origin's; "" if none is known."""
        trace = run(
            self.stage.module,
            "main",
            self.call,
            trace=TraceRequest(budget=_BUDGET),
            config=self.config,
            on_progress=self.on_progress,
        ).trace
        assert trace is not None, "it was requested"
        graph = inlined_graph(self.stage, "main").graph
        pairs = {node: node for node in expected.trace.visits}
        found = first_divergence(trace, graph, node_differences(trace, expected.trace, pairs))
        if found is None:
            return ""
        callee = graph[found.node].callee
        name = f"{node_path(found.node)} ({callee})" if callee else node_path(found.node)
        words = [f"first at {name}: {difference_amount(found.difference)}"]
        if label := expected.labels.get(found.node):
            words.append(f"imported from {label}")
        words.append(
            "no transform was applied: TVM's importer or compiler is wrong, or the model enlarges "
            "the errors of rounding"
        )
        return "; ".join(words)
