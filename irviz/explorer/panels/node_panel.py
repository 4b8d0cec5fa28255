"""What the selected node is: facts, its line of TVMScript, the PrimFunc behind it."""

from __future__ import annotations

import ipywidgets as widgets

from irviz.explorer.panels.panel import Panel
from irviz.explorer.state import State
from irviz.explorer.store import Store
from irviz.explorer.view_model import node_facts, node_source


class NodePanel(Panel):
    """Describe the selected node, or what the module holds; `source` is its text."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.widget, self.source = widgets.HTML(), widgets.HTML()

    def _parts(self, state: State) -> tuple[object, ...]:
        return node_facts(state), node_source(state)

    def _show(self, state: State) -> None:
        self.widget.value, self.source.value = node_facts(state), node_source(state)
