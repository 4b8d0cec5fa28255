"""Draw a stage: its graph with overlays, a node's value, its memory."""

from __future__ import annotations

from irviz.errors import DrawError
from irviz.ir.dps_view import destination_passing
from irviz.model.graph.graph import NodeId
from irviz.model.graph.inlined_ids import SEPARATOR
from irviz.model.runs.array_summary import summarise
from irviz.model.runs.trace import Array
from irviz.runtime.run import TraceRequest
from irviz.session.divergence_report import first_difference
from irviz.session.overlays import OVERLAYS, OverlayKind, trace_overlay
from irviz.session.runs import node_arrays, trace_stage
from irviz.session.stage_cache import graph_of
from irviz.session.stage_view import stage_view
from irviz.session.state import SessionState
from irviz.view.figure import Figure
from irviz.view.graph.figure import GraphFigure, draw_graph
from irviz.view.values.charts import draw_chart as draw_chart
from irviz.view.values.charts import fitting_charts


def node_named(state: SessionState, stage_id: str, name: str) -> NodeId:
    """Return the id of a node, which users write with a slash: `lv3/y` is in what `lv3` calls."""
    if SEPARATOR not in name and name not in graph_of(state.stage(stage_id), state.function).index:
        name = name.replace("/", SEPARATOR)
    return NodeId(name)


def node_value(state: SessionState, node: str, stage: str | None, case: int) -> tuple[Array, ...]:
    """Return the whole tensors of a node's value; raise what `node_arrays` raises."""
    stage_id = state.stage(stage).id
    return node_arrays(state, stage_id, node_named(state, stage_id, node), case)


def draw_overlay(
    state: SessionState,
    by: OverlayKind,
    stage: str | None,
    reference: str,
    case: int | None,
    theme: str,
    direction: str,
) -> GraphFigure:
    """Draw a stage with its nodes coloured; raise ValueError for an unknown overlay or theme."""
    if by not in OVERLAYS:
        known = ", ".join(map(repr, OVERLAYS))
        raise DrawError(f"nodes cannot be coloured by {by!r}; choose one of {known}")
    chosen = state.stage(stage)
    view = stage_view(chosen, state.function)
    if by == "difference":
        report = first_difference(state, chosen.id, reference, case)
        overlay = report.overlay(view, chosen.id)
    else:
        trace = trace_stage(state, chosen.id, TraceRequest(case or 0))
        overlay = trace_overlay(by, trace, view)
    return draw_graph(view.graph, theme, direction, overlay=overlay)


def draw_value(arrays: tuple[Array, ...], kind: str | None, theme: str, title: str) -> Figure:
    """Draw the first tensor of a value; raise ValueError for a kind that does not fit it."""
    if not arrays:
        raise DrawError(f"the value of {title!r} is no tensor: draw that of another node")
    array = arrays[0]
    fitting = fitting_charts(array.shape)
    if kind and kind not in fitting:
        known = ", ".join(map(repr, fitting)) or "another node, this one is empty"
        raise DrawError(f"{kind!r} does not fit a value of shape {array.shape}: give {known}")
    return draw_chart(kind or fitting[0], array, summarise(array), theme, title=title)


def draw_destination_passing(
    state: SessionState, stage: str | None, planned: bool, theme: str, direction: str
) -> GraphFigure:
    """Draw a stage's buffers, and which call writes into which."""
    module = state.stage(stage).module
    graph = destination_passing(module, state.function, planned=planned)
    return draw_graph(graph, theme, direction)
