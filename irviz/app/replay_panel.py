"""Apply what led to the shown stage once more, behind another stage."""

from __future__ import annotations

from collections.abc import Callable

import ipywidgets as widgets

from irviz.app.reference import offer
from irviz.app.session import Session


class ReplayPanel:
    """Choose a stage, and replay the shown stage's branch behind it."""

    def __init__(self, act: Callable[[Callable[[Session], Session]], None]) -> None:
        self._act = act
        wide = widgets.Layout(width="auto")
        self._stage = widgets.Dropdown(
            description="behind stage", style={"description_width": "initial"}, layout=wide
        )
        self._stage.add_class("irviz-replay-on")
        button = widgets.Button(
            description="Replay",
            tooltip="Apply what led to the shown stage behind that one, too",
            icon="repeat",
            layout=wide,
        )
        button.on_click(lambda _: self._replay())
        heading = widgets.HTML("<h4>Replay the shown branch</h4>")
        self.widget = widgets.VBox([heading, self._stage, button])

    def show(self, session: Session) -> None:
        """Offer the stages behind which the branch is not yet."""
        own = session.lineage()
        others = [(f"{s.id}  {s.label}", s.id) for s in session.stages if s.id not in own]
        chosen = self._stage.value
        kept = chosen if chosen in dict(others).values() else ""
        offer(self._stage, [("–", ""), *others], kept)
        self.widget.layout.display = "" if others else "none"

    def _replay(self) -> None:
        target = self._stage.value
        if target:
            self._act(lambda session: session.replay(on=target))
