"""The explorer: a session in the viewer, with forms that act on it."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import ipywidgets as widgets
import traitlets
from IPython.display import DisplayHandle, display
from numpy import int64
from numpy.typing import NDArray

from irviz.explorer import actions
from irviz.explorer.background_runner import in_steps
from irviz.explorer.effects import Effects
from irviz.explorer.graph_pane_data import scene_data
from irviz.explorer.panels.kernel_swap_panel import SwapPanel, UpdatePanel
from irviz.explorer.panels.node_value_panel import RecordButton, ValuePanel
from irviz.explorer.panels.panel import Panel, classed
from irviz.explorer.panels.pass_panel import BindPanel, PassPanel, ReplayPanel
from irviz.explorer.panels.profile_panel import MemoryPanel, StepTiming, TimingPanel
from irviz.explorer.panels.results_panel import (
    BisectionPanel,
    InputsPanel,
    LimitsPanel,
    RunButton,
    RunPanel,
)
from irviz.explorer.panels.save_panel import SavePanel
from irviz.explorer.panels.schedule_panel import SchedulePanel, TracePanel
from irviz.explorer.reducer import CHOICES
from irviz.explorer.save_html import write_html
from irviz.explorer.selected_node import shown_selection
from irviz.explorer.stage_pictures import shown_figure
from irviz.explorer.stage_rows import stage_rows
from irviz.explorer.state import State, unchanged
from irviz.explorer.store import Store
from irviz.explorer.viewer.schema import WRITTEN, Download, PaneName, ViewerTraits
from irviz.explorer.viewer.widget import Viewer
from irviz.explorer.viewer_traits import (
    is_text_known,
    iter_text_data,
    moved,
    picture_data,
    status_data,
    text_data,
    text_parts,
    title,
)
from irviz.ir.module_functions import relax_functions
from irviz.loaders.loaded_model import Missing
from irviz.model.runs.run_result import RunResult
from irviz.runtime.argument_conversion import Array
from irviz.session.compare_pipelines import PipelineComparison, compare_pipelines
from irviz.session.node_history import Blame
from irviz.session.open_session import load
from irviz.session.session import Session
from irviz.transforms.recording import Recording
from irviz.transforms.recording import record_passes as record_passes
from irviz.view.graph.graphviz_engine import ENGINE
from irviz.view.templating import render
from irviz.worker.supervisor import RUNS, TRIES

_NODE = "Node"
_FORMS: Mapping[str, tuple[type[Panel], ...]] = {
    _NODE: (RecordButton, ValuePanel, SwapPanel, UpdatePanel),
    "Transform": (BindPanel, PassPanel, ReplayPanel),
    "Schedule": (SchedulePanel, StepTiming, TracePanel),
    "Results": (RunButton, InputsPanel, LimitsPanel, RunPanel, BisectionPanel),
    "Profile": (TimingPanel, MemoryPanel),
    "Save": (SavePanel,),
}
"""The forms of each tab; those of the node are below its facts."""


class Pane(Viewer):
    """A viewer of a store; what the user does in it changes the store's state."""

    def __init__(self, store: Store, **options: object) -> None:
        self.store = store
        self._shown: object = None
        self._text_parts: tuple[object, ...] = ()
        super().__init__(**options)
        self.on_action(self._act)
        store.subscribe(self._show)

    def close(self) -> None:
        """Remove the viewer from the page."""
        self.store.runner.drop(self)
        super().close()

    def _show(self, state: State, before: State) -> None:
        try:
            data = picture_data(state)
            is_known = state is before or is_text_known(state)  # the page begins with all of it
            if is_known:
                data |= text_data(state)
        except Exception:  # why is in the status
            self.show({"status": status_data(state)})
            raise
        if data["scene"] is self._shown:
            del data["scene"]  # a redrawn one may be there, as it was moved
        else:
            self._shown = data["scene"]
            data["scene"] = {**scene_data(state), "moved": moved(state, before)}
        self.show(data)
        if is_known:
            self.store.runner.drop(self)
            self._text_parts = ()
        elif not unchanged(parts := text_parts(state), self._text_parts):  # else a thread makes it
            self._text_parts = parts
            self.store.runner.replace(self, in_steps(iter_text_data(state)), told=self.show)

    def _act(self, action: actions.Action) -> None:
        """Perform an action that the page requests."""
        question = self.store.state.question
        if isinstance(action, CHOICES):
            self.store.dispatch(actions.Look(action))
        elif question is not None and action == actions.Answer(True):
            assert isinstance(question.action, actions.Action), "it was one that asked"
            self.store.dispatch(actions.Trust(question.action, question.files))
        else:
            self.store.dispatch(action)

    def set_state(self, sync_data: Mapping[str, Any]) -> None:
        """Take what the page wrote in one message, as one action.

        Were one trait taken after the other, what is shown after the first would set the others
        back.
        """
        with self.store.runner.lock:
            super().set_state(sync_data)
            written = tuple(_written(name, getattr(self, name)) for name in sync_data)
            self.store.dispatch(actions.Write(tuple(filter(None, written))))


def _written(trait: str, value: object) -> actions.SetField | actions.Select | None:
    """Return what the page does by writing a trait, None if that is nothing."""
    match trait, value:
        case "selection", {"node": str(node), "side": "current" | "reference" as side}:
            return actions.Select(node, side)
    return actions.SetField(WRITTEN[trait], value) if trait in WRITTEN else None


class Explorer(Pane):
    """A widget that shows the stages of a session, and transforms, runs and compares them.

    It displays itself and can be placed inside other widgets.

    Attributes:
        session: The current session; assign to it to show another. Observable.
        selected: The id of the selected node, "" for none. Observable.
        store: Everything that is shown, as state that actions change.
        height: The height in px, 0 to fill the window.
    """

    session = traitlets.Instance(Session)
    selected = traitlets.Unicode("")

    def __init__(self, session: Session, *, height: int = ViewerTraits.height) -> None:
        ENGINE.start()
        TRIES.start()
        RUNS.start()
        store = Store(State.of(session))
        # before the picture, which is drawn while the worker runs a new stage
        Effects(store)
        self._panes: list[Pane] = []
        self._output: DisplayHandle | None = None
        tabs = [name for name in _FORMS if name != _NODE]
        super().__init__(store, session=store.state.session, height=height, tabs=tabs)
        self.still = f"irviz-still-{self.model_id}"
        self._open_form(_NODE)  # now, not while the first selection is shown
        store.subscribe(self._follow)
        store.subscribe(self._draw_still)
        self.observe(lambda change: self._take(change.new), "session")

    def dispatch(self, action: actions.Action) -> None:
        """Perform an action, as a click would; `irviz.explorer.actions` defines them all."""
        self.store.dispatch(action)

    def run(self) -> None:
        """Run the current stage, after any stage that it is compared with and that has no run yet.

        In a notebook this returns at once, and `results` fills as the runs finish.
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

    @property
    def graph(self) -> Viewer:
        """The graph alone, as a separate widget on the same state."""
        return self._pane("graph")

    @property
    def stages(self) -> Viewer:
        """The stages alone, as a separate widget on the same state."""
        return self._pane("stages")

    @property
    def script(self) -> Viewer:
        """The TVMScript alone, as a separate widget on the same state."""
        self.dispatch(actions.SetField("has_script", True))
        return self._pane("script")

    def save_html(self, path: str | os.PathLike[str]) -> Path:
        """Save what is shown as a single HTML file, with the values recorded so far.

        See `irviz.save_html`.
        """
        return write_html(self.store.state, path)

    def close(self) -> None:
        """Cancel running work and remove the explorer from the page."""
        self.store.close()
        for part in (*self.forms.values(), *self._panes):
            for one in (*_inside(part), part):
                one.close()
        self.layout.close()
        super().close()

    def _pane(self, name: PaneName) -> Viewer:
        pane = Pane(self.store, panes=[name])
        self._panes.append(pane)
        return pane

    def _ipython_display_(self) -> None:
        """Show the widget, and a static picture that the widget hides while it is live."""
        widget = self._repr_mimebundle_()
        if widget is not None:
            display(widget[0], metadata=widget[1], raw=True)  # type: ignore[no-untyped-call]
        if self.height:  # else it is the page of `irviz open`, which is never saved
            content = _still_bundle(self.store.state, self.still)
            self._output = display(content, raw=True, display_id=True)  # type: ignore[no-untyped-call]

    def _draw_still(self, state: State, before: State) -> None:
        """Draw the static picture anew soon, unless the user continues."""
        parts = (state.session, state.function, state.reference, state.view)
        is_same = parts == (before.session, before.function, before.reference, before.view)
        if self._output is not None and not is_same:
            self.store.runner.replace(
                self.still,
                lambda _: _still_bundle(state, self.still),
                partial(self._output.update, raw=True),
                delay=_STILL_SECONDS,
            )

    def _take(self, session: Session) -> None:
        """Show an assigned session, unless it came from the state itself."""
        if session is not self.store.state.session:
            self.dispatch(actions.SetSession(session))

    def _follow(self, state: State, before: State) -> None:
        if state.file is not None and state.file is not before.file:
            told: Download = {
                "action": "Download",
                "name": state.file.name,
                "type": state.file.media_type,
            }
            self.send(told, buffers=[state.file.content])
        self.session = state.session
        self.selected = shown_selection(state)
        self._open_form(state.tab)

    def _open_form(self, tab: str) -> None:
        """Create the forms of a tab when it is first opened: hundreds of widgets take seconds."""
        if tab in self.forms or tab not in _FORMS:
            return
        panels = [kind(self.store) for kind in _FORMS[tab]]
        for panel in panels:
            self.store.subscribe(panel.update)
        box = classed(widgets.VBox([panel.widget for panel in panels]), "irviz-form")
        self.forms = {**self.forms, tab: box}


def _inside(widget: widgets.Widget) -> list[widgets.Widget]:
    """Return all widgets inside another one, with their layouts and styles."""
    looks = (getattr(widget, name, None) for name in ("layout", "style"))
    parts = [*getattr(widget, "children", ()), *looks]
    inside = [one for one in parts if isinstance(one, widgets.Widget)]
    return [one for part in inside for one in (*_inside(part), part)]


def explore(
    what: object,
    *,
    params: Mapping[str, Array] | str | os.PathLike[str] | None = None,
    inputs: Any = None,
    labels: NDArray[int64] | None = None,
    function: str = "",
    name: str = "",
    trust: bool = False,
    missing: Missing = "error",
    height: int = ViewerTraits.height,
) -> Explorer:
    """Open the explorer on a session, a module, a model or a file.

    Args:
        what: A `Session`, or anything that `irviz.load` takes. Opening a file runs nothing in it.
        params: Arrays by parameter name, to bind and to run with, or the path of a file with them.
        inputs: An array for the remaining parameter, or a dict of arrays by name, with one case per
            row; for a torch model, its example inputs.
        labels: The correct class of each case, of shape (cases,).
        function: The function to show first; by default "main", or else the first by name.
        name: The module to open, if the file defines several.
        trust: Whether code in the file may be run without asking.
        missing: What to do with calls that TVM's importer does not support, as in `irviz.load`.
        height: The height of the widget in px, 0 to fill the window.

    Returns:
        A widget that displays itself and can be placed inside other widgets. `explorer.session` is
        its current session.

    Raises:
        ValueError: `what` holds no module, or the module has no function to show.
    """
    if not isinstance(what, Session):
        what = load(
            what,
            name=name,
            params=params,
            inputs=inputs,
            labels=labels,
            function=function,
            trust=trust,
            missing=missing,
        )
    return Explorer(what, height=height)


# --- The static picture that a notebook shows of an explorer without a kernel ---------------------


_MOST_STAGES = 60
_STILL_SECONDS = 0.3
"""The picture is drawn after this much idle time."""


def _still_bundle(state: State, name: str) -> dict[str, str]:
    """Return the picture as SVG, and in HTML with the stages.

    `name` is its CSS class, by which the widget finds it.
    """
    rows = stage_rows(state)
    plain = ", ".join(f"{row['id']} {row['label']}" for row in rows[:_MOST_STAGES])
    words = {
        "name": name,
        "title": title(state.session),
        "function": state.function,
        "rows": rows[:_MOST_STAGES],
        "more": max(len(rows) - _MOST_STAGES, 0),
        "reference": state.reference,
    }
    try:
        svg = shown_figure(state).svg
        picture = base64.b64encode(svg.encode()).decode()
    except Exception as failure:  # the page says the same in the place of the picture
        return {"text/html": render("still", **words, picture="", why=failure)}
    html = render("still", **words, picture=picture, why="")
    return {"text/html": html, "image/svg+xml": svg, "text/plain": f"irviz: stages {plain}"}


# --- Recordings that open as an explorer ----------------------------------------------------------


class ExplorableRecording(Recording):
    """A recording whose passes can be explored as the stages of a session."""

    def session(self) -> Session:
        """Return a session with a stage for each pass; raise ValueError if none ran."""
        return Session.from_stages(self.stages())

    def explore(self) -> Explorer:
        """Open the explorer on the stages; raise ValueError if no pass ran."""
        return Explorer(self.session())

    def blame(self) -> Blame:
        """Return the TVMScript of the last stage that has the function, with blame.

        Each line has the pass that last changed it.

        Raises:
            StageError: No pass ran.

        Example:
            ```python
            with irviz.record() as recording:
                pipeline(mod)
            print(recording.blame())
            ```
        """
        session = self.session()
        stages = [
            one for one in session.tree.stages if session.function in relax_functions(one.module)
        ]
        return session.blame(stages[-1].id)

    def compare(
        self, other: ExplorableRecording | Session, titles: tuple[str, str] = ("before", "after")
    ) -> PipelineComparison:
        """Compare the passes with those of another recording, and the module after each.

        Args:
            other: The other recording, or its session, such as `irviz.load("work.irviz")`.
            titles: The names of the two recordings.

        Raises:
            StageError: One of the two ran no pass.

        Example:
            ```python
            with_options.compare(without).diff.save("difference.svg")
            ```
        """
        after = other if isinstance(other, Session) else other.session()
        return compare_pipelines(self.session(), after, titles)


@contextmanager
def record() -> Iterator[ExplorableRecording]:
    """Record every pass that runs inside the `with` block, in any code.

    `with irviz.record() as recording: tvm.compile(mod, "llvm")`, then `recording.explore()`. An
    exception propagates; what was recorded until then is kept, with the pass that raised it.
    """
    with record_passes(ExplorableRecording) as recording:
        yield recording
