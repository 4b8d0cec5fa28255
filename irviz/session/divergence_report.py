"""Where the traces of two stages first differ, and how the values of their nodes compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from irviz.model.graph.graph import Graph, NodeId
from irviz.model.runs.divergence import (
    Divergence,
    NodeDifference,
    first_divergence,
    node_differences,
)
from irviz.model.runs.run_result import compare_runs
from irviz.model.runs.trace import Array, Trace
from irviz.runtime.run import TraceRequest
from irviz.session.run_overlays import difference_overlay, dimmed_places
from irviz.session.run_stages import node_arrays, run_stage, trace_stage
from irviz.session.session_state import SessionState
from irviz.session.stage_cache import inlined_graph, node_correspondence
from irviz.session.visible_function import StageView
from irviz.view.graph.overlay import Overlay
from irviz.view.text.run_results import difference_summary, divergence_summary
from irviz.worker.supervisor import OnProgress


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


def first_difference(
    state: SessionState, stage_id: str, reference: str, case: int | None
) -> DivergenceReport:
    """Trace two stages for the same input and compare them; raise what `run` raises.

    By default, the case is the one whose outputs differ most.
    """
    if case is None:
        case = compare_runs(run_stage(state, stage_id), run_stage(state, reference)).worst_case or 0
    request = TraceRequest(case)
    traces = trace_stage(state, stage_id, request), trace_stage(state, reference, request)
    return compare_traces(state, (state.stage(stage_id).id, state.stage(reference).id), traces)


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
