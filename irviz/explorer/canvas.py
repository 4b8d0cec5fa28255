"""The graph canvas: one widget that shows an SVG and reports what the reader does with it."""

import anywidget
import traitlets

from irviz.explorer.viewer import STATIC
from irviz.view.geometry import Point
from irviz.view.graph.figure import GraphFigure

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
