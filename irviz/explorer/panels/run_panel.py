"""Run the current stage, and look at its outputs case by case."""

from __future__ import annotations

import ipywidgets as widgets

from irviz.explorer import actions
from irviz.explorer.panels.controls import button, classed, field, html, paragraph, show_if
from irviz.explorer.panels.panel import Panel
from irviz.explorer.state import State
from irviz.explorer.store import Store
from irviz.session.runs import input_of_case
from irviz.view.text.run_results import outputs_html
from irviz.view.values.image import as_image, grey_png


class RunButton(Panel):
    """Run the current stage now, and each new one by itself."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        run = button(
            "Run",
            "Build the shown stage and run it",
            lambda: self.send(actions.Run(again=True)),
            "play",
            "irviz-run",
        )
        self._automatic = field(
            widgets.Checkbox, "irviz-run-new", "run every new stage", value=True, indent=False
        )
        self.on_change(
            self._automatic, lambda on: self.send(actions.SetField("runs_new_stages", on))
        )
        self.widget = widgets.HBox([run, self._automatic])

    def _parts(self, state: State) -> tuple[object, ...]:
        return (state.runs_new_stages,)

    def _show(self, state: State) -> None:
        self._automatic.value = state.runs_new_stages


class RunPanel(Panel):
    """Show the outputs of the current stage for one case, and that input where it is an image."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._case = field(widgets.BoundedIntText, "irviz-case", min=0)
        self.on_change(self._case, lambda case: self.send(actions.SetField("case", case)))
        hidden = widgets.Layout(display="none")
        self._picture = classed(widgets.Image(format="png", layout=hidden), "irviz-picture")
        self._outputs = html("irviz-run-outputs")
        self.widget = widgets.VBox([self._case, self._picture, self._outputs])

    def _parts(self, state: State) -> tuple[object, ...]:
        runs, stage_id = state.function_runs, state.stage_id
        result, error = runs.results.get(stage_id), runs.errors.get(stage_id, "")
        return state.session.call_inputs.inputs, result, error, state.case

    def _show(self, state: State) -> None:
        """Show the outputs of a run, or why there are none."""
        runs, stage_id = state.function_runs, state.stage_id
        result, error = runs.results.get(stage_id), runs.errors.get(stage_id, "")
        show_if(self._case, result is not None and result.cases > 1)
        if result is None:
            show_if(self._picture, False)
            words = error or "Not run yet."
            self._outputs.value = paragraph(words, "irviz-error" if error else "")
            return
        self._case.max = max(result.cases - 1, 0)
        self._case.description = f"input (0 to {result.cases - 1})"
        shown = min(state.case, result.cases - 1)
        self._case.value = shown
        self._outputs.value = outputs_html(result, shown)
        array = input_of_case(state.session.call_inputs.inputs, shown)
        image = None if array is None else as_image(array)
        show_if(self._picture, image is not None)
        if image is not None:
            self._picture.value = grey_png(image)
