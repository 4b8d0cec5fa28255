"""The choices above the pictures: function, search, second stage, colours, first difference."""

from __future__ import annotations

from html import escape

import ipywidgets as widgets

from irviz.explorer import actions
from irviz.explorer.panels.controls import button, offer, paragraph, show_if
from irviz.explorer.panels.panel import Panel
from irviz.explorer.state import State
from irviz.explorer.store import Store
from irviz.explorer.view_model import MOST_FOUND, found_nodes, verdict
from irviz.model.graph.graph import NodeId
from irviz.session.overlays import OVERLAYS

_NARROW = {"description_width": "initial"}


class FunctionChooser(Panel):
    """Choose the function that is looked at, where there are several."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.widget = widgets.Dropdown(description="function", style=_NARROW)
        self.widget.add_class("irviz-functions")
        self.on_change(self.widget, self._choose)

    def parts(self, state: State) -> tuple[object, ...]:
        """Return the functions of the current stage, and which is looked at."""
        return (state.function, *state.session.functions)

    def show(self, state: State) -> None:
        """Offer the functions of the current stage."""
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
        self.widget = widgets.Text(
            placeholder="find a name, operator, callee, shape",
            continuous_update=True,
            layout=widgets.Layout(width="260px"),
        )
        self.widget.add_class("irviz-find")
        self.count = widgets.HTML()
        self.count.add_class("irviz-found-count")
        self.found = widgets.Select(rows=7, layout=widgets.Layout(width="auto", display="none"))
        self.found.add_class("irviz-found")
        self.on_change(self.widget, lambda words: self.send(actions.SetField("search", words)))
        self.on_change(self.found, self._choose)

    def parts(self, state: State) -> tuple[object, ...]:
        """Return the words and what matches them."""
        return state.search, found_nodes(state)

    def show(self, state: State) -> None:
        """List what matches the words."""
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
        self.widget = widgets.Dropdown(description="compare with", style=_NARROW)
        self.widget.add_class("irviz-compare-with")
        self.on_change(self.widget, self._choose)
        self.verdict = widgets.HTML()
        self.verdict.add_class("irviz-verdict")

    def parts(self, state: State) -> tuple[object, ...]:
        """Return the stages, the chosen one and the verdict."""
        return state.session, state.reference, verdict(state)

    def show(self, state: State) -> None:
        """Offer the other stages."""
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
        self.widget = widgets.Dropdown(
            options=[("–", None), *((label, kind) for kind, label in OVERLAYS.items())],
            description="colour by",
            style=_NARROW,
        )
        self.widget.add_class("irviz-colour-by")
        self.on_change(self.widget, lambda kind: self.send(actions.ColourBy(kind)))

    def parts(self, state: State) -> tuple[object, ...]:
        """Return the choice."""
        return (state.colour_by,)

    def show(self, state: State) -> None:
        """Show the choice."""
        self.widget.value = state.colour_by


class DifferenceButton(Panel):
    """Go to the first difference of the two stages, and back."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.widget = button("", "", name="irviz-part")
        self.widget.on_click(lambda _: self.send(actions.ShowFirstDifference()))

    def parts(self, state: State) -> tuple[object, ...]:
        """Return the two stages, and whether what is equal is pale."""
        return (*state.pair, state.is_dimmed, state.can_record(state.stage_id))

    def show(self, state: State) -> None:
        """Offer what a click does, where two stages have values."""
        stage, reference = state.pair
        show_if(self.widget, state.can_record(stage) and stage != reference)
        self.widget.tooltip = f"Compare stages {stage} and {reference} node by node"
        self.widget.description = "Show all alike" if state.is_dimmed else "First difference"
