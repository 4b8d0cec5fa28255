"""Run the shown stage, and look at its outputs case by case."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from operator import is_

import ipywidgets as widgets

from irviz.app.controls import button, said, show_if, wide
from irviz.app.runs import input_of_case
from irviz.app.session import Session
from irviz.model.result import RunResult
from irviz.view.badge import outputs_html
from irviz.view.image import as_image, png


class RunPanel:
    """Run and cancel; what is being done meanwhile; the outputs of one case.

    `case` is the number of the case that is looked at, `status` what is there while something runs.
    """

    def __init__(self, run: Callable[[], None], cancel: Callable[[], None]) -> None:
        self._button = button("Run", "Build the shown stage and run it", "play", "irviz-run")
        self._button.on_click(lambda _: run())
        self._cancel = button("Cancel", "End what is running", "stop", "irviz-cancel")
        self._cancel.on_click(lambda _: cancel())
        self.automatic = widgets.Checkbox(
            value=True, description="run every new stage", indent=False, layout=wide()
        )
        self._doing = widgets.HTML()
        self._doing.add_class("irviz-doing")
        self._case = widgets.BoundedIntText(
            min=0, style={"description_width": "initial"}, layout=wide()
        )
        self._case.add_class("irviz-case")
        self._picture = widgets.Image(format="png", layout=widgets.Layout(display="none"))
        self._picture.add_class("irviz-picture")
        self._outputs = widgets.HTML()
        self._result: RunResult | None = None
        self._shown: tuple[object, ...] | None = None
        self._session: Session | None = None
        self._case.observe(lambda _: self._show_case(), "value")
        self.head = widgets.HBox([self._button, self.automatic])
        self.status = widgets.HBox([self._cancel, self._doing])
        self.status.add_class("irviz-status")
        self.widget = widgets.VBox([self._case, self._picture, self._outputs])
        self.show_running("", "")

    @property
    def case(self) -> int:
        """The number of the case that is looked at."""
        return int(self._case.value)

    def show_running(self, name: str, words: str, waiting: int = 0) -> None:
        """Say what runs, "" for nothing, what is being done, and how much waits for it."""
        show_if(self.status, bool(name))
        told = f"{name}: {words}" if words else name
        told += f"; {waiting} more to do" if waiting else ""
        self._doing.value = f'<p role="status" class="irviz-hint">{escape(told)}</p>'

    def show(self, session: Session, result: RunResult | None, error: str) -> None:
        """Show the outputs of a run, or why there are none; what is shown stays as it is."""
        shown = (session.inputs, result, error)
        if self._shown is not None and all(map(is_, shown, self._shown)):
            return  # it is asked for whenever a run tells something, and a picture takes a moment
        self._shown = shown
        self._session, self._result = session, result
        show_if(self._case, bool(result and result.cases > 1))
        if result is None:
            show_if(self._picture, False)
            self._outputs.value = said(error or "Not run yet.", "irviz-error" if error else "")
            return
        self._case.max = max(result.cases - 1, 0)
        self._case.description = f"input (0 to {result.cases - 1})"
        self._show_case()

    def _show_case(self) -> None:
        if self._result is None or self._session is None:
            return
        case = min(self.case, self._result.cases - 1)
        self._outputs.value = outputs_html(self._result, case)
        array = input_of_case(self._session.inputs, case)
        image = None if array is None else as_image(array)
        show_if(self._picture, image is not None)
        if image is not None:
            self._picture.value = png(image)
