"""Bind parameters to constants, and save what is shown."""

from __future__ import annotations

import ipywidgets as widgets

from irviz.explorer import actions
from irviz.explorer.panels.controls import button, field, heading, html, paragraph, show_if
from irviz.explorer.panels.panel import Panel
from irviz.explorer.state import State
from irviz.explorer.store import Store
from irviz.transforms.bind_params import bind_params
from irviz.view.graph.dot import RANKDIRS
from irviz.view.theme import THEMES


class BindPanel(Panel):
    """Choose parameters and bind them to the session's arrays."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._names = field(widgets.SelectMultiple, "irviz-bind-names", rows=4)
        self._button = button(
            "Bind parameters", "Make the chosen parameters constants", self._bind, "link"
        )
        self._empty = html("")
        self.widget = widgets.VBox(
            [heading("Bind parameters"), self._empty, self._names, self._button]
        )

    def _parts(self, state: State) -> tuple[object, ...]:
        return state.stage, state.function, state.session.call_inputs.params

    def _show(self, state: State) -> None:
        """Offer the parameters that are not bound and that the session has arrays for."""
        session = state.session
        names = tuple(session.unbound_params)
        self._names.options = self._names.value = names
        self._names.rows = min(max(len(names), 2), 6)
        show_if(self._names, bool(names))
        show_if(self._button, bool(names))
        why = (
            "all of them are bound"
            if session.call_inputs.params
            else "none were given: explore(…, params=…)"
        )
        self._empty.value = "" if names else paragraph(f"Nothing to bind: {why}.")

    def _bind(self) -> None:
        arrays = self.state.session.unbound_params
        chosen = {name: arrays[name] for name in self._names.value}
        try:
            transform = bind_params(chosen, self.state.function)
        except ValueError as failure:
            self.refuse(failure)
        else:
            self.send(actions.Apply(transform))


class SavePanel(Panel):
    """Save the shown picture as a file, or the whole session as one."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        path = self._path = field(widgets.Text, "irviz-save-path", "file", is_aligned=True)
        theme = field(widgets.Dropdown, "", "theme", options=tuple(THEMES), is_aligned=True)
        direction = field(
            widgets.Dropdown, "", "direction", options=tuple(RANKDIRS), is_aligned=True
        )
        save = button(
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
        keep = button(
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
