"""What a trace shows: colours on the graph, the selected node's value, where stages part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import ipywidgets as widgets

from irviz.app.background import is_busy, was_cancelled
from irviz.app.controls import button, show_if
from irviz.app.findings import Findings, fetched, findings
from irviz.app.message import Say
from irviz.app.node_value import cost_html, node_value, not_finite_line
from irviz.app.overlays import BY_TRACE, DIFFERENCE
from irviz.app.picture import Picture
from irviz.app.results import Results
from irviz.app.session import Session
from irviz.app.value_panel import ValuePanel
from irviz.ir.identity import relax_functions
from irviz.model.graph import NodeId
from irviz.model.trace import Array, Trace
from irviz.view.overlay import Overlay
from irviz.view.parting import node_name
from irviz.worker.pool import Heard

_PART, _ALL = "Where do they part?", "Show all alike"


class Evidence:
    """Show what was recorded of the shown stage, and beside another one.

    `case` gives the number of the input to record; `redraw` draws the pictures anew, `reach` goes
    to a node, and `say` shows words, which may be an error's.
    """

    def __init__(
        self,
        results: Results,
        case: Callable[[], int],
        redraw: Callable[[], None],
        reach: Callable[[str], None],
        say: Say,
    ) -> None:
        self._results, self._case = results, case
        self._redraw, self._reach, self._say = redraw, reach, say
        self._session: Session | None = None
        self._pair, self._selected = ("", ""), ""
        self._found: Findings | None = None
        self._given_up: tuple[Trace, Trace] | None = None
        self._is_parted = False
        self.colours = widgets.Dropdown(
            options=[("–", ""), *((one, one) for one in (*BY_TRACE, DIFFERENCE))],
            description="colour by",
            style={"description_width": "initial"},
        )
        self.colours.add_class("irviz-colour-by")
        self.colours.observe(lambda _: self._colour(), "value")
        self.part = button(_PART, "Compare the two stages node by node", name="irviz-part")
        self.part.on_click(lambda _: self._part())
        self._recording = button(
            "Record values", "Run once more and keep the value at every node", "eye", "irviz-record"
        )
        self._recording.on_click(lambda _: self._record(self._pair[:1], self._show_recorded))
        self.value = ValuePanel(self._fetched, say)
        self._told = widgets.HTML()
        self.widget = widgets.VBox([self._recording, self._told, self.value.widget])

    def show(self, session: Session, reference: str) -> None:
        """Show what is known of the shown stage beside the reference; "" stands for the first."""
        self._session = session
        pair = (session.shown_id, reference or "0")
        if pair != self._pair or self._traces() is None:
            self._is_parted = False
        self._pair = pair
        show_if(self.part, self._can_record and pair[0] != pair[1])
        self.part.tooltip = f"Compare stages {pair[0]} and {pair[1]} node by node"
        self.part.description = _ALL if self._is_parted else _PART
        show_if(self._recording, self._can_record)

    def update(self) -> None:
        """Record what the chosen colours need, where that was not tried yet."""
        failed = {*self._results.untraced, *self._results.errors}
        traces = self._traces()
        is_tried = traces is not None and traces == self._given_up
        if self._is_lacking and not is_tried and failed.isdisjoint(self._wanted):
            self._record(self._wanted, self._show_recorded)

    @property
    def _can_record(self) -> bool:
        """Whether the shown stage has values to record: a PrimFunc has none but its buffers."""
        session = self._session
        if session is None or session.shown.error:
            return False
        return session.function in relax_functions(session.shown.module)

    @property
    def _wanted(self) -> tuple[str, ...]:
        """The stages whose traces the chosen colours need."""
        return self._pair if self.colours.value == DIFFERENCE else self._pair[:1]

    @property
    def _is_lacking(self) -> bool:
        """Whether the chosen colours need what is not known."""
        if not self.colours.value or not self._can_record:
            return False
        if self.colours.value != DIFFERENCE:
            return self._pair[0] not in self._results.traces
        return self._pair[0] != self._pair[1] and self._findings is None

    def overlay(self, picture: Picture, stage_id: str) -> Overlay | None:
        """Return what is laid over the picture of a stage, None without colours or a trace."""
        trace, kind = self._results.traces.get(stage_id), self.colours.value
        if trace is None or not kind:
            return None
        if kind in BY_TRACE:
            return BY_TRACE[kind](trace, picture)
        found = self._findings
        return found.overlay(picture, stage_id) if found and stage_id in self._pair else None

    def dimmed(self, picture: Picture, stage_id: str) -> list[str]:
        """Return the places to draw pale: what is equal before the stages part."""
        found = self._findings if self._is_parted and stage_id in self._pair else None
        return [] if found is None else found.dimmed(picture, stage_id)

    def show_node(self, node_id: str, picture: Picture) -> None:
        """Show the value of the selected node, if it was recorded."""
        self._selected = node_id
        trace = self._results.traces.get(self._pair[0])
        value, words = None, ""
        if node_id and self._session is not None:
            stage = self._session.shown
            value, words = node_value(stage, trace, self._findings, node_id, picture)
        self.value.show(value, node_name(node_id), words=words)
        self._told.value = cost_html(trace)

    @property
    def _findings(self) -> Findings | None:
        """How the two stages compare, None where that is not known of these traces."""
        traces = self._traces()
        is_of_these = self._found is not None and self._found.traces == traces
        return self._found if is_of_these else None

    def _traces(self) -> tuple[Trace, Trace] | None:
        known = self._results.traces
        if not set(self._pair) <= known.keys():
            return None
        first, second = (known[one] for one in self._pair)
        return (first, second) if first.case == second.case else None

    def _fetched(self) -> tuple[Array, ...]:
        assert self._session is not None, "a value is shown"
        if is_busy():  # this would wait for it, and nothing else could be done
            raise RuntimeError("something runs: fetch the value when that is done, or cancel it")
        stage_id = self._session.shown_id
        case = self._results.traces[stage_id].case
        return fetched(self._session, stage_id, NodeId(self._selected), case)

    def _part(self) -> None:
        if self._is_parted:
            self._is_parted = False
            self.part.description = _PART
            self._redraw()
        else:
            self._record(self._pair, self._show_parting)

    def _colour(self) -> None:
        if self.colours.value == DIFFERENCE and self._pair[0] == self._pair[1]:
            self._say("a stage does not differ from itself: choose one to compare with", False)
        if self._is_lacking:
            self._record(self._wanted, self._show_recorded)
        else:
            self._redraw()

    def _record(self, stages: tuple[str, ...], then: Callable[[], None]) -> None:
        """Record stages for one input, compare them where there are two, and then do more."""
        session, pair, case = self._session, self._pair, self._case()
        assert session is not None, "it is shown before it is asked for more"
        if len(stages) > 1:
            compared = self._results.comparison(*stages)
            worst = None if compared is None else compared.worst_case
            case = case if worst is None else worst
        wish = _Wish(self._recorded, session, pair, stages, then)
        self._results.trace(session, stages, case, wish)

    def _recorded(self, wish: _Wish) -> None:
        """Go on when values were recorded, or could not be."""
        if wish.pair != self._pair:  # the reader has gone on, too
            self._redraw()
            return
        for stage_id in wish.stages:
            if stage_id not in self._results.traces:
                why = self._results.untraced.get(stage_id, "it was not run")
                self._say(f"the values of stage {stage_id} are not known: {why}", True)
                return
        if len(wish.stages) == 1 or self._findings is not None:
            wish.then()
        else:
            self._compare(wish)

    def _compare(self, wish: _Wish) -> None:
        """Compare both stages beside the kernel: values that were not kept are fetched for it."""
        traces, names = self._traces(), " and ".join(wish.pair)
        if traces is None:
            self._say(f"stages {names} were not recorded for the same input: try again", True)
            return

        def job(heard: Heard) -> Findings:
            return findings(wish.session, wish.pair, traces, heard)

        def done(answer: object) -> None:
            if isinstance(answer, Findings):
                self._found = answer
                if wish.pair == self._pair:
                    wish.then()
                return
            self._given_up = traces
            if not was_cancelled(answer):
                self._say(f"stages {names} could not be compared: {answer}", True)

        key = ("findings", wish.session.function, *wish.pair)
        self._results.background.do(key, f"comparing stages {names}", job, done)

    def _show_recorded(self) -> None:
        """Draw what was recorded, and say where numbers stop being finite."""
        self._redraw()
        self._say(not_finite_line(self._results.traces.get(self._pair[0])), False)

    def _show_parting(self) -> None:
        """Draw pale what is equal before the stages part, go to the node there, and say so."""
        found = self._findings
        assert found is not None, "the stages were compared"
        self._is_parted = found.parting is not None
        self.part.description = _ALL if self._is_parted else _PART
        self._redraw()
        if found.parting is not None:
            self._reach(found.parting.node)
        self._say(found.line, False)


@dataclass(frozen=True)
class _Wish:
    """What is to be done with the traces of stages, unless the reader looks at others by then."""

    go_on: Callable[[_Wish], None]
    session: Session
    pair: tuple[str, str]
    stages: tuple[str, ...]
    then: Callable[[], None]

    def __call__(self) -> None:
        self.go_on(self)
