"""Measure stages in turn, and say which is faster and whether that is more than noise."""

from __future__ import annotations

import ipywidgets as widgets

from irviz.explorer import actions
from irviz.explorer.panels.controls import button, heading, html, paragraph
from irviz.explorer.panels.panel import Panel
from irviz.explorer.state import State
from irviz.explorer.store import Store


class TimingPanel(Panel):
    """Ask for a measurement of some stages, or of all, and show it."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        two = button(
            "Measure with the first",
            "The shown stage, the one compared with, the first",
            lambda: self.send(actions.Measure()),
            "clock-o",
        )
        every = button(
            "Measure all",
            "Every stage that can be run",
            lambda: self.send(actions.Measure(every=True)),
            "list",
        )
        self._table = html("irviz-measured")
        self.widget = widgets.VBox(
            [heading("Time of a call"), widgets.HBox([two, every]), self._table]
        )

    def _parts(self, state: State) -> tuple[object, ...]:
        return (state.timing,)

    def _show(self, state: State) -> None:
        timing = state.timing
        self._table.value = (
            paragraph(timing, "irviz-error") if isinstance(timing, str) else timing._repr_html_()
        )
