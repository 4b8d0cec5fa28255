"""Save a picture, the whole session, or a script that recreates the current stage."""

from __future__ import annotations

from functools import partial

import ipywidgets as widgets

from irviz.explorer import actions
from irviz.explorer.downloads import Saved
from irviz.explorer.panels.panel import Panel, checkbox, field, heading
from irviz.explorer.store import Store
from irviz.view.graph.dot import FLOWS
from irviz.view.theme import THEMES

_PICTURES = {"SVG": "svg", "PDF": "pdf", "PNG": "png", "DOT": "dot"}


class SavePanel(Panel):
    """Saves the shown picture, all stages, or a script that makes the shown one with TVM alone."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        aligned = partial(field, is_aligned=True)
        kind = aligned(widgets.Dropdown, "irviz-save-format", "format", options=_PICTURES)
        title = aligned(widgets.Text, "irviz-save-title", "title")
        theme = aligned(widgets.Dropdown, "irviz-save-theme", "theme", options=tuple(THEMES))
        direction = aligned(widgets.Dropdown, "", "direction", options=tuple(FLOWS))
        highlight = checkbox("", "frame the selected node")

        def picture() -> actions.Action:
            options = title.value, theme.value, direction.value, highlight.value
            return actions.Save(Saved(kind.value, *options))

        save = self.button("Save picture", "Save what is shown as a picture", picture, "download")
        params = checkbox("irviz-save-params", "with params", is_on=True)
        keep = self.button(
            "Save session",
            "Save all stages, to open them again",
            lambda: actions.Save(Saved("session", has_params=params.value)),
            "download",
        )
        page = self.button(
            "Save as HTML",
            "Save one file to look at in a browser, without Python and without a network",
            actions.Save(Saved("html")),
            "download",
        )
        copy = self.button(
            "Copy as Python",
            "Put a script on the clipboard that makes this stage with TVM alone",
            actions.CopyScript(),
            "copy",
        )
        script = self.button(
            "Save as Python",
            "Save a script with TVM alone that makes the shown stage",
            actions.Save(Saved("python")),
            "download",
        )
        parts = [heading("Picture"), kind, title, theme, direction, highlight, save]
        parts += [heading("Session"), params, keep, page, heading("Script"), copy, script]
        self.widget = widgets.VBox(parts)
