"""Which pass first makes the results differ, a call slower, or its memory larger."""

from __future__ import annotations

import ipywidgets as widgets

from irviz.explorer import actions
from irviz.explorer.panels.form_controls import classed, field, heading, html, paragraph
from irviz.explorer.panels.panel import Panel
from irviz.explorer.state import State
from irviz.explorer.store import Store
from irviz.session.bisect import Bisection

_CHECKS = (
    ("makes the results differ", "values"),
    ("makes a call slower", "time"),
    ("makes a call take more memory", "memory"),
)


class BisectionPanel(Panel):
    """Ask which pass up to the current stage first makes a check fail, and say it."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._check = field(
            widgets.Dropdown, "irviz-find-check", "which pass first", options=_CHECKS
        )
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
        found = state.bisection
        is_error = isinstance(found, str)
        words = found if isinstance(found, str) else bisection_words(found)
        self._found.value = paragraph(words, "irviz-error" if is_error else "", "status")


def bisection_words(found: Bisection) -> str:
    """Say which pass was found, and how far one can be sure of it."""
    count = f"{len(found.checked)} of {len(found.session.lineage())} stages were checked."
    if found.stage is None or found.before is None:
        return f"It is none of the passes: {count}"
    first = f"{found.stage.label}, which made stage {found.stage.id}: {found.words}."
    if found.is_exhaustive:
        return f"{first} All stages before it hold. {count}"
    return f"{first} Stage {found.before.id} holds, and an earlier one may fail as well. {count}"
