"""Run the current stage, set where and with which limits, and show its outputs by case."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import ipywidgets as widgets
from tvm import tirx

from irviz.errors import IrvizError
from irviz.explorer import actions
from irviz.explorer.actions import LimitName
from irviz.explorer.panels.panel import (
    CheckedField,
    Panel,
    classed,
    field,
    html,
    paragraph,
    show_if,
)
from irviz.explorer.stage_rows import answer
from irviz.explorer.state import State
from irviz.explorer.store import Store
from irviz.ir.module_functions import function_named
from irviz.runtime.build_module import BUILDS
from irviz.runtime.call_inputs import Inputs
from irviz.runtime.run_config import check_limits
from irviz.runtime.run_jobs import own_inputs
from irviz.session.run_stages import input_of_case
from irviz.view.text.run_results import outputs_html
from irviz.view.values.images import as_image, grey_png


class RunButton(Panel):
    """Runs the current stage now, and new ones automatically."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._run = self.button(
            "Run", "Build the shown stage and run it", self._press, "play", "irviz-run"
        )
        self._answer = html("irviz-answer")
        self._automatic = field(
            widgets.Checkbox, "irviz-run-new", "run every new stage", value=True, indent=False
        )
        self.sets(self._automatic, "runs_new_stages")
        row = widgets.HBox([self._run, self._automatic])
        self.widget = widgets.VBox([row, self._answer])

    def _show(self, state: State) -> None:
        self._automatic.value = state.runs_new_stages
        is_running, given = bool(state.jobs.keys), answer(state)
        self._run.description, self._run.icon = (
            ("Cancel", "stop") if is_running else ("Run", "play")
        )
        self._answer.value = paragraph(given.words, f"irviz-answer irviz-{given.kind}", "status")

    def _press(self) -> None:
        self.send(actions.Cancel() if self.state.jobs.keys else actions.Run(again=True))


class RunPanel(Panel):
    """Shows the outputs of the current stage for one case, and the input if it is an image."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._case = field(widgets.BoundedIntText, "irviz-case", min=0)
        self.sets(self._case, "case")
        hidden = widgets.Layout(display="none")
        self._picture = classed(widgets.Image(format="png", layout=hidden), "irviz-input-picture")
        self._outputs = html("irviz-run-outputs")
        self.widget = widgets.VBox([self._case, self._picture, self._outputs])

    def _parts(self, state: State) -> tuple[object, ...]:
        runs, stage_id = state.function_runs, state.stage_id
        result, error = runs.results.get(stage_id), runs.errors.get(stage_id, "")
        return state.session.call_inputs.inputs, state.function, result, error, state.case

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
        array = input_of_case(_own(state), shown)
        image = None if array is None else as_image(array)
        is_classified = image is not None or result.labels is not None
        self._outputs.value = outputs_html(result, shown, is_classified=is_classified)
        show_if(self._picture, image is not None)
        if image is not None:
            self._picture.value = grey_png(image)


def _own(state: State) -> Inputs:
    """Return the inputs that the shown function takes."""
    inputs, function = state.session.call_inputs.inputs, state.function
    called = function_named(state.stage.module, function)
    return own_inputs(called, inputs) if isinstance(called, tirx.PrimFunc) else inputs


_GB = 10**9
_LIMITS: Mapping[LimitName, tuple[type[widgets.Widget], str, Mapping[str, Any]]] = {
    "isolate": (widgets.Checkbox, "in a process of its own", {"indent": False}),
    "seconds": (widgets.BoundedFloatText, "stop after (s)", {"min": 0.1, "max": 86_400}),
    "memory": (widgets.BoundedFloatText, "memory (GB, 0: what is free)", {"min": 0, "max": 1e6}),
    "device": (
        widgets.Text,
        "device",
        {"placeholder": "cpu, or host:port of an RPC server", "continuous_update": False},
    ),
    "build": (widgets.Dropdown, "build", {"options": BUILDS}),
}
"""The control, words and options of each limit."""


class LimitsPanel(Panel):
    """Chooses the process or machine that runs stages, and the limits of a run."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        # only what was changed is sent: the others may be beyond what a field can show
        self._fields: dict[LimitName, CheckedField] = {}
        for name, (kind, words, options) in _LIMITS.items():
            made = field(kind, f"irviz-limits-{name}", words, **options)
            self._fields[name] = CheckedField(made)
            self.on_change(made, partial(self._limit, name))
        fields = widgets.VBox([*self._fields.values()])
        self.widget = classed(
            widgets.Accordion([fields], titles=("where it runs, and limits",)), "irviz-limits"
        )

    def _parts(self, state: State) -> tuple[object, ...]:
        return (state.session.run_config,)

    def _show(self, state: State) -> None:
        limits = state.session.run_config
        for name, made in self._fields.items():
            value = getattr(limits, name)
            made.control.value = (value or 0) / _GB if name == "memory" else value

    def _limit(self, name: LimitName, value: Any) -> None:
        if name == "memory":
            value = round(value * _GB) or None
        value = value.strip() if name == "device" else value
        try:
            limits = self.state.session.with_run_config(**{name: value}).run_config
            check_limits(limits)
            if name == "device":
                limits.where  # noqa: B018 - raises if the place is invalid
        except IrvizError as failure:
            self._fields[name].say(f"{failure}; runs go on with what was there before")
        else:
            self.send(actions.SetLimit(name, value))
