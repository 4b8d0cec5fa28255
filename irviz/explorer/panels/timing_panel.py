"""Measure stages in turn, and say which is faster and whether that is more than noise."""

from __future__ import annotations

import ipywidgets as widgets

from irviz.explorer import actions
from irviz.explorer.panels.controls import button, heading, paragraph
from irviz.explorer.panels.panel import Panel
from irviz.explorer.state import State
from irviz.explorer.store import Store


class TimingPanel(Panel):
    """Ask for a measurement of some stages, or of all, and show it."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        two = button(
            "Measure with the first", "The shown stage, the one compared with, the first", "clock-o"
        )
        every = button("Measure all", "Every stage that can be run", "list")
        two.on_click(lambda _: self.send(actions.Measure()))
        every.on_click(lambda _: self.send(actions.Measure(every=True)))
        self._table = widgets.HTML()
        self._table.add_class("irviz-measured")
        self.widget = widgets.VBox(
            [heading("Time of a call"), widgets.HBox([two, every]), self._table]
        )

    def parts(self, state: State) -> tuple[object, ...]:
        """Return the measurement."""
        return (state.timing,)

    def show(self, state: State) -> None:
        """Show what was measured, or why nothing was."""
        timing = state.timing
        if isinstance(timing, str):
            self._table.value = paragraph(timing, "irviz-error")
        else:
            self._table.value = timing._repr_html_()
