"""The question that is asked before code of an opened file is run."""

from __future__ import annotations

from pathlib import Path

import ipywidgets as widgets

from irviz.explorer import actions
from irviz.explorer.panels.form_controls import classed, html, paragraph, show_if
from irviz.explorer.panels.panel import Panel
from irviz.explorer.state import State
from irviz.explorer.store import Store


class QuestionBar(Panel):
    """Ask before code of an opened file is run."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._words = html("irviz-question")
        run = self.button("Run it", "Run it in another process, now and later", self._trust, "play")
        leave = self.button("Do not run it", "Leave it undone", actions.Distrust(), "times")
        self.widget = classed(widgets.HBox([self._words, run, leave]), "irviz-ask")

    def _parts(self, state: State) -> tuple[object, ...]:
        return (state.question,)

    def _show(self, state: State) -> None:
        question = state.question
        show_if(self.widget, question is not None)
        if question is not None:
            names = " and ".join(sorted(Path(file).name for file in question.files))
            words = f"This runs code of {names}, which can do all that you can do here. Run it?"
            self._words.value = paragraph(words, "irviz-said", "alert")

    def _trust(self) -> None:
        question = self.state.question
        if question is not None:
            assert isinstance(question.action, actions.Action), "it was one that asked"
            self.send(actions.Trust(question.action, question.files))
