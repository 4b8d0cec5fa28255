"""The explorer's panels: controls that turn what the reader does into verbs of the session."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

import ipywidgets as widgets

from irviz.app.runs import input_of_case
from irviz.app.session import Session
from irviz.model.graph import NodeKind
from irviz.model.result import RunResult
from irviz.view.badge import outputs_html
from irviz.view.dot import RANKDIRS
from irviz.view.image import as_image, png
from irviz.view.style import THEMES

Verb = Callable[[Session], Session]
Act = Callable[[Verb], None]
"""Applies a verb to the session and shows what it made, or says why it could not."""


_SWAPPED = (NodeKind.CALL_TIR, NodeKind.CALL_DPS_PACKED)


class BindPanel:
    """Choose parameters and bind them to the session's arrays."""

    def __init__(self, act: Act) -> None:
        self._names = widgets.SelectMultiple(rows=4, layout=_wide())
        self._names.add_class("irviz-bind-names")
        self._button = _button("Bind parameters", "Make the chosen parameters constants", "link")
        self._empty = widgets.HTML()
        self._button.on_click(lambda _: act(self._bind))
        self.widget = widgets.VBox(
            [_heading("Bind parameters"), self._empty, self._names, self._button]
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


class RunPanel:
    """Run the shown stage, and look at its outputs case by case."""

    def __init__(self, run: Callable[[], None]) -> None:
        self._button = _button("Run", "Build the shown stage and run it on the CPU", "play")
        self._button.on_click(lambda _: run())
        self.automatic = widgets.Checkbox(
            value=True, description="run every new stage", indent=False, layout=_wide()
        )
        self._case = widgets.BoundedIntText(
            min=0, style={"description_width": "initial"}, layout=_wide()
        )
        self._case.add_class("irviz-case")
        self._picture = widgets.Image(format="png", layout=widgets.Layout(display="none"))
        self._picture.add_class("irviz-picture")
        self._outputs = widgets.HTML()
        self._result: RunResult | None = None
        self._session: Session | None = None
        self._case.observe(lambda _: self._show_case(), "value")
        self.widget = widgets.VBox(
            [
                widgets.HBox([self._button, self.automatic]),
                self._case,
                self._picture,
                self._outputs,
            ]
        )

    def show(self, session: Session, result: RunResult | None, error: str) -> None:
        """Show the outputs of a run, or why there are none."""
        self._session, self._result = session, result
        self._case.layout.display = "" if result and result.cases > 1 else "none"
        if result is None:
            self._picture.layout.display = "none"
            words = error or "Not run yet."
            self._outputs.value = f'<p class="{"irviz-error" if error else ""}">{escape(words)}</p>'
            return
        self._case.max = result.cases - 1
        self._case.description = f"input (0 to {result.cases - 1})"
        self._show_case()

    def _show_case(self) -> None:
        if self._result is None or self._session is None:
            return
        case = min(int(self._case.value), self._result.cases - 1)
        self._outputs.value = outputs_html(self._result, case)
        array = input_of_case(self._session.inputs, case)
        image = None if array is None else as_image(array)
        self._picture.layout.display = "none" if image is None else ""
        if image is not None:
            self._picture.value = png(image)


class SavePanel:
    """Save the shown picture as a file."""

    def __init__(self, save: Callable[[str, str, str], None]) -> None:
        self._path = widgets.Text(value="irviz.svg", description="file", layout=_wide())
        self._path.add_class("irviz-save-path")
        self._theme = widgets.Dropdown(options=tuple(THEMES), description="theme", layout=_wide())
        self._direction = widgets.Dropdown(
            options=tuple(RANKDIRS), description="direction", layout=_wide()
        )
        button = _button("Save SVG", "Write the shown stage as a picture", "save")
        button.on_click(lambda _: save(self._path.value, self._theme.value, self._direction.value))
        self.widget = widgets.VBox([self._path, self._theme, self._direction, button])

    def show(self, session: Session) -> None:
        """Suggest a file name for the shown stage."""
        self._path.value = f"{session.function}-{session.shown_id}.svg"


def _wide() -> widgets.Layout:
    return widgets.Layout(width="auto")


def _heading(text: str) -> widgets.HTML:
    return widgets.HTML(f"<h4>{escape(text)}</h4>")


def _button(text: str, tooltip: str, icon: str) -> widgets.Button:
    return widgets.Button(
        description=text, tooltip=tooltip, icon=icon, layout=widgets.Layout(width="auto")
    )
