"""Ways through a large graph: find a node, open and close, look at what is near or between."""

from __future__ import annotations

from collections.abc import Callable

import ipywidgets as widgets

from irviz.app.controls import button
from irviz.app.picture import Look, Picture
from irviz.model.graph import NodeId
from irviz.model.locate import copies
from irviz.model.nearby import AFTER, BEFORE

MOST_FOUND = 200
Find = Callable[[str], tuple[tuple[str, NodeId, str], ...]]
"""Returns what matches: the function, the node and the words that it is shown by."""


class Finder:
    """Find nodes by name, operator, callee or shape, and jump to them."""

    def __init__(self, find: Find, jump: Callable[[str, NodeId], None]) -> None:
        self._find, self._jump = find, jump
        self.words = widgets.Text(
            placeholder="find a name, operator, callee, shape",
            continuous_update=True,
            layout=widgets.Layout(width="260px"),
        )
        self.words.add_class("irviz-find")
        self.count = widgets.HTML()
        self.count.add_class("irviz-found-count")
        self.found = widgets.Select(rows=7, layout=widgets.Layout(width="auto", display="none"))
        self.found.add_class("irviz-found")
        self.words.observe(lambda _: self.show(), "value")
        self.found.observe(lambda change: self._choose(change.new), "value")

    def show(self) -> None:
        """Show what matches the words as they are now."""
        words = self.words.value.strip()
        matches = self._find(words) if words else ()
        self.found.index = None
        self.found.options = [
            (text, (function, node)) for function, node, text in matches[:MOST_FOUND]
        ]
        self.found.index = None
        self.found.rows = min(max(len(matches), 2), 7)
        self.found.layout.display = "" if matches else "none"
        shown = f", the first {MOST_FOUND} are listed" if len(matches) > MOST_FOUND else ""
        self.count.value = (
            f"<span role='status'>{len(matches)} found{shown}</span>" if words else ""
        )

    def _choose(self, chosen: tuple[str, NodeId] | None) -> None:
        if chosen is not None:
            self._jump(*chosen)
            self.found.index = None  # so that the same one can be chosen again


class Around:
    """Controls for the selected node: what is in it, beside it, and in its place elsewhere."""

    def __init__(self, change: Callable[[Look], None], toggle: Callable[[str], None]) -> None:
        self._change, self._toggle = change, toggle
        self._look, self._node, self._start = Look(), "", ""
        self._sign = ""
        self._copies = ""
        self._open = button("Open", "Show what is in this")
        self._close = button("Close", "Show the frame around this as one node")
        self._near = button("Nearby", "Show only what is a few uses away")
        self._steps = widgets.BoundedIntText(
            value=2,
            min=1,
            max=99,
            description="steps",
            layout=widgets.Layout(width="100px"),
            style={"description_width": "initial"},
        )
        self._from = button("Path from here", "Choose this as one end of a path")
        self._to = button("Path to here", "Show only what lies between the two")
        self._whole = button("Whole function", "Show everything again")
        self._copy = widgets.BoundedIntText(
            min=1, layout=widgets.Layout(width="170px"), style={"description_width": "initial"}
        )
        self._copy.add_class("irviz-copy")
        self._open.on_click(lambda _: self._toggle(self._node))
        self._close.on_click(lambda _: self._toggle(self._sign))
        self._near.on_click(lambda _: self._look_at(steps=int(self._steps.value)))
        self._from.on_click(lambda _: self._begin())
        self._to.on_click(lambda _: self._look_at(to=NodeId(self._node)))
        self._whole.on_click(lambda _: self._change(self._look.whole))
        self._copy.observe(lambda change: self._show_copy(change.new), "value")
        self.widget = widgets.Box(
            [
                *(self._open, self._close, self._copy, self._near, self._steps),
                *(self._from, self._to, self._whole),
            ]
        )
        self.widget.add_class("irviz-around")

    def show(self, picture: Picture, look: Look, node_id: str) -> None:
        """Offer what can be done with the selected node of a picture, "" for none."""
        function, inner, whole = picture.locate(node_id)
        is_main = function == picture.graph.function and inner in whole.index
        is_main = is_main and inner not in (BEFORE, AFTER)
        self._look, self._node, self._sign = look, node_id, picture.around(node_id)
        here = copies(picture.shown.tree, inner) if is_main and look.around is None else None
        self._close.description = f"Close {picture.name(self._sign)}"
        if look.around is not None and look.to is None:
            self._steps.value = look.steps
        self._to.description = f"Path from {self._start} to here"
        self._copies = ""  # so that the number below is not taken for a choice
        if here is not None:
            self._copy.max = len(here.nodes)
            self._copy.value = here.copy + 1
            self._copy.description = f"copy (1 to {len(here.nodes)})"
            self._copies = here.container
        for control, is_shown in (
            (self._open, node_id in picture.openable),
            (self._close, bool(self._sign)),
            (self._copy, here is not None),
            (self._near, is_main),
            (self._steps, is_main),
            (self._from, is_main),
            (self._to, is_main and self._start not in ("", node_id)),
            (self._whole, look.around is not None),
        ):
            control.layout.display = "" if is_shown else "none"

    def _begin(self) -> None:
        self._start = self._node

    def _look_at(self, steps: int = 1, to: NodeId | None = None) -> None:
        around = NodeId(self._node if to is None else self._start)
        self._change(self._look.at(around, steps, to))

    def _show_copy(self, number: int) -> None:
        if self._copies:
            choices = self._look.choices.show_copy(self._copies, number - 1)
            self._change(self._look.choose(choices))
