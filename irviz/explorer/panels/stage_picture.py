"""One of the two pictures: a stage under a line that names it, or why it cannot be drawn."""

from __future__ import annotations

from collections.abc import Mapping

import ipywidgets as widgets

from irviz.explorer import actions
from irviz.explorer.canvas import Canvas
from irviz.explorer.panels.controls import paragraph, show_if
from irviz.explorer.panels.panel import Panel
from irviz.explorer.state import Side, State
from irviz.explorer.store import Store
from irviz.explorer.view_model import caption, changes, dimmed, scene, shown_selection
from irviz.explorer.viewer.messages import CanvasMessage
from irviz.view.geometry import Point
from irviz.view.graph.figure import GraphFigure
from irviz.view.templating import render


class StagePicture(Panel):
    """Show the stage of a side, never the picture of one under the name of another."""

    def __init__(self, store: Store, side: Side) -> None:
        super().__init__(store)
        self._side: Side = side
        self._figure: GraphFigure | None = None
        self._function = ""
        self._places: Mapping[str, Point] = {}
        self.canvas, self._caption, self._words = Canvas(), widgets.HTML(), widgets.HTML()
        self.widget = widgets.VBox([self._caption, self._words, self.canvas])
        self.on_change(self.canvas, lambda node: self.send(actions.Select(node, side)), "selected")
        self.on_change(
            self.canvas, lambda is_dark: self.send(actions.SetField("is_dark", is_dark)), "dark"
        )
        self.canvas.on_msg(lambda _, content, __: self.receive(content, CanvasMessage, side=side))

    def _parts(self, state: State) -> tuple[object, ...]:
        side = self._side
        stage = state.stage_of(side)
        if stage is None:
            return (None,)
        marks = changes(state, side), dimmed(state, side)
        return (*marks, scene(state, side), shown_selection(state, side), *_told(state, side))

    def _show(self, state: State) -> None:
        """Draw the stage with its marks, or hide it where there is none on this side."""
        side = self._side
        show_if(self.widget, state.stage_of(side) is not None)
        if state.stage_of(side) is None:
            return
        drawn = scene(state, side)
        stage_id, label, facts = caption(state, side)
        name = f"graph of {state.function}, stage {stage_id}"
        with self.canvas.hold_sync():
            if drawn.figure is None:
                self._figure, self._places = None, {}
                self.canvas.clear(name)
            else:
                self._draw(drawn.figure, name, state)
                self.canvas.highlighted = changes(state, side)
                self.canvas.dimmed = dimmed(state, side)
                self.canvas.selected = shown_selection(state, side)
        self._caption.value = render("caption", stage=stage_id, label=label, facts=facts)
        note = drawn.figure.note if drawn.figure is not None else ""
        self._words.value = paragraph(drawn.error, "irviz-error", "alert") + paragraph(
            note, "irviz-hint", "status"
        )

    def _draw(self, figure: GraphFigure, name: str, state: State) -> None:
        """Draw a figure, with what was opened or closed where it was before."""
        if figure is self._figure:
            self.canvas.label = name
            return
        if state.function != self._function:
            self.canvas.viewport = []
        kept = state.anchor
        if kept:
            self.canvas.keep_in_place(self._places.get(kept), figure.places.get(kept))
        self.canvas.show(figure, name, least=self.canvas.height if kept else 0)
        self._figure, self._function, self._places = figure, state.function, figure.places


def _told(state: State, side: Side) -> tuple[object, ...]:
    stage_id, label, facts = caption(state, side)
    return stage_id, label, "; ".join(facts), state.function
