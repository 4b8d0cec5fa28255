"""Bind parameters to constants, and save what is shown."""

from __future__ import annotations

import ipywidgets as widgets

from irviz.explorer import actions
from irviz.explorer.panels.controls import button, heading, paragraph, show_if, wide
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
        self._names = widgets.SelectMultiple(rows=4, layout=wide())
        self._names.add_class("irviz-bind-names")
        self._button = button("Bind parameters", "Make the chosen parameters constants", "link")
        self._empty = widgets.HTML()
        self._button.on_click(lambda _: self._bind())
        self.widget = widgets.VBox(
            [heading("Bind parameters"), self._empty, self._names, self._button]
        )

    def parts(self, state: State) -> tuple[object, ...]:
        """Return the names of the parameters that can be bound."""
        return state.stage, state.function, state.session.call_inputs.params

    def show(self, state: State) -> None:
        """Offer the parameters that are still open and that the session has arrays for."""
        session = state.session
        names = tuple(session.unbound_params)
        self._names.options = names
        self._names.value = names
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
            self.send(actions.Say(str(failure), is_error=True))
        else:
            self.send(actions.Apply(transform))


class SavePanel(Panel):
    """Save the shown picture as a file, or the whole session as one."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._path = widgets.Text(value="irviz.svg", description="file", layout=wide())
        self._path.add_class("irviz-save-path")
        self._theme = widgets.Dropdown(options=tuple(THEMES), description="theme", layout=wide())
        self._direction = widgets.Dropdown(
            options=tuple(RANKDIRS), description="direction", layout=wide()
        )
        save = button("Save SVG", "Write the shown stage as a picture", "save")
        save.on_click(lambda _: self.send(self._save()))
        self._file = widgets.Text(value="session.irviz", description="file", layout=wide())
        self._file.add_class("irviz-save-session-path")
        self._params = widgets.Checkbox(value=True, description="with params", indent=False)
        self._params.add_class("irviz-save-params")
        keep = button("Save session", "Write all stages, to open them again", "save")
        keep.on_click(
            lambda _: self.send(actions.SaveSession(self._file.value, self._params.value))
        )
        self.widget = widgets.VBox(
            [
                *(self._path, self._theme, self._direction, save),
                *(heading("Session"), self._file, self._params, keep),
            ]
        )

    def parts(self, state: State) -> tuple[object, ...]:
        """Return what a file is named after."""
        return state.function, state.stage_id

    def show(self, state: State) -> None:
        """Suggest a file name for the current stage."""
        self._path.value = f"{state.function}-{state.stage_id}.svg"

    def _save(self) -> actions.Action:
        theme, direction = self._theme.value, self._direction.value
        return actions.SaveStage(self._path.value, theme, direction)
