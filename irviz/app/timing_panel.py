"""Measure stages in turn, and say which is faster and whether that is more than noise."""

from __future__ import annotations

from collections.abc import Callable

import ipywidgets as widgets

from irviz.app.controls import button, heading, said
from irviz.view.times import Times


class TimingPanel:
    """Ask for a measurement of some stages and show it; `measure` is told whether of all."""

    def __init__(self, measure: Callable[[bool], None]) -> None:
        two = button(
            "Measure with the first", "The shown stage, the one compared with, the first", "clock-o"
        )
        every = button("Measure all", "Every stage that can be run", "list")
        two.on_click(lambda _: measure(False))
        every.on_click(lambda _: measure(True))
        self._table = widgets.HTML()
        self._table.add_class("irviz-measured")
        self.widget = widgets.VBox(
            [heading("Time of a call"), widgets.HBox([two, every]), self._table]
        )

    def show(self, times: Times | None, error: str = "") -> None:
        """Show what was measured, or why nothing was."""
        words = said(error, "irviz-error")
        self._table.value = words if times is None else times._repr_html_()
