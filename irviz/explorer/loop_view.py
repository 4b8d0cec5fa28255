"""The loop nest as a widget: loops and blocks are chosen by clicks, and marked."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import anywidget
import traitlets

from irviz.explorer.viewer import STATIC
from irviz.model.loops import LoopNest, walk
from irviz.view.text.loop_nest_html import loop_nest_html


class LoopView(anywidget.AnyWidget):
    """Show a loop nest and let the reader choose loops and blocks of it.

    Traits:
        html: What is shown, of `view.loops`, "" for nothing; see `viewer/src/loops.js`.
        label: Accessible name, such as "loops of mm_relu, stage 2".
        chosen: Ids of the chosen nodes, in the order of the clicks; written by the widget.
        marked: Ids of the nodes that an error means.
        many: Whether a click adds to what is chosen, as it does with ctrl, ⌘ or shift.
    """

    _esm = STATIC / "loops.js"
    _css = STATIC / "loops.css"

    html = traitlets.Unicode("").tag(sync=True)
    label = traitlets.Unicode("").tag(sync=True)
    chosen = traitlets.List(traitlets.Unicode()).tag(sync=True)
    marked = traitlets.List(traitlets.Unicode()).tag(sync=True)
    many = traitlets.Bool(False).tag(sync=True)

    def show(self, nest: LoopNest, choosable: Collection[str], label: str) -> None:
        """Show a nest; what was chosen and is gone, or is no choice any more, is not chosen now."""
        there = {node.id for node in walk(nest)}
        with self.hold_sync():
            self.html, self.label = loop_nest_html(nest, choosable), label
            self.chosen = [one for one in self.chosen if one in choosable]
            self.marked = [one for one in self.marked if one in there]

    def mark(self, marked: Sequence[str]) -> None:
        """Mark these nodes, and no others."""
        self.marked = list(marked)
