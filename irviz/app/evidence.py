"""What a trace shows: colours on the graph, the selected node's value, where stages part."""

from __future__ import annotations

from collections.abc import Callable

import ipywidgets as widgets

from irviz.app.controls import button, said, show_if
from irviz.app.findings import Findings, fetched, findings
from irviz.app.overlays import BY_TRACE, DIFFERENCE
from irviz.app.picture import Picture
from irviz.app.read import array_of
from irviz.app.results import Results
from irviz.app.session import Session
from irviz.app.value_panel import ValuePanel
from irviz.model.graph import NodeId
from irviz.model.summary import summarise
from irviz.model.trace import Array, Trace, Value
from irviz.view.badge import duration
from irviz.view.overlay import Overlay
from irviz.view.parting import node_name

_PART, _ALL = "Where do they part?", "Show all alike"


class Evidence:
    """Show what was recorded of the shown stage, and beside another one.

    `record` is asked for traces of the shown stage, and with True of the one that it is compared
    with as well; `redraw` for the pictures anew.
    """

    def __init__(
        self,
        results: Results,
        record: Callable[[bool], None],
        redraw: Callable[[], None],
        say: Callable[[str, bool], None],
    ) -> None:
        self._results, self._record, self._redraw = results, record, redraw
        self._session: Session | None = None
        self._pair, self._selected = ("", ""), ""
        self._found: Findings | None = None
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
        self._recording.on_click(lambda _: self._record(False))
        self.value = ValuePanel(self._fetched, say)
        self._told = widgets.HTML()
        self.widget = widgets.VBox([self._recording, self._told, self.value.widget])

    def show(self, session: Session, reference: str) -> None:
        """Show what is known of the shown stage beside the reference; "" stands for the first."""
        pair = (session.shown_id, reference or "0")
        if pair != self._pair:
            self._is_parted = False
        self._session, self._pair = session, pair
        is_right = not session.shown.error
        show_if(self.part, is_right and pair[0] != pair[1])
        self.part.description = _ALL if self._is_parted else _PART
        show_if(self._recording, is_right)

    @property
    def missing(self) -> tuple[str, ...]:
        """The stages whose traces the chosen colours need and that were not recorded yet."""
        if self._session is None or not self.colours.value or self._session.shown.error:
            return ()
        wanted = self._pair if self.colours.value == DIFFERENCE else self._pair[:1]
        known = {*self._results.traces, *self._results.errors}
        return tuple(one for one in dict.fromkeys(wanted) if one not in known)

    def overlay(self, picture: Picture, stage_id: str) -> Overlay | None:
        """Return what is laid over the picture of a stage, None without colours or a trace."""
        trace, kind = self._results.traces.get(stage_id), self.colours.value
        if trace is None or not kind:
            return None
        if kind in BY_TRACE:
            return BY_TRACE[kind](trace, picture)
        found = self._findings()
        return None if found is None else found.overlay(picture, stage_id)

    def dimmed(self, picture: Picture, stage_id: str) -> list[str]:
        """Return the places to draw pale: what is equal before the stages part."""
        found = self._findings() if self._is_parted else None
        return [] if found is None else found.dimmed(picture, stage_id)

    @property
    def warning(self) -> str:
        """Where a NaN or an infinity first appears in the shown stage, in words."""
        trace = self._results.traces.get(self._pair[0])
        first = trace.first_not_finite if trace is not None else None
        if trace is None or first is None:
            return ""
        counts = [(one.nans, one.infs) for one in trace[first].value.summaries]
        nans, infs = (sum(column) for column in zip(*counts, strict=True))
        return f"the first value that is not finite is {node_name(first)}: {nans} NaN, {infs} Inf"

    def find_parting(self) -> Findings | None:
        """Return how the two stages compare, and draw pale what is equal before they part."""
        found = self._findings()
        self._is_parted = found is not None
        self.part.description = _ALL if self._is_parted else _PART
        return found

    def show_node(self, node_id: str, picture: Picture) -> None:
        """Show the value of the selected node, if it was recorded."""
        self._selected = node_id
        value, words = self._value(node_id, picture) if node_id else (None, "")
        self.value.show(value, node_name(node_id), words=words)
        self._told.value = _cost(self._results.traces.get(self._pair[0]))

    def _value(self, node_id: str, picture: Picture) -> tuple[Value | None, str]:
        assert self._session is not None, "a session is shown before a node"
        trace = self._results.traces.get(self._session.shown_id)
        if trace is not None and node_id in trace.visits:
            line = self._found.line_of(node_id) if self._is_compared() and self._found else ""
            words = [f"input {trace.case}", _time(trace, node_id), line]
            return trace[node_id].value, "; ".join(filter(None, words))
        function, inner, _ = picture.locate(node_id)
        array = array_of(self._session.shown, function, inner)
        if array is not None:
            return Value((summarise(array),), (array,)), ""
        return None, ""

    def _findings(self) -> Findings | None:
        """Compare the two traces, once; None where there are not both of one input."""
        traces = self._traces()
        if traces is None or self._session is None:
            return None
        if not self._is_compared():
            self._found = findings(self._session, self._pair, traces)
        return self._found

    def _is_compared(self) -> bool:
        return self._found is not None and self._found.traces == self._traces()

    def _traces(self) -> tuple[Trace, Trace] | None:
        known = self._results.traces
        if not set(self._pair) <= known.keys():
            return None
        first, second = (known[one] for one in self._pair)
        return (first, second) if first.case == second.case else None

    def _fetched(self) -> tuple[Array, ...]:
        assert self._session is not None, "a value is shown"
        stage_id = self._session.shown_id
        case = self._results.traces[stage_id].case
        return fetched(self._session, stage_id, NodeId(self._selected), case)

    def _part(self) -> None:
        if self._is_parted:
            self._is_parted = False
            self.part.description = _PART
            self._redraw()
        else:
            self._record(True)

    def _colour(self) -> None:
        if self.missing:
            self._record(self.colours.value == DIFFERENCE)
        else:
            self._redraw()


def _time(trace: Trace, node_id: str) -> str:
    """Say how long a node took, and which part of the call that is."""
    taken, share = trace.taken(node_id), trace.share(node_id)
    if taken is None or share is None:
        return ""
    return f"{duration(taken)}, {share:.0%} of the call"


def _cost(trace: Trace | None) -> str:
    """Say what the recording cost."""
    if trace is None:
        return ""
    untraced, cost = duration(trace.untraced), duration(trace.cost)
    return said(
        f"{len(trace.visits)} values recorded in {cost}; a call takes {untraced} without that",
        "irviz-hint",
    )
