"""The lines below the pictures: what was said last, and what is being done."""

from __future__ import annotations

import ipywidgets as widgets

from irviz.explorer import actions
from irviz.explorer.panels.form_controls import classed, html, paragraph, show_if
from irviz.explorer.panels.panel import Panel
from irviz.explorer.state import Message, State
from irviz.explorer.store import Store
from irviz.explorer.view_model import status


class StatusBar(Panel):
    """Show what was said last, or why the current stage failed."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.widget = html("irviz-message")

    def _show(self, state: State) -> None:
        message = status(state) or Message("")
        kind = "irviz-error" if message.is_error else "irviz-said"
        self.widget.value = paragraph(message.words, kind, "status")


class JobBar(Panel):
    """Show what is being done and how much waits for it, with a button to cancel it."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        cancel = self.button(
            "Cancel",
            "End what is running",
            actions.Cancel(),
            "stop",
            "irviz-cancel",
        )
        self._doing = html("irviz-doing")
        self.widget = classed(widgets.HBox([cancel, self._doing]), "irviz-status")

    def _show(self, state: State) -> None:
        jobs = state.jobs
        show_if(self.widget, bool(jobs.name))
        words = f"{jobs.name}: {jobs.progress}" if jobs.progress else jobs.name
        words += f"; {jobs.waiting} more to do" if jobs.waiting else ""
        self._doing.value = paragraph(words, "irviz-hint", "status")
