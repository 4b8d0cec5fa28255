"""The pictures of the shown stages: what of each is drawn, its layout, overlay and caption."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from irviz.errors import NotFoundError, message_of
from irviz.explorer.state import Side, State, derived
from irviz.ir.module_functions import drawable_functions, prim_funcs
from irviz.model.graph.graph import Graph, NodeKind, RegionKind
from irviz.session.operation_limits import limited
from irviz.session.run_overlays import trace_overlay
from irviz.session.shown_function import StageView, ViewState, stage_view
from irviz.session.stable_layout import (
    ComparedViews,
    SharedLayout,
    chain_part,
    compared_views,
    shared_layouts,
)
from irviz.session.stage_cache import graph_of
from irviz.session.stage_diff import is_lost, lost_function
from irviz.transforms.stage import Stage
from irviz.view.figure import Figure
from irviz.view.graph.graph_figure import Direction, GraphFigure, PlacedGraph
from irviz.view.graph.overlay import Overlay
from irviz.view.theme import ThemeName

Value = TypeVar("Value")

_MOST_NAMES = 2


@dataclass(frozen=True, eq=False)
class Scene:
    """A drawn stage, or why it cannot be drawn.

    `view` is None if the stage cannot be read, `figure` if it cannot be drawn; `error` then says
    why. If the stage lacks the shown function, `instead` lists others to show.
    """

    stage: Stage
    view: StageView | None
    figure: GraphFigure | None
    error: str = ""
    instead: tuple[str, ...] = ()


def attempted(
    what: str, make: Callable[[], Value], stage: Stage, *others: Stage
) -> Value | Exception:
    """Return what a function makes of stages within their limits, or why it cannot.

    Whatever is wrong with a stage, TVM or irviz, it is said in the place of the result.
    """
    try:
        with limited(what, stage, *others):
            return make()
    except Exception as failure:
        return failure


def graph_or_none(stage: Stage, function: str) -> Graph | None:
    """Return the graph of a function, None if it cannot be read."""
    found = attempted("the graph", lambda: graph_of(stage, function), stage)
    return None if isinstance(found, Exception) else found


@derived(
    lambda state: (
        *(state.stage, state.stage_of("reference"), state.view, state.function),
        # a name resolves to something else once that is registered
        graph_or_none(state.stage, state.function),
    )
)
def compared(state: State) -> ComparedViews | Exception | None:
    """Return the views of the two stages, why there are none, or None for a single stage."""
    if not state.reference:
        return None
    ids = state.reference, state.stage_id
    tree, function = state.session.tree, state.function

    def views() -> ComparedViews:
        try:
            return compared_views(tree, *ids, function, state.view)
        except NotFoundError:  # they lack what is looked at: all of it is drawn
            return compared_views(tree, *ids, function, state.view.whole)

    return attempted("the comparison", views, *map(state.session.stage, ids))


@derived(
    lambda state: (
        *(state.function, state.view),
        *(part := chain_part(state.session.tree, state.function)),
        *(graph_or_none(stage, state.function) for stage in part),
    )
)
def _shared_layouts(state: State) -> Mapping[Stage, SharedLayout]:
    """Return the layouts shared by stages that the user can step through."""
    part = chain_part(state.session.tree, state.function)
    if not part:  # it is laid out alone
        return {}
    found = attempted("the layout", lambda: shared_layouts(part, state.function, state.view), *part)
    return {} if isinstance(found, Exception) else found


def _shared_layout(state: State) -> PlacedGraph | None:
    """Return the current stage's layout from a shared one, None if it is laid out alone."""
    shared = _shared_layouts(state).get(state.stage)
    return None if shared is None else shared.placed.get(state.stage)


def view_or_why(state: State, side: Side, view: ViewState) -> StageView | Exception:
    """Return what is to be drawn of a stage, or why the stage lacks it."""
    stage = state.stage_of(side)
    if stage is None:
        return NotFoundError("there is no second stage")
    return attempted("the picture", lambda: stage_view(stage, state.function, view), stage)


@derived(
    lambda state, side: (
        *(side, stage := state.stage_of(side), state.view, state.function, compared(state)),
        # a name resolves to something else once that is registered
        None if stage is None else graph_or_none(stage, state.function),
        None if state.reference else _shared_layout(state),
    )
)
def _view(state: State, side: Side) -> StageView | Exception:
    both = compared(state)
    if isinstance(both, ComparedViews):
        return both.after if side == "current" else both.before
    found = view_or_why(state, side, state.view)
    if isinstance(found, ValueError):  # it lacks what is looked at: all of it is drawn
        return view_or_why(state, side, state.view.whole)
    if isinstance(found, Exception) or state.reference:
        return found
    return replace(found, placed=_shared_layout(state))


def view_or_none(state: State, side: Side) -> StageView | None:
    """Return what is drawn of the stage on a side, None if it cannot be read."""
    found = _view(state, side)
    return found if isinstance(found, StageView) else None


@derived(
    lambda state, side: (
        *(side, state.stage_of(side), view_or_none(state, side), state.colour_by),
        *(state.function_runs.traces.get(stage_id_of(state, side)), state.divergence),
    )
)
def overlay(state: State, side: Side) -> Overlay | None:
    """Return the overlay of a side from its own trace, None without one."""
    view, stage_id = view_or_none(state, side), stage_id_of(state, side)
    trace = state.function_runs.traces.get(stage_id)
    if trace is None or view is None or not state.colour_by:
        return None
    if state.colour_by != "difference":
        return trace_overlay(state.colour_by, trace, view)
    report = state.divergence
    return report.overlay(view, stage_id) if report and stage_id in state.pair else None


@derived(lambda state, side: (side, state.stage_of(side), _view(state, side), overlay(state, side)))
def scene(state: State, side: Side) -> Scene:
    """Draw the stage on a side; the scene reports any failure."""
    stage = state.stage_of(side)
    if stage is None:
        raise ValueError("there is no second stage")
    view = _view(state, side)
    tree, function = state.session.tree, state.function
    if stage.parent is not None and not stage.module.functions:
        return Scene(stage, None, None, "This stage has no functions left.")
    if drawable_functions(stage.module) and is_lost(tree, stage, function):
        lost = lost_function(tree, stage, function)
        return Scene(stage, None, None, lost.words, lost.instead)
    if isinstance(view, StageView) and _lacks_blocks(stage, view):
        return Scene(stage, view, None, "No blocks are left to draw: they were lowered. See Loops.")
    try:
        if isinstance(view, Exception):
            raise view
        with limited("the picture", stage):
            return Scene(stage, view, view.figure("page", overlay=overlay(state, side)))
    except Exception as failure:  # whatever it is, another stage's picture must not stay
        why = f"This stage cannot be drawn: {message_of(failure)}"
        return Scene(stage, None, None, why)


def _lacks_blocks(stage: Stage, view: StageView) -> bool:
    """Tell whether the graph is of a PrimFunc and has nothing but its parameters."""
    graph = view.whole
    is_prim_func = graph.function in prim_funcs(stage.module)
    return is_prim_func and all(node.kind is NodeKind.PARAM for node in graph.nodes)


@derived(
    lambda state, side: (
        *(side, state.stage_of(side), view_or_none(state, side)),
        *(state.is_dimmed, state.divergence),
    )
)
def dimmed(state: State, side: Side) -> list[str]:
    """Return the nodes to dim: those that are equal before the first difference."""
    view, report = view_or_none(state, side), state.divergence
    if view is None or report is None or not state.is_dimmed:
        return []
    return report.dimmed(view, stage_id_of(state, side))


def stage_id_of(state: State, side: Side) -> str:
    """Return the id of the stage on a side."""
    return state.stage_id if side == "current" else state.reference


def facts(view: StageView) -> list[str]:
    """Tell how much of a stage is drawn."""
    found = [f"{view.size:,} nodes"]
    if view.count != view.size:
        found = [f"{view.count:,} of {view.size:,} nodes"]
        groups = sum(node.kind is NodeKind.GROUP for node in view.graph.nodes)
        found += [f"{groups} group{'s' * (groups > 1)}"] if groups else []
    copies = [one.name for one in view.graph.regions if one.kind is RegionKind.REPEAT]
    return found + [f"equal layers {name}" for name in [*dict.fromkeys(copies)][:_MOST_NAMES]]


def shown_figure(
    state: State, *, theme: ThemeName = "course", direction: Direction = "up"
) -> Figure:
    """Draw what is shown: one stage, or two side by side."""
    if not state.reference:
        return state.session.draw(
            view=state.view,
            theme=theme,
            direction=direction,
            overlay=overlay(state, "current"),
            dimmed=dimmed(state, "current"),
        )
    diff = state.session.diff(state.reference, state.stage_id, state.function)
    return diff.figure(
        state.function, theme=theme, direction=direction, expansion=state.view.choices
    )
