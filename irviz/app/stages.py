"""The list of stages at the explorer's left: one button and one badge each."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import ipywidgets as widgets

from irviz.app.session import Session


class StageList:
    """Show the stages as a tree by indentation; a click shows a stage."""

    def __init__(self, choose: Callable[[str], None]) -> None:
        self._choose = choose
        self._rows: dict[str, tuple[widgets.Button, widgets.HTML]] = {}
        self.widget = widgets.VBox()
        self.widget.add_class("irviz-stages")

    def show(self, session: Session, badges: Mapping[str, str]) -> None:
        """Show these stages, the shown one marked, with a badge (HTML) by stage id."""
        depths = _branch_depths(session)
        for stage in session.stages:
            if stage.id not in self._rows:
                self._rows[stage.id] = self._row(stage.id)
            button, badge = self._rows[stage.id]
            button.description = f"{stage.id}  {stage.label}"
            button.tooltip = stage.error or stage.label
            is_shown = stage.id == session.shown_id
            button.button_style = "primary" if is_shown else ""
            button.layout.margin = f"2px 0 0 {12 * depths[stage.id]}px"
            badge.layout.margin = f"0 0 6px {12 * depths[stage.id]}px"
            badge.value = badges.get(stage.id, "")
        self.widget.children = [w for stage in session.stages for w in self._rows[stage.id]]

    def _row(self, stage_id: str) -> tuple[widgets.Button, widgets.HTML]:
        button = widgets.Button(layout=widgets.Layout(width="auto"))
        button.on_click(lambda _: self._choose(stage_id))
        return button, widgets.HTML()


def _branch_depths(session: Session) -> dict[str, int]:
    """Indent a stage one step further than its parent when it is not the parent's first child."""
    depths: dict[str, int] = {}
    with_child: set[str] = set()
    for stage in session.stages:
        if stage.parent is None:
            depths[stage.id] = 0
            continue
        depths[stage.id] = depths[stage.parent] + (stage.parent in with_child)
        with_child.add(stage.parent)
    return depths
