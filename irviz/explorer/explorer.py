"""The explorer: stages, pictures and panels as one widget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import ipywidgets as widgets
import traitlets
from numpy import int64
from numpy.typing import NDArray

from irviz.explorer import actions
from irviz.explorer.actions import Action
from irviz.explorer.effects import Effects
from irviz.explorer.panels.form_controls import classed, show_if
from irviz.explorer.panels.inputs_panel import InputsPanel
from irviz.explorer.panels.memory_panel import MemoryPanel
from irviz.explorer.panels.node_panel import Navigation, NodePanel
from irviz.explorer.panels.panel import Panel
from irviz.explorer.panels.pass_panel import BindPanel, PassPanel, ReplayPanel
from irviz.explorer.panels.question_bar import QuestionBar
from irviz.explorer.panels.run_panel import LimitsPanel, RunButton, RunPanel
from irviz.explorer.panels.save_panel import PythonPanel, SavePanel
from irviz.explorer.panels.schedule_panel import SchedulePanel, TracePanel
from irviz.explorer.panels.stage_list import StageList
from irviz.explorer.panels.stage_picture import StagePicture
from irviz.explorer.panels.status_bar import JobBar, StatusBar
from irviz.explorer.panels.swap_panel import SwapPanel, UpdatePanel
from irviz.explorer.panels.timing_panel import StepTiming, TimingPanel
from irviz.explorer.panels.toolbar import (
    ColourChooser,
    CompareChooser,
    DifferenceButton,
    Finder,
    FunctionChooser,
)
from irviz.explorer.panels.value_panel import RecordButton, ValuePanel
from irviz.explorer.state import State
from irviz.explorer.store import Store
from irviz.explorer.view_model import scene, shown_selection
from irviz.explorer.viewer import STATIC
from irviz.model.runs.run_result import RunResult
from irviz.runtime.inputs.argument_lists import Array
from irviz.session.open_session import load
from irviz.session.session import Session
from irviz.view.graph.graphviz_engine import ENGINE
from irviz.worker.supervisor import RUNS, TRIES

PanelKind = TypeVar("PanelKind", bound=Panel)


class Explorer(widgets.VBox):  # type: ignore[misc]
    """Show a session's stages, transform them, run them and compare them.

    It displays itself, and can be put into other widgets.

    Attributes:
        session: The session as it is now; another one can be assigned. Observable.
        selected: The id of the selected node, "" for none. Observable.
        store: The state of all that is shown, which actions change.
    """

    session = traitlets.Instance(Session)
    selected = traitlets.Unicode("")

    def __init__(self, session: Session) -> None:
        ENGINE.start()
        TRIES.start()
        RUNS.start()
        self.store = store = Store(State.of(session))
        self._panels: list[Panel] = []
        super().__init__(self._page(), session=store.state.session)
        self.add_class("irviz-explorer")
        self._effects = Effects(store)
        for panel in self._panels:
            store.subscribe(panel.update)
        store.subscribe(self._follow)
        self.observe(lambda change: self.dispatch(actions.SetSession(change.new)), "session")

    def dispatch(self, action: Action) -> None:
        """Do what an action says, as a click does; `irviz.explorer.actions` has them all."""
        self.store.dispatch(action)

    def run(self) -> None:
        """Run the current stage, and first those it is compared with that have not been run.

        In a notebook this returns at once; `results` has them when they are done.
        """
        self.dispatch(actions.Run())

    @property
    def results(self) -> Mapping[str, RunResult]:
        """The last run of each stage, by its id."""
        return self.store.state.function_runs.results

    @property
    def run_errors(self) -> Mapping[str, str]:
        """Why a stage could not be run, by its id."""
        return self.store.state.function_runs.errors

    def close(self) -> None:
        """Cancel what runs, and remove everything from the page."""
        if effects := getattr(self, "_effects", None):
            effects.cancel()
        self.store.close()
        for child in _inside(self):
            child.close()
        super().close()

    def _repr_mimebundle_(self, **options: object) -> dict[str, object]:
        """Show the widget, or a still picture where no kernel runs."""
        bundle: dict[str, object] = super()._repr_mimebundle_(**options) or {}
        figure = scene(self.store.state, "current").figure
        return {**bundle, "image/svg+xml": figure.svg} if figure is not None else bundle

    def _follow(self, state: State, _: State) -> None:
        self.session = state.session
        self.selected = shown_selection(state, state.selection.side)
        (self.add_class if state.reference else self.remove_class)("irviz-comparing")

    def _page(self) -> list[widgets.Widget]:
        """Make all panels, and return them in their places."""
        store = self.store

        def show(panel: PanelKind) -> PanelKind:
            self._panels.append(panel)
            return panel

        current = show(StagePicture(store, "current"))
        reference = show(StagePicture(store, "reference"))
        widgets.jslink((current.canvas, "viewport"), (reference.canvas, "viewport"))
        finder, compare = show(Finder(store)), show(CompareChooser(store))
        choices = [show(FunctionChooser(store)).widget, finder.widget, finder.count, compare.widget]
        choices += [show(ColourChooser(store)).widget, compare.verdict]
        choices.append(show(DifferenceButton(store)).widget)
        node, record = show(NodePanel(store)), show(RecordButton(store))
        values = [record.widget, record.cost, show(ValuePanel(store)).widget]
        of_node = [show(Navigation(store)).widget, node.widget, widgets.VBox(values)]
        of_node += [show(SwapPanel(store)).widget, show(UpdatePanel(store)).widget, node.source]
        tabs = {"Node": widgets.VBox(of_node)}
        for title, kinds in _TABS.items():
            tabs[title] = widgets.VBox([show(kind(store)).widget for kind in kinds])
        middle = widgets.VBox(
            [
                show(QuestionBar(store)).widget,  # where the buttons are: the canvas is high
                classed(widgets.HBox(choices), "irviz-choices"),
                finder.found,
                classed(widgets.HBox([current.widget, reference.widget]), "irviz-panes"),
                show(StatusBar(store)).widget,
                show(JobBar(store)).widget,
            ]
        )
        right = widgets.Tab([*tabs.values()], titles=tuple(tabs))
        parts = [show(StageList(store)).widget, classed(middle, "irviz-middle")]
        body = classed(widgets.Box([*parts, classed(right, "irviz-tabs")]), "irviz-body")
        css = "\n".join((STATIC / name).read_text(encoding="utf-8") for name in _STYLES)
        style = widgets.HTML(f"<style>{css}</style>")
        show_if(style, False)
        return [style, body]


_STYLES = ("explorer.css", "loops.css")
_TABS: Mapping[str, tuple[type[Panel], ...]] = {
    "Transform": (BindPanel, PassPanel, ReplayPanel),
    "Schedule": (SchedulePanel, StepTiming, TracePanel),
    "Run": (RunButton, InputsPanel, LimitsPanel, RunPanel),
    "Profile": (TimingPanel, MemoryPanel),
    "Save": (SavePanel, PythonPanel),
}


def _inside(widget: widgets.Widget) -> list[widgets.Widget]:
    """Return all widgets inside of another one."""
    children = getattr(widget, "children", ())
    return [one for child in children for one in (*_inside(child), child)]


def explore(
    what: object,
    *,
    params: Mapping[str, Array] | None = None,
    inputs: Any = None,
    labels: NDArray[int64] | None = None,
    function: str = "",
    name: str = "",
    trust: bool = False,
) -> Explorer:
    """Open the explorer on a session, a module, a model or a file.

    Args:
        what: A `Session`, or what `irviz.load` takes. Opening a file runs nothing that is in it.
        params: Arrays by parameter name, to bind and to run with.
        inputs: An array for the remaining parameter, or a dict of arrays by name, with one case
            a row; the example inputs of a model of torch.
        labels: The right class of each case, of shape (cases,).
        function: The function to begin with; by default "main", or else the first by its name.
        name: One of the modules of a file that has several.
        trust: Whether code of the file may be run without a question.

    Returns:
        A widget that displays itself, and can be put into other widgets. `explorer.session` is
        the session as it is now.

    Raises:
        ValueError: For what holds no module, or has no function to show.
    """
    if isinstance(what, Session):
        return Explorer(what)
    return Explorer(
        load(
            what,
            name=name,
            params=params,
            inputs=inputs,
            labels=labels,
            function=function,
            trust=trust,
        )
    )
