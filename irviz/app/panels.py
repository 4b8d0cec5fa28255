"""The explorer's panels: controls that turn what the reader does into verbs of the session."""

from __future__ import annotations

from collections.abc import Callable

import ipywidgets as widgets

from irviz.app.controls import button, heading, wide
from irviz.app.message import Say, save_file
from irviz.app.session import Session
from irviz.view.dot import RANKDIRS
from irviz.view.figure import Figure
from irviz.view.style import THEMES

Verb = Callable[[Session], Session]
Act = Callable[[Verb], None]
"""Applies a verb to the session and shows what it made, or says why it could not."""


class BindPanel:
    """Choose parameters and bind them to the session's arrays."""

    def __init__(self, act: Act) -> None:
        self._names = widgets.SelectMultiple(rows=4, layout=wide())
        self._names.add_class("irviz-bind-names")
        self._button = button("Bind parameters", "Make the chosen parameters constants", "link")
        self._empty = widgets.HTML()
        self._button.on_click(lambda _: act(self._bind))
        self.widget = widgets.VBox(
            [heading("Bind parameters"), self._empty, self._names, self._button]
        )

    def show(self, session: Session) -> None:
        """Offer the parameters that are still open and that the session has arrays for."""
        names = tuple(session.bindable)
        self._names.options = names
        self._names.value = names
        self._names.rows = min(max(len(names), 2), 6)
        self._names.layout.display = self._button.layout.display = "" if names else "none"
        why = "all of them are bound" if session.params else "none were given: explore(…, params=…)"
        self._empty.value = "" if names else f"<p>Nothing to bind: {why}.</p>"

    def _bind(self, session: Session) -> Session:
        return session.bind({name: session.bindable[name] for name in self._names.value})


class SavePanel:
    """Save the shown picture as a file, or the whole session as one.

    `draw` is asked for the picture in a theme and a direction.
    """

    def __init__(self, draw: Callable[[str, str], Figure], say: Say) -> None:
        self._draw, self._say = draw, say
        self._path = widgets.Text(value="irviz.svg", description="file", layout=wide())
        self._path.add_class("irviz-save-path")
        self._theme = widgets.Dropdown(options=tuple(THEMES), description="theme", layout=wide())
        self._direction = widgets.Dropdown(
            options=tuple(RANKDIRS), description="direction", layout=wide()
        )
        save = button("Save SVG", "Write the shown stage as a picture", "save")
        save.on_click(lambda _: self._save())
        self._session: Session | None = None
        self._file = widgets.Text(value="session.irviz", description="file", layout=wide())
        self._file.add_class("irviz-save-session-path")
        self._params = widgets.Checkbox(value=True, description="with params", indent=False)
        keep = button("Save session", "Write all stages, to open them again", "save")
        keep.on_click(lambda _: self._keep())
        self.widget = widgets.VBox(
            [
                *(self._path, self._theme, self._direction, save),
                *(heading("Session"), self._file, self._params, keep),
            ]
        )

    def show(self, session: Session) -> None:
        """Suggest a file name for the shown stage."""
        self._session = session
        self._path.value = f"{session.function}-{session.shown_id}.svg"

    def _save(self) -> None:
        save_file(
            self._say,
            lambda: self._draw(self._theme.value, self._direction.value).save(self._path.value),
        )

    def _keep(self) -> None:
        if (session := self._session) is not None:
            save_file(
                self._say,
                lambda: session.save(self._file.value, params=self._params.value),
                "; Session.load opens it",
            )
