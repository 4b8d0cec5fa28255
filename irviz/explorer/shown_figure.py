"""The current picture as a figure."""

from __future__ import annotations

from irviz.explorer.selectors import dimmed, overlay
from irviz.explorer.state import State
from irviz.view.figure import Figure
from irviz.view.graph.graph_figure import Direction
from irviz.view.theme import ThemeName


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
