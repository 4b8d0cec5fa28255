"""The explorer: stages, picture and panels, composed as one widget."""

from __future__ import annotations

import os
from collections.abc import Mapping
from html import escape
from typing import Any

import ipywidgets as widgets
import traitlets
from numpy import int64
from numpy.typing import NDArray

from irviz.app.evidence import Evidence
from irviz.app.frame import framed
from irviz.app.load import load
from irviz.app.memory_panel import MemoryPanel
from irviz.app.message import Message
from irviz.app.node_panel import NodePanel
from irviz.app.pane import Listener, Pane
from irviz.app.panels import BindPanel, SavePanel, Verb
from irviz.app.pass_panel import PassPanel
from irviz.app.python_panel import PythonPanel
from irviz.app.reference import Reference, offer
from irviz.app.replay_panel import ReplayPanel
from irviz.app.run_tab import RunTab
from irviz.app.schedule_panel import SchedulePanel
from irviz.app.session import Session
from irviz.app.stages import StageList
from irviz.app.swap_panel import SwapPanel
from irviz.app.update_panel import UpdatePanel
from irviz.model.result import RunResult
from irviz.runtime.inputs import Array
from irviz.transforms.stage import Stage
from irviz.view.badge import badge_html, running_html
from irviz.view.engine import warm_up
from irviz.view.figure import Figure
from irviz.worker.pool import RUNS, TRIES


class Explorer(traitlets.HasTraits):
    """Show a session's stages, transform them, run them and compare them.

    `session` is the session as it is now and `selected` the id of the selected node, both
    observable; `widget` is what is displayed, to be put into other widgets; `results` and
    `run_errors` hold the last run of each stage, by its id.
    """

    session = traitlets.Instance(Session)
    selected = traitlets.Unicode("")

    def __init__(self, session: Session, *, runs: bool = True) -> None:
        session = session.looking_at(session.function)
        super().__init__(session=session)
        self._wanted = session.function
        warm_up()
        TRIES.start()
        RUNS.start()
        self._runs = RunTab(session, self._act, self._show_results, self._say)
        self._runs.is_automatic = runs
        self._stages = StageList(self._choose, self._act, self._say)
        self._evidence = Evidence(
            self._runs.results, lambda: self._runs.case, self._redraw, self._reach, self._say
        )
        listener = Listener(self._show_beside, self._select, self._say, self._focus)
        self._pane = Pane(session, listener, self._evidence.overlay)
        self._reference = Reference(lambda _: self._show(), self._evidence.overlay)
        self._node = NodePanel()
        self._message = Message()
        self._bind, self._swap = BindPanel(self._act), SwapPanel(self._act)
        self._update, self._schedule = UpdatePanel(self._act), SchedulePanel(self._act, self._say)
        self._pass, self._memory = PassPanel(self._act), MemoryPanel(self._say)
        self._save = SavePanel(self._drawn, self._say)
        self._python, self._replay = PythonPanel(self._say), ReplayPanel(self._act)
        self._functions = widgets.Dropdown(
            description="function", style={"description_width": "initial"}
        )
        self._functions.add_class("irviz-functions")
        self.widget = self._composed()
        self._reference.canvas.observe(lambda change: self._select_other(change.new), "selected")
        self._reference.canvas.on_ask(self._pane.toggle, self._pane.leave)
        self._pane.canvas.observe(lambda change: self._follow(change.new), "dark")
        self._functions.observe(lambda change: self._focus(change.new), "value")
        widgets.jslink((self._pane.canvas, "viewport"), (self._reference.canvas, "viewport"))
        self._show()

    @property
    def results(self) -> dict[str, RunResult]:
        """The last run of each stage, by its id."""
        return self._runs.results.results

    @property
    def run_errors(self) -> dict[str, str]:
        """Why a stage could not be run, by its id."""
        return self._runs.results.errors

    def _repr_mimebundle_(self, **_: object) -> dict[str, object]:
        """Show the widget, or a still picture where no kernel runs."""
        bundle: dict[str, object] = self.widget._repr_mimebundle_() or {}
        return {**bundle, "image/svg+xml": self._pane.canvas.svg}

    def run(self) -> None:
        """Run the shown stage, and first those it is compared with that have not been run.

        In a notebook this returns at once; `results` has them when they are done.
        """
        self._runs.run()

    def _act(self, verb: Verb) -> None:
        """Apply a verb; the only way from an event to a new session."""
        try:
            session = verb(self.session).looking_at(self._wanted)
        except Exception as failure:  # whatever it is, the session stays
            self._say(str(failure), is_error=True)
            return
        known = {stage.id for stage in self.session.stages}
        new = [one.id for one in session.stages if one.id not in known and not one.error]
        if any(session.stage(one).parent is None for one in new):  # a file, which may be anybody's
            self._runs.is_automatic = False
        self.session = session
        self._say("")
        self._show()
        if new and self._runs.is_automatic:
            self._runs.run(new)

    def _focus(self, function: str | None) -> None:
        if function and function != self.session.function:
            self._wanted = function
            self._act(lambda session: session.focus(function))

    def _choose(self, stage_id: str) -> None:
        self._act(lambda session: session.show(stage_id))

    def _show(self) -> None:
        """Set every trait from the session: the one place that does."""
        session, stage = self.session, self.session.shown
        self._runs.show(session, self._reference.stage_id)
        self._evidence.show(session, self._reference.stage_id)
        self._pane.show(session)
        self._show_beside()
        offer(self._functions, session.functions, session.function)
        self._functions.layout.display = "" if len(session.functions) > 1 else "none"
        self._memory.show(stage, session.function, session.dims())
        panels = (self._bind, self._pass, self._schedule, self._save, self._python, self._replay)
        for panel in panels:
            panel.show(session)
        self._show_results()
        self._evidence.update()
        if stage.error or stage.said:
            self._say("")

    def _show_beside(self) -> None:
        """Set what stands beside the picture: the stage compared with, marks, the node."""
        marks = self._reference.show(self.session, self._pane.look)
        self._evidence.show(self.session, self._reference.stage_id)
        self._pane.canvas.highlighted = self._pane.picture.marks(marks)
        self._dim()
        comparing = self.widget.add_class if self._reference.stage_id else self.widget.remove_class
        comparing("irviz-comparing")
        self._show_details()

    def _dim(self) -> None:
        """Draw pale what is equal before the stages part."""
        shown, other = self.session.shown_id, self._reference
        self._pane.canvas.dimmed = self._evidence.dimmed(self._pane.picture, shown)
        if other.stage_id and other.picture is not None:
            other.canvas.dimmed = self._evidence.dimmed(other.picture, other.stage_id)

    def _redraw(self) -> None:
        """Draw the pictures anew, in other colours."""
        self._pane.show(self.session)
        self._show_beside()

    def _reach(self, node_id: str) -> None:
        """Go to a node of the shown function, or of one that it calls."""
        self._pane.reach(self.session.function, node_id)

    def _show_results(self) -> None:
        badges = {stage.id: self._badge(stage) for stage in self.session.stages}
        self._stages.show(self.session, badges)
        shown, reference = self.session.shown_id, self._reference.stage_id
        against = self._runs.results.comparison(shown, reference)
        self._reference.show_verdict(self.session, against)

    def _badge(self, stage: Stage) -> str:
        runs = self._runs.results
        if runs.is_running(stage.id):
            return running_html(runs.is_waiting(stage.id))
        error = stage.error or runs.errors.get(stage.id, "")
        result = runs.results.get(stage.id)
        if stage.seconds is not None and result is None and not error:
            return ""  # a recording has many stages, and its passes have their times
        return badge_html(result, runs.comparison(stage.id, "0"), error)

    def _select(self, node_id: str) -> None:
        self.selected = node_id
        self._show_details()

    def _select_other(self, node_id: str) -> None:
        other = self._reference
        if other.stage_id and other.picture is not None and node_id:
            where = f"<p class='irviz-hint'>in stage {escape(other.stage_id)}:</p>"
            stage = self.session.stage(other.stage_id)
            self._node.show(stage, other.picture, node_id, where)

    def _show_details(self) -> None:
        selected, picture = self._pane.canvas.selected, self._pane.picture
        function, node_id, graph = picture.locate(selected)
        known = graph.nodes[graph.index[node_id]].callee if node_id in graph.index else function
        self._schedule.choose(known)
        self._pane.describe()
        here = node_id if function == self.session.function else ""
        self._node.show(self.session.shown, picture, selected)
        self._evidence.show_node(selected, picture)
        self._update.show(self.session, here)
        self._swap.show(self.session, here)  # last: trying what computes the same takes a moment

    def _follow(self, is_dark: bool) -> None:
        """Draw values and memory in the colours of the page."""
        self._evidence.value.theme = self._memory.theme = "dark" if is_dark else "course"

    def _drawn(self, theme: str, direction: str) -> Figure:
        """Draw the shown picture as a file has it, with what is laid over it."""
        look, picture, shown = self._pane.look, self._pane.picture, self.session.shown_id
        overlay = self._evidence.overlay(picture, shown)
        dimmed = self._evidence.dimmed(picture, shown)
        return self.session.draw(
            look=look, theme=theme, direction=direction, overlay=overlay, dimmed=dimmed
        )

    def _say(self, words: str, is_error: bool = False) -> None:
        self._message.say(self.session.shown, words, is_error)

    def _composed(self) -> widgets.Widget:
        pane, other = self._pane, self._reference
        return framed(
            self._stages.widget,
            [
                *(self._functions, pane.finder.words, pane.finder.count, other.chooser),
                *(self._evidence.colours, other.verdict, self._evidence.part),
            ],
            pane.finder.found,
            [pane.widget, other.pane],
            [self._message.widget, self._runs.status],
            {
                "Node": [
                    pane.around.widget,
                    self._node.facts,
                    self._evidence.widget,
                    self._swap.widget,
                    self._update.widget,
                    self._node.source,
                ],
                "Transform": [self._bind.widget, self._pass.widget, self._replay.widget],
                "Schedule": [self._schedule.widget],
                "Run": self._runs.widgets,
                "Profile": [self._runs.timing.widget, self._memory.widget],
                "Save": [self._save.widget, self._python.widget],
            },
        )


def explore(
    what: object,
    *,
    params: Mapping[str, Array] | None = None,
    inputs: Any = None,
    labels: NDArray[int64] | None = None,
    function: str = "",
    name: str = "",
) -> Explorer:
    """Open the explorer on a session, or on what `irviz.load` takes: a module, a model, a file.

    `params` are arrays by parameter name, to bind and to run with; `inputs` an array for the
    remaining parameter or a dict of them, one case a row, and the example inputs of a model of
    torch; `labels` the right class of each case; `name` one of a file's modules. Raises
    ValueError for what holds no module, or has no function to show.
    """
    if isinstance(what, Session):
        return Explorer(what)
    session = load(what, name=name, params=params, inputs=inputs, labels=labels, function=function)
    # to open a file runs nothing; to run what is in it is for the reader to say
    return Explorer(session, runs=not isinstance(what, str | os.PathLike))
