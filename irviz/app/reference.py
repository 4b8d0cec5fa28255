"""The reference stage beside the shown one: which it is, its picture, and what was changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

import ipywidgets as widgets

from irviz.app.canvas import Canvas
from irviz.app.picture import Look, Picture
from irviz.app.session import Session
from irviz.model.change import changed
from irviz.model.graph import NodeId, RegionKind
from irviz.model.result import Comparison
from irviz.view.badge import verdict_line
from irviz.view.overlay import Overlay

Laid = Callable[[Picture, str], Overlay | None]
"""Gives what is laid over the picture of a stage, by its id."""

_MOST_NAMES = 2


class Reference:
    """Choose a stage to compare with, and show it in a second pane."""

    def __init__(self, choose: Callable[[str], None], overlay: Laid) -> None:
        self.stage_id, self._overlay = "", overlay
        self.picture: Picture | None = None
        self.chooser = widgets.Dropdown(
            description="compare with", style={"description_width": "initial"}
        )
        self.chooser.add_class("irviz-compare-with")
        self.chooser.observe(lambda change: self._choose(change.new, choose), "value")
        self.verdict = widgets.HTML()
        self.verdict.add_class("irviz-verdict")
        self.canvas = Canvas()
        self._caption = widgets.HTML()
        self.pane = widgets.VBox([self._caption, self.canvas])

    def show(self, session: Session, look: Look) -> tuple[NodeId, ...]:
        """Offer the other stages and draw the chosen one; return the nodes the shown one changed.

        A choice that is the shown stage itself by now, or is gone, is dropped.
        """
        others = [(f"{s.id}  {s.label}", s.id) for s in session.stages if s.id != session.shown_id]
        if self.stage_id not in dict(others).values():
            self.stage_id = ""
        offer(self.chooser, [("–", ""), *others], self.stage_id)
        self.pane.layout.display = "" if self.stage_id else "none"
        if not self.stage_id:
            return ()
        stage = session.stage(self.stage_id)
        here, there = session.graph(), session.graph(stage.id)
        self.picture = pictured(session, stage.id, look)
        with self.canvas.hold_sync():
            label = f"graph of {session.function}, stage {stage.id}"
            overlay = self._overlay(self.picture, stage.id)
            self.canvas.show(self.picture.figure(overlay=overlay), label)
            self.canvas.highlighted = self.picture.marks(changed(there, here))
        self._caption.value = caption_html(stage.id, stage.label, self.picture)
        return changed(here, there)

    def show_verdict(self, session: Session, comparison: Comparison | None) -> None:
        """Say how the shown stage's results compare, or that one of the two was not run."""
        if not self.stage_id:
            self.verdict.value = ""
            return
        words = "not compared: run both"
        if comparison is not None:
            words = f"{verdict_line(comparison)}, {comparison.time_ratio:.2f}× as fast"
        against = f"stage {session.shown_id} against stage {self.stage_id}: {words}"
        self.verdict.value = f'<p role="status">{escape(against)}</p>'

    def _choose(self, stage_id: str | None, choose: Callable[[str], None]) -> None:
        if stage_id is not None and stage_id != self.stage_id:
            self.stage_id = stage_id
            choose(stage_id)


def pictured(session: Session, stage_id: str, look: Look) -> Picture:
    """Return the picture of a stage; of all of it where it lacks what is looked at."""
    try:
        return session.picture(stage_id, look)
    except ValueError:
        return session.picture(stage_id, look.whole)


def caption_html(stage_id: str, label: str, picture: Picture) -> str:
    """Return the line above a picture: which stage it is, and how much of it is drawn."""
    words = f"stage {escape(stage_id)}: {escape(label)}"
    facts = []
    if picture.count != picture.size:
        facts.append(f"{picture.count:,} of {picture.size:,} nodes")
    copies = [one.name for one in picture.graph.regions if one.kind is RegionKind.REPEAT]
    facts += [f"equal layers {name}" for name in copies[:_MOST_NAMES]]
    if facts:
        words += f" <small>{escape('; '.join(facts))}</small>"
    return f'<div class="irviz-caption">{words}</div>'


def offer(dropdown: widgets.Dropdown, options: Sequence[object], value: str) -> None:
    """Change a dropdown's options and value, without a choice that nobody made in between."""
    dropdown.index = None
    dropdown.options = options
    dropdown.value = value
