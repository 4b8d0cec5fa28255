"""Apply what led to the current stage once more, behind another stage."""

from __future__ import annotations

import ipywidgets as widgets

from irviz.explorer import actions
from irviz.explorer.panels.controls import button, heading, offer, show_if, wide_field
from irviz.explorer.panels.panel import Panel
from irviz.explorer.state import State
from irviz.explorer.store import Store


class ReplayPanel(Panel):
    """Choose a stage, and replay the current stage's branch behind it."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._stage = widgets.Dropdown(description="behind stage", **wide_field())
        self._stage.add_class("irviz-replay-on")
        replay = button(
            "Replay", "Apply what led to the shown stage behind that one, too", "repeat"
        )
        replay.on_click(lambda _: self._replay())
        self.widget = widgets.VBox([heading("Replay the shown branch"), self._stage, replay])

    def parts(self, state: State) -> tuple[object, ...]:
        """Return the stages."""
        return (state.session,)

    def show(self, state: State) -> None:
        """Offer the stages behind which the branch is not yet."""
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
