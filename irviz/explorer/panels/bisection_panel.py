"""Find the first pass that makes results differ, a call slower, or its memory larger."""

from __future__ import annotations

import ipywidgets as widgets

from irviz.explorer import actions
from irviz.explorer.panels.form_controls import classed, field, heading, html, paragraph
from irviz.explorer.panels.panel import Panel
from irviz.explorer.selectors import bisection_words
from irviz.explorer.state import State
from irviz.explorer.store import Store

_CHECKS = (
    ("the results are equal", "values"),
    ("a call is not slower", "time"),
    ("it takes no more memory", "memory"),
)


class BisectionPanel(Panel):
    """Searches for the first pass up to the current stage that makes a check fail."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._check = field(widgets.Dropdown, "irviz-find-check", "check", options=_CHECKS)
        find = self.button(
            "Find the pass",
            "Run some of the stages up to the shown one, and compare them with the first",
            lambda: self.send(actions.FindPass(self._check.value)),
            "search",
        )
        self._found = html("irviz-found-pass")
        self.widget = classed(
            widgets.VBox([heading("Find the pass"), self._check, find, self._found]),
            "irviz-find-pass",
        )

    def _parts(self, state: State) -> tuple[object, ...]:
        return (state.bisection,)

    def _show(self, state: State) -> None:
        kind = "irviz-error" if isinstance(state.bisection, str) else ""
        self._found.value = paragraph(bisection_words(state.bisection), kind, "status")
