"""The pane of the shown stage: its picture, how the reader looks at it, and ways to a node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import ipywidgets as widgets

from irviz.app.canvas import Canvas
from irviz.app.message import Say
from irviz.app.navigation import MOST_FOUND, Around, Finder
from irviz.app.picture import Look, Picture
from irviz.app.read import graph_of, tree_of
from irviz.app.reference import Laid, caption_html, pictured
from irviz.app.session import Session
from irviz.model.graph import Node, NodeId
from irviz.model.locate import reveal
from irviz.model.nearby import AFTER, BEFORE
from irviz.model.opening import LIMIT
from irviz.model.search import search
from irviz.model.splice import inside, paths
from irviz.view.details import KINDS
from irviz.view.layout import Point

_MOST_SEARCHED = 50


@dataclass(frozen=True)
class Listener:
    """What a pane tells: that the picture is another, a selection, words, a function to go to."""

    drawn: Callable[[], None]
    selected: Callable[[str], None]
    said: Say
    focus: Callable[[str], None]


class Pane:
    """Draw a stage as far as it is open, and open, close, find and narrow it as asked."""

    def __init__(self, session: Session, listener: Listener, overlay: Laid) -> None:
        self._session, self._listener, self._overlay = session, listener, overlay
        self._looks: dict[str, Look] = {}
        self._places: Mapping[str, Point] = {}
        self._picture: Picture | None = None
        self.canvas, self._caption = Canvas(), widgets.HTML()
        self.around, self.finder = Around(self.look_at, self.toggle), Finder(self._find, self.jump)
        self.widget = widgets.VBox([self._caption, self.canvas])
        self.canvas.observe(lambda change: listener.selected(change.new), "selected")
        self.canvas.on_ask(self.toggle, self.leave)

    @property
    def look(self) -> Look:
        """How the function is looked at."""
        return self._looks.get(self._session.function, Look())

    @property
    def picture(self) -> Picture:
        """What is drawn."""
        assert self._picture is not None, "a pane is shown before it is asked"
        return self._picture

    def show(self, session: Session) -> None:
        """Draw the shown stage, with the same node selected."""
        self._session = session
        self._draw(pictured(session, session.shown_id, self.look))

    def _draw(self, picture: Picture, kept: str = "") -> None:
        """Draw a picture, with what was at `kept` in the last one where it was."""
        session, stage = self._session, self._session.shown
        overlay = self._overlay(picture, stage.id)
        self._picture, drawing = picture, picture.figure(overlay=overlay)
        with self.canvas.hold_sync():
            if kept:
                self.canvas.keep_in_place(self._places.get(kept), drawing.places.get(kept))
            least = self.canvas.height if kept else 0
            name = f"graph of {session.function}, stage {stage.id}"
            self.canvas.show(drawing, name, least=least)
            self.canvas.selected = self._selected(picture)
        self._places = drawing.places
        self._caption.value = caption_html(stage.id, stage.label, picture)
        if drawing.note:
            self._listener.said(drawing.note, False)

    def describe(self) -> None:
        """Offer what can be done with the selected node."""
        self.around.show(self.picture, self.look, self.canvas.selected)

    def look_at(self, look: Look, kept: str = "") -> None:
        """Look at the function otherwise; what cannot be shown is said and leaves all as it was."""
        try:
            picture = self._session.picture(look=look)
        except ValueError as failure:
            self._listener.said(str(failure), True)
            return
        self._looks[self._session.function] = look
        self._listener.said("", False)
        self._draw(picture, kept)
        self._listener.drawn()

    def toggle(self, one: str) -> None:
        """Open what is closed, close what is open; anything else is ignored."""
        is_open = one in self.picture.closable
        if is_open or one in self.picture.openable:
            self.look_at(self.look.toggle(one, self.picture.closable), one)
            is_more = one in (BEFORE, AFTER)  # which may be there still, with others
            if not (is_open or is_more) and one in self.picture.openable:
                words = f"There is no room to open this: a picture has at most {LIMIT} nodes."
                self._listener.said(f"{words} Close something, or look at what is nearby.", False)

    def leave(self, node_id: str) -> None:
        """Close what is around a node."""
        self.toggle(self.picture.around(node_id))

    def _selected(self, picture: Picture) -> str:
        """Return the selected node, or what shows it now."""
        selected = str(self.canvas.selected)
        if not selected or selected in picture.graph.index:
            return selected
        if selected in picture.whole.index:
            return str(picture.where(NodeId(selected)) or "")
        call = next((one for one in picture.graph.index if inside(one, selected) is not None), "")
        first = (node.id for node in picture.graph.nodes if picture.around(node.id) == selected)
        return str(call or next(first, ""))  # what it is in, or what is in it

    def _find(self, words: str) -> tuple[tuple[str, NodeId, str], ...]:
        """Search the function that is shown, then the others."""
        session = self._session
        others = [name for name in session.functions if name != session.function]
        functions = [session.function, *others[:_MOST_SEARCHED]]
        graphs = [graph_of(session.shown, function) for function in functions]
        found = [(graph, graph[node_id]) for graph in graphs for node_id in search(graph, words)]
        width = min(max((len(node.id) for _, node in found[:MOST_FOUND]), default=0), 24)
        return tuple(
            (
                graph.function,
                node.id,
                _line(node, width, "" if graph is graphs[0] else graph.function),
            )
            for graph, node in found
        )

    def jump(self, function: str, node_id: NodeId) -> None:
        """Show a node, opening what hides it, and select it."""
        self._listener.focus(function)
        look = self.look.whole
        tree = tree_of(self._session.shown, function)
        self.look_at(look.choose(reveal(tree, look.choices, node_id)))
        place = self.picture.where(node_id)
        if place is not None and place in self.picture.openable:  # one of many that are used alike
            self.toggle(place)
            place = self.picture.where(node_id)
        self.canvas.selected = str(place or "")

    def reach(self, function: str, node_id: str) -> None:
        """Show a node that may be inside of a call, opening the calls around it, and select it."""
        *calls, _ = paths(node_id)
        self.jump(function, NodeId(calls[0] if calls else node_id))
        for call in calls:
            if call in self.picture.openable:
                self.toggle(call)
        if calls and node_id in self.picture.graph.index:
            self.canvas.selected = node_id


def _line(node: Node, width: int, function: str) -> str:
    """Return the words that a node is found by, in columns."""
    what = node.callee.removeprefix("relax.") or KINDS[node.kind]
    return f"{node.id:<{width}}  {what:<16}  {node.type_label}  in {function}"
