"""Save what is shown: the picture, the whole session, or a script that makes the current stage."""

from __future__ import annotations

import anywidget
import ipywidgets as widgets
import traitlets

from irviz.explorer import actions
from irviz.explorer.panels.form_controls import field, heading
from irviz.explorer.panels.panel import Panel
from irviz.explorer.state import State
from irviz.explorer.store import Store
from irviz.explorer.viewer import STATIC
from irviz.explorer.viewer.view_data import COPY_MESSAGES
from irviz.view.graph.dot import RANKDIRS
from irviz.view.theme import THEMES


class SavePanel(Panel):
    """Save the shown picture as a file, or the whole session as one."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        path = self._path = field(widgets.Text, "irviz-save-path", "file", is_aligned=True)
        theme = field(widgets.Dropdown, "", "theme", options=tuple(THEMES), is_aligned=True)
        direction = field(
            widgets.Dropdown, "", "direction", options=tuple(RANKDIRS), is_aligned=True
        )
        save = self.button(
            "Save SVG",
            "Write the shown stage as a picture",
            lambda: self.send(actions.SaveStage(path.value, theme.value, direction.value)),
            "save",
        )
        file = field(
            widgets.Text, "irviz-save-session-path", "file", value="session.irviz", is_aligned=True
        )
        params = widgets.Checkbox(value=True, description="with params", indent=False)
        params.add_class("irviz-save-params")
        keep = self.button(
            "Save session",
            "Write all stages, to open them again",
            lambda: self.send(actions.SaveSession(file.value, params.value)),
            "save",
        )
        self.widget = widgets.VBox(
            [path, theme, direction, save, heading("Session"), file, params, keep]
        )

    def _parts(self, state: State) -> tuple[object, ...]:
        return state.function, state.stage_id

    def _show(self, state: State) -> None:
        self._path.value = f"{state.function}-{state.stage_id}.svg"


class CopyButton(anywidget.AnyWidget):
    """Ask for a text when it is pressed, and put that on the clipboard.

    Traits:
        label: The words on the button.
        text: What is copied when it comes; `serial` changes with each press that was answered.
    """

    _esm = STATIC / "copy.js"

    label = traitlets.Unicode("Copy").tag(sync=True)
    text = traitlets.Unicode("").tag(sync=True)
    serial = traitlets.Int(0).tag(sync=True)


class PythonPanel(Panel):
    """Give the script that makes the current stage from the first, with TVM alone."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._suggested = ""
        self.copy = CopyButton(label="Copy as Python")
        path = self._path = field(widgets.Text, "irviz-python-path", "file", is_aligned=True)
        self.copy.on_msg(
            lambda _, content, __: self.receive(content, COPY_MESSAGES, path=path.value)
        )
        save = self.button(
            "Save as Python",
            "Write a script with TVM alone that makes the shown stage",
            lambda: self.send(actions.SaveScript(path.value)),
            "save",
        )
        self.widget = widgets.VBox([heading("Script"), self.copy, path, save])

    def _parts(self, state: State) -> tuple[object, ...]:
        return state.function, state.stage_id, state.clipboard

    def _show(self, state: State) -> None:
        """Suggest a file name for the current stage; hand what was copied to the page."""
        path = f"{state.function or 'module'}-{state.stage_id}.py"
        if path != self._suggested:
            self._suggested = self._path.value = path
        with self.copy.hold_sync():
            self.copy.text, self.copy.serial = state.clipboard.text, state.clipboard.serial
