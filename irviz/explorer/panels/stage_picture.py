"""One of the two pictures: a stage under a line that names it, or why it cannot be drawn."""

from __future__ import annotations

from collections.abc import Mapping

import anywidget
import ipywidgets as widgets
import traitlets

from irviz.explorer import actions
from irviz.explorer.panels.form_controls import paragraph, show_if
from irviz.explorer.panels.panel import Panel
from irviz.explorer.state import Side, State
from irviz.explorer.store import Store
from irviz.explorer.view_model import caption, changes, dimmed, scene, shown_selection
from irviz.explorer.viewer import STATIC
from irviz.explorer.viewer.messages import CanvasMessage
from irviz.view.geometry import Point
from irviz.view.graph.graph_figure import GraphFigure
from irviz.view.templating import render

_LEAST_HEIGHT, _MOST_HEIGHT = 320, 560


class Canvas(anywidget.AnyWidget):
    """Show the SVG of a graph; let the reader pan, zoom, hover and select.

    Python decides what is drawn: `svg` is complete SVG text with its labels already escaped. The
    canvas writes only `selected`, `viewport` and `dark`, and asks for what is to be opened or
    closed.

    Traits:
        svg: The picture, "" for none. Nodes carry `data-node`, edges `data-source` and
            `data-target`; `viewer/src/canvas.js` has the rest of the contract.
        selected: Id of the selected node, "" for none.
        dark: Whether the page around it is dark, as the page reports.
        label: Accessible name, such as "graph of main, stage 0".
        highlighted: Ids of the nodes to mark as changed.
        dimmed: Ids of the nodes to draw pale, with the edges that carry their values.
        height: Height of the pane in CSS pixels; its width is that of its place on the page.
        viewport: `[x, y, scale]`, with (x, y) the point of the graph in the middle of the pane and
            `scale` in CSS pixels per unit of the SVG; `[]` fits the graph to the pane. Reported at
            most ten times a second, so that two canvases can be linked.
    """

    _esm = STATIC / "canvas.js"
    _css = STATIC / "canvas.css"

    svg = traitlets.Unicode("").tag(sync=True)
    selected = traitlets.Unicode("").tag(sync=True)
    dark = traitlets.Bool(False).tag(sync=True)
    label = traitlets.Unicode("").tag(sync=True)
    highlighted = traitlets.List(traitlets.Unicode()).tag(sync=True)
    dimmed = traitlets.List(traitlets.Unicode()).tag(sync=True)
    height = traitlets.Int(480, min=1).tag(sync=True)
    viewport = traitlets.List(traitlets.Float()).tag(sync=True)

    @traitlets.validate("viewport")
    def _check_viewport(self, proposal: traitlets.Bunch) -> list[float]:
        viewport: list[float] = proposal["value"]
        if viewport and (len(viewport) != 3 or viewport[2] <= 0):
            raise traitlets.TraitError(
                f"viewport is {viewport!r}; give [x, y, scale] with a scale above 0, or [] to fit."
            )
        return viewport

    def show(self, figure: GraphFigure, label: str, *, least: int = 0) -> None:
        """Show a figure in a pane of about its height, under an accessible name.

        The pane is no lower than `least`: what a reader looks at would move with it.
        """
        height = round(min(max(figure.height + 24, _LEAST_HEIGHT), _MOST_HEIGHT))
        self.height = max(height, least)
        self.svg, self.label, self.layout.display = figure.svg, label, ""

    def clear(self, label: str) -> None:
        """Show no picture and take no place, under an accessible name."""
        self.svg, self.label, self.layout.display = "", label, "none"
        self.selected, self.highlighted, self.dimmed = "", [], []

    def keep_in_place(self, before: Point | None, after: Point | None) -> None:
        """Let what was at one point of the last picture, and is at another now, seem to stay."""
        if self.viewport and before and after:
            x, y, scale = self.viewport
            self.viewport = [x + after[0] - before[0], y + after[1] - before[1], scale]


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
        self.sets(self.canvas, "is_dark", "dark")
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
