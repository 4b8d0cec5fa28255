"""The choices above the pictures: function, search, second stage, colours, first difference."""

from __future__ import annotations

import ipywidgets as widgets

from irviz.explorer import actions
from irviz.explorer.panels.form_controls import field, html, offer, paragraph, show_if
from irviz.explorer.panels.panel import Panel
from irviz.explorer.state import State
from irviz.explorer.store import Store
from irviz.explorer.view_model import MOST_FOUND, found_nodes, verdict
from irviz.model.graph.graph import NodeId
from irviz.session.run_overlays import OVERLAYS
from irviz.view.templating import escape


class FunctionChooser(Panel):
    """Choose the function that is looked at, where there are several."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.widget = field(widgets.Dropdown, "irviz-functions", "function", width=None)
        self.on_change(self.widget, self._choose)

    def _show(self, state: State) -> None:
        names = state.session.functions
        offer(self.widget, names or [""], state.function if state.function in names else "")
        show_if(self.widget, len(names) > 1)

    def _choose(self, function: str | None) -> None:
        if function:
            self.send(actions.Focus(function))


class Finder(Panel):
    """Find nodes by name, operator, callee or shape, and go to them.

    `widget` is the field, `count` the number of nodes that were found, and `found` their list.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.widget = field(
            widgets.Text,
            "irviz-find",
            placeholder="find a name, operator, callee, shape",
            width="260px",
        )
        self.count = html("irviz-found-count")
        self.found = field(widgets.Select, "irviz-found", rows=7)
        show_if(self.found, False)
        self.sets(self.widget, "search")
        self.on_change(self.found, self._choose)

    def _parts(self, state: State) -> tuple[object, ...]:
        return state.search, found_nodes(state)

    def _show(self, state: State) -> None:
        found, words = found_nodes(state), state.search.strip()
        self.widget.value = state.search
        self.found.index = None
        self.found.options = [
            (text, (function, node)) for function, node, text in found.nodes[:MOST_FOUND]
        ]
        self.found.index = None
        count = len(found.nodes)
        self.found.rows = min(max(count, 2), 7)
        show_if(self.found, count > 0)
        more = f", the first {MOST_FOUND} are listed" if count > MOST_FOUND else ""
        summary = "; ".join([f"{count} found{more}", *found.errors])
        self.count.value = f'<span role="status">{escape(summary)}</span>' if words else ""

    def _choose(self, chosen: tuple[str, NodeId] | None) -> None:
        if chosen is not None:
            self.send(actions.Reveal(*chosen))
            self.found.index = None  # so that the same one can be chosen again


class CompareChooser(Panel):
    """Choose a stage to compare with; `verdict` says how the results of the two compare."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.widget = field(widgets.Dropdown, "irviz-compare-with", "compare with", width=None)
        self.on_change(self.widget, self._choose)
        self.verdict = html("irviz-verdict")

    def _parts(self, state: State) -> tuple[object, ...]:
        return state.session, state.reference, verdict(state)

    def _show(self, state: State) -> None:
        stages = state.session.stages
        others = [(f"{s.id}  {s.label}", s.id) for s in stages if s.id != state.stage_id]
        offer(self.widget, [("–", ""), *others], state.reference)
        self.verdict.value = paragraph(verdict(state), role="status")

    def _choose(self, stage_id: str | None) -> None:
        if stage_id is not None:
            self.send(actions.Compare(stage_id))


class ColourChooser(Panel):
    """Choose what nodes are coloured by."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        options = [("–", ""), *((label, kind) for kind, label in OVERLAYS.items())]
        self.widget = field(
            widgets.Dropdown, "irviz-colour-by", "colour by", options=options, width=None
        )
        self.on_change(self.widget, lambda kind: self.send(actions.ColourBy(kind or None)))

    def _show(self, state: State) -> None:
        self.widget.value = state.colour_by or ""  # None is a dropdown without a choice


class DifferenceButton(Panel):
    """Go to the first difference of the two stages, and back."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.widget = self.button("", "", actions.ShowFirstDifference(), name="irviz-part")

    def _show(self, state: State) -> None:
        stage, reference = state.pair
        show_if(self.widget, state.can_record(stage) and stage != reference)
        self.widget.tooltip = f"Compare stages {stage} and {reference} node by node"
        self.widget.description = "Show all alike" if state.is_dimmed else "First difference"
