"""The graph canvas: one widget that shows an SVG and reports what the reader does with it."""

import re
from collections.abc import Callable
from pathlib import Path

import anywidget
import traitlets

from irviz.view.figure import Figure
from irviz.view.layout import Point

_STATIC = Path(__file__).parent / "static"
_LEAST_HEIGHT, _MOST_HEIGHT = 320, 560


def _in_one(name: str) -> str:
    """Return a script with what it imports from beside it: a widget's script is one file."""
    text = (_STATIC / name).read_text(encoding="utf-8")
    parts = re.split(r'^import \{[^}]*\} from "\./(\w+\.js)";\n', text, flags=re.MULTILINE)
    imported = [(_STATIC / part).read_text(encoding="utf-8") for part in parts[1::2]]
    return "\n".join([*imported, *parts[::2]])


class Canvas(anywidget.AnyWidget):
    """Show the SVG of a graph; let the reader pan, zoom, hover and select.

    Python decides what is drawn: `svg` is complete SVG text with its labels already escaped. The
    canvas writes only `selected`, `viewport` and `dark`, and asks for what is to be opened or
    closed.

    Traits:
        svg: The picture, "" for none. Nodes carry `data-node`, edges `data-source` and
            `data-target`; `static/canvas.js` tells the rest of the contract.
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

    _esm = _in_one("canvas.js")
    _css = "\n".join((_STATIC / name).read_text("utf-8") for name in ("canvas.css", "overlay.css"))

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

    def show(self, figure: Figure, label: str, *, least: int = 0) -> None:
        """Show a figure in a pane of about its height, under an accessible name.

        The pane is no lower than `least`: what a reader looks at would move with it.
        """
        height = round(min(max(figure.height + 24, _LEAST_HEIGHT), _MOST_HEIGHT))
        self.height = max(height, least)
        self.svg, self.label = figure.svg, label

    def keep_in_place(self, before: Point | None, after: Point | None) -> None:
        """Let what was at one point of the last picture, and is at another now, seem to stay."""
        if self.viewport and before and after:
            x, y, scale = self.viewport
            self.viewport = [x + after[0] - before[0], y + after[1] - before[1], scale]

    def on_ask(self, toggle: Callable[[str], None], leave: Callable[[str], None]) -> None:
        """Call `toggle` with what is to be opened or closed, `leave` with a node to close around.

        Anything else that a page may send is ignored.
        """
        asked = {"toggle": toggle, "leave": leave}

        def hear(_: object, content: object, __: object) -> None:
            if isinstance(content, dict):
                for name, act in asked.items():
                    if isinstance(content.get(name), str):
                        act(content[name])

        self.on_msg(hear)
