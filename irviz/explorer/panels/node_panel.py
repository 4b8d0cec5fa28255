"""The selected node: what it is, what can be done with it, and its line of TVMScript."""

from __future__ import annotations

import ipywidgets as widgets

from irviz.explorer import actions
from irviz.explorer.panels.form_controls import classed, field, show_if
from irviz.explorer.panels.panel import Panel
from irviz.explorer.state import Side, State
from irviz.explorer.store import Store
from irviz.explorer.view_model import location, node_facts, node_source
from irviz.model.folding.container_path import RepeatCopies, repeat_copies
from irviz.model.graph.neighbourhood import AFTER, BEFORE


class NodePanel(Panel):
    """Describe the selected node, or what the module holds; `source` is its text."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.widget, self.source = widgets.HTML(), widgets.HTML()

    def _show(self, state: State) -> None:
        self.widget.value, self.source.value = node_facts(state), node_source(state)


class Navigation(Panel):
    """Controls for the selected node: what is in it, beside it, and in its place elsewhere."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._start = self._container = self._copies = ""
        self._open = self.button(
            "Open",
            "Show what is in this",
            lambda: self.send(actions.Toggle(self._node, self._side)),
        )
        self._close = self.button(
            "Close",
            "Show the frame around this as one node",
            lambda: self.send(actions.Toggle(self._container, self._side)),
        )
        self._near = self.button(
            "Nearby",
            "Show only what is a few uses away",
            lambda: self.send(actions.LookAround(self._node, self._steps.value)),
        )
        self._steps = field(
            widgets.BoundedIntText, "irviz-steps", "steps", value=2, min=1, max=99, width="100px"
        )
        self._from = self.button("Path from here", "Choose this as one end of a path", self._begin)
        self._to = self.button(
            "Path to here",
            "Show only what lies between the two",
            lambda: self.send(actions.LookAround(self._start, to=self._node)),
            name="irviz-path-to",
        )
        self._whole = self.button("Whole function", "Show everything again", actions.LookAround())
        self._copy = field(widgets.BoundedIntText, "irviz-copy", min=1, width="170px")
        self.on_change(self._copy, self._show_copy)
        controls = [self._open, self._close, self._copy, self._near, self._steps]
        controls += [self._from, self._to, self._whole]
        self.widget = classed(widgets.Box(controls), "irviz-around")

    @property
    def _node(self) -> str:
        found = location(self.state)
        return "" if found is None else found.node

    @property
    def _side(self) -> Side:
        return self.state.selection.side

    def _parts(self, state: State) -> tuple[object, ...]:
        return location(state), state.view, state.function

    def _show(self, state: State) -> None:
        """Offer what can be done with the selected node."""
        found, look = location(state), state.view
        here: RepeatCopies | None = None
        is_main = is_openable = False
        self._container = ""
        if found is not None:
            view, node = found.view, found.node
            is_main = found.function == state.function and found.inner in found.graph.index
            is_main = is_main and found.inner not in (BEFORE, AFTER)
            is_main = is_main and found.stage is state.stage
            is_openable = node in view.openable
            self._container = view.around(node)
            self._close.description = f"Close {view.name(self._container)}"
            if is_main and look.around is None:
                here = repeat_copies(view.visible.tree, found.inner)
        if look.around is not None and look.to is None:
            self._steps.value = look.steps
        self._to.description = f"Path from {self._start} to here"
        if here is not None:
            self._copy.max = len(here.nodes)
            self._copy.value = here.copy + 1
            self._copy.description = f"copy (1 to {len(here.nodes)})"
        self._copies = here.container if here is not None else ""
        is_end = is_main and found is not None and self._start not in ("", found.node)
        for control, is_shown in (
            (self._open, is_openable),
            (self._close, bool(self._container)),
            (self._copy, here is not None),
            (self._near, is_main),
            (self._steps, is_main),
            (self._from, is_main),
            (self._to, is_end),
            (self._whole, look.around is not None),
        ):
            show_if(control, is_shown)

    def _begin(self) -> None:
        self._start = self._node

    def _show_copy(self, number: int) -> None:
        if self._copies:
            self.send(actions.ShowCopy(self._copies, number - 1))
