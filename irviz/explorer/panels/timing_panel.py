"""Measure the times of stages, and of each step of a schedule."""

from __future__ import annotations

import ipywidgets as widgets

from irviz.errors import InputError
from irviz.explorer import actions
from irviz.explorer.jobs.job_queue import Jobs
from irviz.explorer.panels.form_controls import (
    CheckedField,
    field,
    heading,
    html,
    paragraph,
    show_if,
)
from irviz.explorer.panels.panel import Panel
from irviz.explorer.selectors import prim_func, schedule_trace, steps_to_time
from irviz.explorer.state import State, StepsKey
from irviz.explorer.store import Store
from irviz.runtime.argument_lists import parse_sizes


class TimingPanel(Panel):
    """Measures some or all stages, and shows the times."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        two = self.button(
            "Measure with the first",
            "The shown stage, the one compared with, the first",
            actions.Measure(),
            "clock-o",
        )
        every = self.button(
            "Measure all",
            "Every stage that can be run",
            actions.Measure(every=True),
            "list",
        )
        self._table = html("irviz-measured")
        self.widget = widgets.VBox(
            [heading("Time of a call"), widgets.HBox([two, every]), self._table]
        )

    def _parts(self, state: State) -> tuple[object, ...]:
        return (state.timing,)

    def _show(self, state: State) -> None:
        timing = state.timing
        self._table.value = (
            paragraph(timing, "irviz-error") if isinstance(timing, str) else timing._repr_html_()
        )


class StepTiming(Panel):
    """Measures the stages of a schedule, and shows their times."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._sizes = field(widgets.Text, "irviz-step-sizes", "sizes", continuous_update=False)
        self._checked = CheckedField(self._sizes)
        self.on_change(self._sizes, self._set_sizes)
        every = self.button(
            "Measure all",
            "Measure all stages of the trace in turn",
            actions.MeasureSteps(every=True),
        )
        self._cancel = self.button("Cancel", "Stop measuring", actions.Cancel(), "stop")
        self._line, self._table = html("irviz-schedule-time"), html("")
        controls = widgets.HBox([self._checked, every, self._cancel])
        self.widget = widgets.VBox([self._line, controls, self._table])

    def _parts(self, state: State) -> tuple[object, ...]:
        if not prim_func(state):
            return (None,)
        jobs = _jobs(state)
        measured = state.step_times, state.step_sizes, jobs.name, jobs.progress
        return (schedule_trace(state), state.session.run_config, *measured)

    def _show(self, state: State) -> None:
        """Show the progress or the results, and ask for symbolic sizes."""
        steps, jobs = steps_to_time(state), _jobs(state)
        show_if(self.widget, steps is not None)
        show_if(self._cancel, bool(jobs.name))
        if steps is None:
            return
        show_if(self._checked, bool(steps.sizes))
        self._sizes.value = ", ".join(f"{name}={size}" for name, size in steps.sizes)
        times = state.step_times
        is_known = times.is_of(steps)
        line = times.summary(steps) if is_known else ""
        self._line.value = paragraph(": ".join(filter(None, (jobs.name, jobs.progress))) or line)
        self._table.value = times.html(steps) if is_known else ""

    def _set_sizes(self, text: str) -> None:
        try:
            sizes = parse_sizes(text)
        except InputError as failure:
            self._checked.say(str(failure))
        else:
            self.send(actions.SetField("step_sizes", sizes))


def _jobs(state: State) -> Jobs:
    """Return the jobs, while the current one measures steps."""
    return state.jobs if isinstance(state.jobs.key, StepsKey) else Jobs()
