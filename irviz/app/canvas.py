"""The graph canvas: one widget that shows an SVG and reports what the reader does with it."""

from pathlib import Path

import anywidget
import traitlets

from irviz.view.figure import Figure

_STATIC = Path(__file__).parent / "static"
_LEAST_HEIGHT, _MOST_HEIGHT = 320, 560


class Canvas(anywidget.AnyWidget):
    """Show the SVG of a graph; let the reader pan, zoom, hover and select.

    Python decides what is drawn: `svg` is complete SVG text with its labels already escaped. The
    canvas writes only `selected` and `viewport`.

    Traits:
        svg: The picture, "" for none. Nodes carry `data-node`, edges `data-source` and
            `data-target`; `static/canvas.js` tells the rest of the contract.
        selected: Id of the selected node, "" for none.
        label: Accessible name, such as "graph of main, stage 0".
        highlighted: Ids of the nodes to mark as changed.
        height: Height of the pane in CSS pixels; its width is that of its place on the page.
        viewport: `[x, y, scale]`, with (x, y) the point of the graph in the middle of the pane and
            `scale` in CSS pixels per unit of the SVG; `[]` fits the graph to the pane. Reported at
            most ten times a second, so that two canvases can be linked.
    """

    _esm = _STATIC / "canvas.js"
    _css = _STATIC / "canvas.css"

    svg = traitlets.Unicode("").tag(sync=True)
    selected = traitlets.Unicode("").tag(sync=True)
    label = traitlets.Unicode("").tag(sync=True)
    highlighted = traitlets.List(traitlets.Unicode()).tag(sync=True)
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

    def show(self, figure: Figure, label: str) -> None:
        """Show a figure in a pane of about its height, under an accessible name."""
        self.height = round(min(max(figure.height + 24, _LEAST_HEIGHT), _MOST_HEIGHT))
        self.svg, self.label = figure.svg, label
