"""The lines below the pictures: what was said last, and what is being done."""

from __future__ import annotations

import ipywidgets as widgets

from irviz.explorer import actions
from irviz.explorer.panels.controls import button, paragraph, show_if
from irviz.explorer.panels.panel import Panel
from irviz.explorer.state import State
from irviz.explorer.store import Store
from irviz.explorer.view_model import status


class StatusBar(Panel):
    """Show what was said last, or why the current stage failed."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.widget = widgets.HTML()
        self.widget.add_class("irviz-message")

    def parts(self, state: State) -> tuple[object, ...]:
        """Return the words, and whether they are an error's."""
        message = status(state)
        return (None,) if message is None else (message.words, message.is_error)

    def show(self, state: State) -> None:
        """Show the words, or nothing."""
        message = status(state)
        if message is None:
            self.widget.value = ""
            return
        kind = "irviz-error" if message.is_error else "irviz-said"
        self.widget.value = paragraph(message.words, kind, "status")


class JobBar(Panel):
    """Show what is being done and how much waits for it, with a button to cancel it."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        cancel = button("Cancel", "End what is running", "stop", "irviz-cancel")
        cancel.on_click(lambda _: self.send(actions.Cancel()))
        self._doing = widgets.HTML()
        self._doing.add_class("irviz-doing")
        self.widget = widgets.HBox([cancel, self._doing])
        self.widget.add_class("irviz-status")

    def parts(self, state: State) -> tuple[object, ...]:
        """Return the current job, its progress and what waits."""
        return state.jobs.name, state.jobs.progress, state.jobs.waiting

    def show(self, state: State) -> None:
        """Show the current job, or nothing."""
        jobs = state.jobs
        show_if(self.widget, bool(jobs.name))
        words = f"{jobs.name}: {jobs.progress}" if jobs.progress else jobs.name
        words += f"; {jobs.waiting} more to do" if jobs.waiting else ""
        self._doing.value = paragraph(words, "irviz-hint", "status")
