"""The tab *Profile*: times and memory."""

from __future__ import annotations

from collections.abc import Callable

import ipywidgets as widgets
from tvm import relax

from irviz.errors import InputError
from irviz.explorer import actions
from irviz.explorer.background_runner import Jobs
from irviz.explorer.panels import panel as ui
from irviz.explorer.shown_schedule import prim_func, shown_trace, steps_to_time
from irviz.explorer.state import State, StepsKey
from irviz.explorer.store import Store
from irviz.ir.destination_passing import destination_passing
from irviz.ir.module_functions import drawable_functions
from irviz.ir.symbolic_shapes import symbolic_sizes
from irviz.model.runs.memory_timeline import MemoryUse
from irviz.runtime.argument_conversion import parse_sizes
from irviz.runtime.simulate_memory import memory_use
from irviz.session.measure_schedule import SIZE
from irviz.transforms.stage import Stage
from irviz.units import format_bytes
from irviz.view.figure import Figure
from irviz.view.graph.graph_figure import GraphFigure, draw_graph
from irviz.view.memory_chart import memory_chart
from irviz.view.templating import render
from irviz.view.theme import THEMES


class TimingPanel(ui.Panel):
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
        self._table = ui.html("irviz-measured")
        self.widget = widgets.VBox(
            [ui.heading("Time of a call"), widgets.HBox([two, every]), self._table]
        )

    def _parts(self, state: State) -> tuple[object, ...]:
        return (state.timing,)

    def _show(self, state: State) -> None:
        timing = state.timing
        self._table.value = (
            ui.paragraph(timing, "irviz-error") if isinstance(timing, str) else timing._repr_html_()
        )


class StepTiming(ui.Panel):
    """Measures the stages of a schedule, and shows their times."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._sizes = ui.field(widgets.Text, "irviz-step-sizes", "sizes", continuous_update=False)
        self._checked = ui.CheckedField(self._sizes)
        self.on_change(self._sizes, self._set_sizes)
        every = self.button(
            "Measure all",
            "Measure all stages of the trace in turn",
            actions.MeasureSteps(every=True),
        )
        self._cancel = self.button("Cancel", "Stop measuring", actions.Cancel(), "stop")
        self._line, self._table = ui.html("irviz-schedule-time"), ui.html("")
        controls = widgets.HBox([self._checked, every, self._cancel])
        self.widget = widgets.VBox([self._line, controls, self._table])

    def _parts(self, state: State) -> tuple[object, ...]:
        if not prim_func(state):
            return (None,)
        jobs = _jobs(state)
        measured = state.step_times, state.step_sizes, jobs.name, jobs.progress
        return (shown_trace(state), state.session.run_config, *measured)

    def _show(self, state: State) -> None:
        """Show the progress or the results, and ask for symbolic sizes."""
        steps, jobs = steps_to_time(state), _jobs(state)
        ui.show_if(self.widget, steps is not None)
        ui.show_if(self._cancel, bool(jobs.name))
        if steps is None:
            return
        ui.show_if(self._checked, bool(steps.sizes))
        self._sizes.value = ", ".join(f"{name}={size}" for name, size in steps.sizes)
        times = state.step_times
        is_known = times.is_of(steps)
        line = times.summary(steps) if is_known else ""
        self._line.value = ui.paragraph(": ".join(filter(None, (jobs.name, jobs.progress))) or line)
        self._table.value = times.html(steps) if is_known else ""

    def _set_sizes(self, text: str) -> actions.Action:
        try:
            return actions.SetField("step_sizes", parse_sizes(text))
        except InputError as failure:
            raise ui.FieldError(self._checked, failure) from None


def _jobs(state: State) -> Jobs:
    """Return the jobs, while the current one measures steps."""
    return state.jobs if isinstance(state.jobs.key, StepsKey) else Jobs()


# --- Show the memory of the current stage as it runs, and the buffers that its calls write to -----


_MOST_NAMES = 6


class _Shown:
    """A requested picture, with a button to save it."""

    def __init__(self, kind: str, panel: ui.Panel) -> None:
        self.picture: Figure | GraphFigure | None = None
        self._kind = kind
        self._html = ui.html(f"irviz-{kind}-picture")
        self._file = ""
        save = panel.button(
            "Save SVG", "Save this picture", self._save, "download", f"irviz-{kind}-save"
        )
        self.widget = widgets.VBox([self._html, save])
        self.clear("")

    def clear(self, name: str) -> None:
        """Clear the picture; the next one is saved under this name."""
        self.picture, self._html.value = None, ""
        self._file = f"{name}-{self._kind}.svg"
        ui.show_if(self.widget, False)

    def show(self, picture: Figure | GraphFigure) -> None:
        """Show a picture in an isolated part of the page, as it may be wider than the panel."""
        self.picture = picture
        frame = "overflow: auto; max-height: 600px"
        self._html.value = f'<div style="{frame}">{picture.svg}</div>'
        ui.show_if(self.widget, True)

    def _save(self) -> actions.Action | None:
        return actions.SaveDrawing(self.picture, self._file) if self.picture else None


class MemoryPanel(ui.Panel):
    """Shows a function's memory over a run on request; `use` is the result."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.use: MemoryUse | None = None
        self._key: tuple[object, ...] = ()
        self._sizes = ui.field(widgets.Text, "irviz-memory-sizes", "sizes", is_aligned=True)
        self._checked = ui.CheckedField(self._sizes)
        self._theme = ui.field(
            widgets.Dropdown,
            "irviz-memory-theme",
            "theme",
            options=tuple(THEMES),
            is_aligned=True,
        )
        self._theme.observe(lambda _: self._redraw(), "value")
        self.ask = self.button(
            "Show memory",
            "Plan the memory as the build does",
            lambda: self._try(self._show_use),
            "bar-chart",
        )
        self._facts = ui.html("irviz-memory-facts")
        self._planned = ui.checkbox("", "with the storages of the plan")
        self.ask_buffers = self.button(
            "Destination-passing view",
            "Draw the buffers that each call reads and writes",
            lambda: self._try(self._show_buffers),
            "sitemap",
        )
        self.chart, self.buffers = _Shown("memory", self), _Shown("buffers", self)
        controls = [self._checked, self._theme, self.ask, self._facts, self.chart.widget]
        controls += [self.ask_buffers, self._planned, self.buffers.widget]
        self._controls, self._hint = widgets.VBox(controls), ui.html("")
        self.widget = ui.classed(
            widgets.VBox([ui.heading("Memory"), self._hint, self._controls]), "irviz-memory"
        )

    def _parts(self, state: State) -> tuple[object, ...]:
        stage, call = state.stage, state.session.call_inputs
        return stage.id, stage.module, state.function, call, state.is_dark

    def _show(self, state: State) -> None:
        """Switch to the current function, and clear the results of another."""
        stage, function = state.stage, state.function
        self._theme.value = "dark" if state.is_dark else "course"
        known = dict(state.session.resolved_sizes())
        key = (stage.id, stage.module, function, tuple(sorted(known.items())))
        if key == self._key:
            return
        self._key = key
        self.use, self._facts.value = None, ""
        self.chart.clear(f"{function}-{stage.id}")
        self.buffers.clear(f"{function}-{stage.id}")
        there = drawable_functions(stage.module).get(function)
        is_relax = isinstance(there, relax.Function)
        ui.show_if(self._controls, is_relax)
        is_other = there is not None and not is_relax
        words = f"{function} is a PrimFunc: look at a function that calls it." if is_other else ""
        self._hint.value = ui.paragraph(words, "irviz-hint")
        names = symbolic_sizes(there) if is_relax else ()
        ui.show_if(self._checked, bool(names))
        self._sizes.value = ", ".join(f"{name}={known.get(name, SIZE)}" for name in names)

    def _show_use(self, stage: Stage) -> None:
        self.use = None
        self.chart.clear(f"{self.state.function}-{stage.id}")
        try:
            sizes = parse_sizes(self._sizes.value)
        except InputError as failure:
            self._facts.value = ""
            self._checked.say(str(failure))
            return
        self.use = memory_use(stage.module, self.state.function, sizes)
        self._facts.value = facts_html(self.use)
        self.chart.show(memory_chart(self.use, self._theme.value))

    def _show_buffers(self, stage: Stage) -> None:
        self._facts.value = facts_html(self.use) if self.use else ""
        self.buffers.clear(f"{self.state.function}-{stage.id}")
        graph = destination_passing(stage.module, self.state.function, planned=self._planned.value)
        self.buffers.show(draw_graph(graph, self._theme.value))

    def _redraw(self) -> None:
        """Redraw the pictures in the chosen theme."""
        if self.chart.picture is not None and self.use is not None:
            self.chart.show(memory_chart(self.use, self._theme.value))
        if self.buffers.picture is not None:
            self._try(self._show_buffers)

    def _try(self, act: Callable[[Stage], None]) -> None:
        self.ask.disabled = self.ask_buffers.disabled = True
        try:
            act(self.state.stage)
        except Exception as failure:  # whatever it is, the explorer lives on
            self._facts.value = ui.paragraph(str(failure), "irviz-error", "alert")
        finally:
            self.ask.disabled = self.ask_buffers.disabled = False


def facts_html(use: MemoryUse) -> str:
    """Return the memory of a function in a few numbers, with the problems of its plan."""
    facts = [("peak", format_bytes(use.peak))]
    if use.peak_step is not None:
        facts[0] = ("peak", f"{facts[0][1]} at step {use.peak_step}, {_step(use)}")
    saved = f", {use.unplanned / use.peak:.1f}× the peak" if use.peak else ""
    facts += [
        ("without reuse", f"{format_bytes(use.unplanned)}{saved}"),
        ("storages", f"{len(use.storages)} for {len(use.allocations)} buffers"),
        ("parameters and constants", format_bytes(use.given)),
    ]
    if use.unseen:
        more = len(use.unseen) - _MOST_NAMES
        names = [*use.unseen[:_MOST_NAMES], *([f"{more} more"] if more > 0 else [])]
        facts.append(("not counted", f"what {', '.join(names)} allocate by themselves"))
    return str(render("memory", facts=facts, warnings=use.warnings))


def _step(use: MemoryUse) -> str:
    assert use.peak_step is not None, "something runs"
    step = use.steps[use.peak_step]
    return step.name if step.node is None else f"{step.name}, which makes {step.node}"
