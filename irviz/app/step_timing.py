"""The part of the schedule's panel that measures stages and shows their times."""

from __future__ import annotations

from collections.abc import Callable

import ipywidgets as widgets

from irviz.app.background import Background, was_cancelled
from irviz.app.controls import button, said, show_if, wide_field
from irviz.app.session import Session
from irviz.app.step_times import StepTimes, Wanted, measured
from irviz.runtime import run as runs
from irviz.runtime.prim_func import symbolic_sizes
from irviz.transforms.stage import Stage
from irviz.worker.pool import RUNS, Heard

_SIZE = 128
"""What a symbolic size is measured with, when nothing else is said."""


class StepTiming:
    """Measure the stages of a trace beside the kernel; `say` shows words that are no times."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._session: Session | None = None
        self._stages: tuple[Stage, ...] = ()
        self._function, self._names = "", tuple[str, ...]()
        self._times = StepTimes()
        self._last: Wanted | None = None
        self._background = Background(
            RUNS.cancel, self._show, lambda failure: say(runs.said(failure))
        )
        self._sizes = widgets.Text(description="sizes", continuous_update=False, **wide_field())
        self._sizes.observe(lambda _: self._show(), "value")
        every = button("Measure all", "Measure all stages of the trace in turn")
        every.on_click(lambda _: self.measure(everything=True))
        self._cancel = button("Cancel", "Stop measuring", "stop")
        self._cancel.on_click(lambda _: self._background.cancel())
        self._line, self._table = widgets.HTML(), widgets.HTML()
        self._line.add_class("irviz-schedule-time")
        controls = widgets.HBox([self._sizes, every, self._cancel])
        self.widget = widgets.VBox([self._line, controls, self._table])

    def show(self, session: Session, stages: tuple[Stage, ...], function: str) -> None:
        """Show what is known of the stages of a trace, and ask for the sizes that are symbolic."""
        self._session, self._stages, self._function = session, stages, function
        names = self._names = symbolic_sizes(session.shown.module, function)
        show_if(self._sizes, bool(names))
        if not set(names) <= set(self._sizes_text()):
            self._sizes.value = ", ".join(f"{name}={_SIZE}" for name in names)
        self._show()

    def measure(self, *, everything: bool = False) -> None:
        """Measure the last stage with those that it is compared with, or every one."""
        wanted = self._wanted()
        if wanted is None:
            return
        self._last = wanted

        def job(heard: Heard) -> StepTimes | None:
            if self._last is not wanted:  # something newer waits
                return None
            return measured(wanted, self._times, everything=everything, heard=heard)

        def done(answer: object) -> None:
            if isinstance(answer, StepTimes):
                self._times = answer
            elif isinstance(answer, Exception) and not was_cancelled(answer):
                self._say(runs.said(answer))

        key = (wanted.function, wanted.sizes, wanted.stages[-1].id, everything)
        self._background.do(key, f"measuring {wanted.function}", job, done)

    def _show(self) -> None:
        """Show what is being done, or what was found."""
        name, words = self._background.name, self._background.words
        show_if(self._cancel, bool(name))
        wanted = self._wanted()
        if wanted is None:
            return
        is_known = self._times.suits(wanted)
        line = self._times.line(wanted) if is_known else ""
        self._line.value = said(": ".join(filter(None, (name, words))) or line)
        self._table.value = self._times.table(wanted) if is_known else ""

    def _wanted(self) -> Wanted | None:
        if self._session is None or not self._stages:
            return None
        written = self._sizes_text()
        sizes = tuple((name, written[name]) for name in self._names if name in written)
        return Wanted(self._stages, self._function, sizes, self._session.place)

    def _sizes_text(self) -> dict[str, int]:
        """Return the sizes that were written; what cannot be read counts as nothing."""
        found = {}
        for part in self._sizes.value.split(","):
            name, _, size = part.partition("=")
            if size.strip().isdecimal() and int(size) > 0:
                found[name.strip()] = int(size)
        return found
