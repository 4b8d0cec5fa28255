"""Apply what led to the current stage to another stage."""

from __future__ import annotations

import ipywidgets as widgets

from irviz.explorer import actions
from irviz.explorer.panels.controls import button, field, heading, offer, show_if
from irviz.explorer.panels.panel import Panel
from irviz.explorer.state import State
from irviz.explorer.store import Store


class ReplayPanel(Panel):
    """Choose a stage, and replay the current stage's branch behind it."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._stage = field(widgets.Dropdown, "irviz-replay-on", "behind stage")
        replay = button(
            "Replay",
            "Apply what led to the shown stage behind that one, too",
            self._replay,
            "repeat",
        )
        self.widget = widgets.VBox([heading("Replay the shown branch"), self._stage, replay])

    def _parts(self, state: State) -> tuple[object, ...]:
        return (state.session,)

    def _show(self, state: State) -> None:
        """Offer the stages that the current one was not made from."""
        session = state.session
        own = session.lineage()
        others = [(f"{s.id}  {s.label}", s.id) for s in session.stages if s.id not in own]
        chosen = self._stage.value
        kept = chosen if chosen in dict(others).values() else ""
        offer(self._stage, [("–", ""), *others], kept)
        show_if(self.widget, bool(others))

    def _replay(self) -> None:
        if self._stage.value:
            self.send(actions.ReplayBranch(self._stage.value))
