"""The schedule of a PrimFunc: which one it is, and the trace of its steps."""

from __future__ import annotations

import ipywidgets as widgets

from irviz.errors import TransformError
from irviz.explorer import actions
from irviz.explorer.panels import panel as ui
from irviz.explorer.shown_schedule import prim_func, refusal, shown_trace
from irviz.explorer.state import State
from irviz.explorer.store import Store
from irviz.ir.module_functions import prim_funcs
from irviz.transforms.export_python import UnwritableError
from irviz.transforms.schedules.schedule_step import ScheduleStep
from irviz.transforms.schedules.schedule_trace import parse_trace
from irviz.view.templating import render


class SchedulePanel(ui.Panel):
    """Chooses a PrimFunc and whether steps are measured, and says why the last one was rejected."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._functions = ui.field(widgets.Dropdown, "irviz-schedule-function", "PrimFunc")
        self._automatic = ui.checkbox("", "measure each step", is_on=True)
        self._error = ui.html("")
        self.on_change(
            self._functions, lambda name: actions.Look(actions.Focus(name)) if name else None
        )
        self.sets(self._automatic, "measures_steps")
        controls = [self._error, self._functions, self._automatic]
        self.widget = ui.classed(widgets.VBox(controls), "irviz-schedule")

    def _show(self, state: State) -> None:
        names, function = [*prim_funcs(state.stage.module)], prim_func(state)
        ui.offer(self._functions, names or [("none in this stage", "")], function)
        ui.show_if(self._functions, len(names) != 1)
        self._automatic.value = state.measures_steps
        ui.show_if(self._automatic, bool(function))
        self._error.value = refusal_html(refusal(state))


class TracePanel(ui.Panel):
    """Shows the trace of the PrimFunc's schedule as text, to be edited and replayed."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._trace = ui.CheckedField(ui.field(widgets.Textarea, "irviz-trace", rows=6))
        replay = self.button(
            "Replay",
            "Do the steps of this text, from where the trace begins",
            self._replay,
            name="irviz-schedule-replay",
        )
        self.widget = widgets.VBox(
            [widgets.HTML("<h3>trace</h3>"), self._trace, widgets.HBox([replay])]
        )

    def _parts(self, state: State) -> tuple[object, ...]:
        return (shown_trace(state) if prim_func(state) else None,)

    def _show(self, state: State) -> None:
        """Show the steps of the schedule, up to the current stage."""
        ui.show_if(self.widget, bool(prim_func(state)))
        self._trace.say("")
        if prim_func(state):
            self._trace.control.value = "".join(map(_line, shown_trace(state).steps))

    def _replay(self) -> actions.Action:
        function = prim_func(self.state)
        try:
            steps = parse_trace(self._trace.control.value, function)
        except TransformError as failure:
            raise ui.FieldError(self._trace, failure) from None
        return actions.ReplaySchedule(function, tuple(steps))


def refusal_html(refused: Exception | None) -> str:
    """Return why a step was rejected, with TVM's full message collapsed; "" if it was not."""
    if refused is None:
        return ""
    words, details = str(refused), getattr(refused, "details", "")
    return str(render("refusal", words=words, details="" if details in words else details))


def _line(step: ScheduleStep) -> str:
    try:
        return f"{step.line}\n"
    except UnwritableError as failure:
        return f"# {step.primitive}: only code can do this; {failure}\n"
