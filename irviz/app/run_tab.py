"""Runs: what stages are given, where they run, what they gave and how long they take."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from dataclasses import replace

import ipywidgets as widgets

from irviz.app.background import was_cancelled
from irviz.app.inputs_panel import InputsPanel
from irviz.app.limits_panel import LimitsPanel
from irviz.app.message import Say
from irviz.app.panels import Verb
from irviz.app.results import Results
from irviz.app.run_panel import RunPanel
from irviz.app.session import Session
from irviz.app.timing_panel import TimingPanel
from irviz.ir.identity import function_named
from irviz.runtime.inputs import Inputs
from irviz.runtime.run import said
from irviz.view.times import Times
from irviz.worker.pool import Heard


class RunTab:
    """Run stages as the session says, and let the reader say otherwise.

    `act` hears verbs of the session, `shown` is called when there is something new to show, `say`
    shows words, which may be an error's.
    """

    def __init__(
        self,
        session: Session,
        act: Callable[[Verb], None],
        shown: Callable[[], None],
        say: Say,
    ) -> None:
        self._act, self._shown = act, shown
        self._session = session
        self._reference = "0"
        self._running: tuple[Hashable, ...] = ()
        self._given, self._labels = session.inputs, session.labels
        self.results = Results(self._changed, lambda failure: say(said(failure), True))
        self.results.look_at(session.function)
        self._run = RunPanel(self.run_again, self.results.cancel)
        self._inputs = InputsPanel(
            self._give, session.inputs, seed=session.seed, sizes=session.sizes
        )
        self._limits = LimitsPanel(act)
        self.timing = TimingPanel(self.measure)
        self.widgets = [
            self._run.head,
            self._inputs.widget,
            self._limits.widget,
            self._run.widget,
        ]

    @property
    def status(self) -> widgets.Widget:
        """What is shown while something runs: what it is, and a button to cancel it."""
        return self._run.status

    @property
    def case(self) -> int:
        """The number of the input that is looked at."""
        return self._run.case

    @property
    def is_automatic(self) -> bool:
        """Whether every new stage is run."""
        return bool(self._run.automatic.value)

    @is_automatic.setter
    def is_automatic(self, value: bool) -> None:
        self._run.automatic.value = value

    def show(self, session: Session, reference: str) -> None:
        """Show the shown stage's run; `reference` is the stage that it is compared with."""
        if session.function != self._session.function:
            self.results.look_at(session.function)
            self.timing.show(None)
        self._session, self._reference = session, reference or "0"
        self._limits.show(session)
        self._inputs.show(function_named(session.shown.module, session.function), session.params)
        self.show_results()

    def show_results(self) -> None:
        """Show what is known by now, and what is being done."""
        background, shown = self.results.background, self._session.shown_id
        self._run.show_running(background.name, background.words, background.waiting)
        error = self.results.errors.get(shown, "")
        self._run.show(self._session, self.results.results.get(shown), error)

    def run(self, stage_ids: Collection[str] = ()) -> None:
        """Run these stages, and those that they are compared with, where that was not done.

        Without ids it is the shown one.
        """
        ids = ("0", self._reference, *(stage_ids or (self._session.shown_id,)))
        self.results.run(self._session, ids)

    def run_again(self) -> None:
        """Run the shown stage once more, and those that it is compared with if need be."""
        self.results.run(self._session, ("0", self._reference))
        self.results.run(self._session, (self._session.shown_id,), again=True)

    def measure(self, every: bool) -> None:
        """Measure the shown stage in turn with those it is compared with, or every stage."""
        session = self._session
        ids = dict.fromkeys(("0", self._reference, session.shown_id))
        wanted = [one.id for one in session.stages] if every else list(ids)
        chosen = [one for one in wanted if not session.stage(one).error]

        def job(heard: Heard) -> Times:
            return session.measure(*chosen, case=self.case, heard=heard)

        def done(answer: object) -> None:
            now = self._session
            if now.function != session.function or now.inputs is not session.inputs:
                return  # it was measured for nothing
            if isinstance(answer, Times):
                self.timing.show(answer)
            elif not was_cancelled(answer):
                self.timing.show(None, str(answer))

        key = ("measure", session.function, *chosen)
        self.results.background.do(key, "measuring", job, done)

    def _give(self, inputs: Inputs, seed: int, sizes: dict[str, int]) -> None:
        """Give functions other inputs: what was run before is another thing."""
        labels = self._labels if inputs is self._given else None
        self.results.clear()
        self.timing.show(None)
        self._act(
            lambda session: replace(session, inputs=inputs, seed=seed, sizes=sizes, labels=labels)
        )
        if self.is_automatic:
            self.run()

    def _changed(self) -> None:
        """Show how far it is; what is known of stages changes when a job begins or ends."""
        self.show_results()
        background = self.results.background
        running = (background.key, background.keys)
        if running != self._running:
            self._running = running
            self._shown()
