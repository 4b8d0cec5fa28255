"""What is drawn of a stage: one function, as far as it is open, with called ones in place."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from irviz.app.read import graph_of, tree_of
from irviz.model.graph import Graph, Node, NodeId, NodeKind, Resolution
from irviz.model.nearby import AFTER, BEFORE, between, neighbourhood, part
from irviz.model.opening import LIMIT, Choices
from irviz.model.shown import Shown, shown
from irviz.model.splice import inside, splice
from irviz.model.tree import Tree, tree
from irviz.transforms.stage import Stage
from irviz.view.figure import Figure, figure
from irviz.view.overlay import Overlay

_LEAST_ROOM = 12


@dataclass(frozen=True)
class Look:
    """How the reader looks at a function: what is open, and which part of it is drawn.

    With `around` it is what is at most `steps` uses away from that node, or with `to` as well
    what lies on the paths between the two.
    """

    choices: Choices = field(default_factory=Choices)
    around: NodeId | None = None
    steps: int = 1
    to: NodeId | None = None

    @property
    def whole(self) -> Look:
        """Look at the whole function again."""
        return replace(self, around=None, to=None, steps=1)

    def at(self, around: NodeId, steps: int = 1, to: NodeId | None = None) -> Look:
        """Look at what is near a node, or between two."""
        return replace(self, around=around, steps=steps, to=to)

    def choose(self, choices: Choices) -> Look:
        """Open and close otherwise."""
        return replace(self, choices=choices)

    def toggle(self, one: str, now: Collection[str]) -> Look:
        """Open what is closed, or close what is open `now`: the rest stays as it is."""
        if one in (BEFORE, AFTER):
            return replace(self, steps=self.steps + 1, to=None)
        if one in now:
            return self.choose(self.choices.close(one))
        known = {*self.choices.opened, *self.choices.closed}
        kept = tuple(other for other in now if other not in known)
        choices = replace(self.choices, opened=(*kept, *self.choices.opened))
        return self.choose(choices.open(one))


@dataclass(frozen=True, eq=False)
class Picture:
    """The graph that is drawn, and where in it everything is.

    `inner` has the pictures of the calls that are open, `part` the nodes of the function that are
    looked at where that is not all of its `size` nodes.
    """

    graph: Graph
    shown: Shown
    inner: Mapping[NodeId, Picture]
    size: int
    part: frozenset[NodeId] | None = None

    @property
    def whole(self) -> Graph:
        """The graph of the function, or of the part of it that is looked at."""
        return self.shown.tree.steps.graph

    @property
    def count(self) -> int:
        """How many nodes of the function are drawn as themselves."""
        known = self.whole.index.keys() - {BEFORE, AFTER}
        return sum(node.id in known for node in self.graph.nodes)

    @property
    def openable(self) -> frozenset[str]:
        """The ids of nodes that can be opened: groups, and calls of functions of the module."""
        return frozenset(
            str(node.id)
            for node in self.graph.nodes
            if node.kind is NodeKind.GROUP or (_is_call(node) and self.opened(node.id) is None)
        )

    @property
    def closable(self) -> frozenset[str]:
        """The ids of frames that can be closed."""
        return frozenset(region.id for region in self.graph.regions if region.id)

    def around(self, node_id: str) -> str:
        """Return the id of the innermost frame around a node that can be closed, "" for none."""
        if node_id in self.closable:  # a call that is open
            return node_id
        index = self.graph.index.get(NodeId(node_id))
        region = self.graph.nodes[index].region if index is not None else None
        while region is not None and not self.graph.regions[region].id:
            region = self.graph.regions[region].parent
        return "" if region is None else self.graph.regions[region].id

    def name(self, container: str) -> str:
        """Return the words of a frame, "" for one that is not there."""
        names = (region.name for region in self.graph.regions if region.id == container)
        return next(names, "")

    def where(self, node_id: NodeId) -> NodeId | None:
        """Return the node of the picture that shows a node of the function, None if it is out."""
        if self.part is not None and node_id not in self.part:
            return None
        return self.shown.where(node_id)

    def locate(self, node_id: str) -> tuple[str, NodeId, Graph]:
        """Return the function that a node is from, its id there, and the graph that was drawn."""
        for call, inner in self.inner.items():
            found = inside(call, node_id)
            if found is not None:
                return inner.locate(found)
        return self.whole.function, NodeId(node_id), self.whole

    def figure(
        self,
        theme: str = "course",
        direction: str = "up",
        *,
        overlay: Overlay | None = None,
        dimmed: Collection[str] = (),
    ) -> Figure:
        """Draw it, with signs to open and close by; raise ValueError for an unknown theme.

        An overlay moves nothing; `dimmed` are the ids of nodes of the picture to draw pale.
        """
        openable = self.openable
        return figure(
            self.graph, theme, direction, openable=openable, overlay=overlay, dimmed=dimmed
        )

    def marks(self, nodes: Iterable[NodeId]) -> list[str]:
        """Return where these nodes of the function are in the picture, each place once."""
        places = (self.where(node) for node in nodes)
        return [str(place) for place in dict.fromkeys(places) if place is not None]

    def opened(self, call: str) -> Picture | None:
        """Return the picture of a called function that is open, None for another call."""
        for outer, inner in self.inner.items():
            if call == outer:
                return inner
            found = inside(outer, call)
            if found is not None:
                return inner.opened(found)
        return None


def picture(stage: Stage, function: str, look: Look | None = None) -> Picture:
    """Return what is drawn of a stage's function.

    Raises ValueError when there is no such function or no such node, or no path between two.
    """
    chosen = look or Look()
    if chosen.around is None:
        return _picture(stage, tree_of(stage, function), chosen.choices, LIMIT)
    graph = graph_of(stage, function)
    for node_id in (chosen.around, chosen.to):
        if node_id is not None and node_id not in graph.index:
            raise ValueError(
                f"{node_id!r} is no node of {function!r}: give the name of one of its variables"
            )
    start, end = chosen.around, chosen.to
    if end is None:
        kept = neighbourhood(graph, start, chosen.steps)
    else:
        kept = between(graph, start, end)
        if not kept:
            raise ValueError(f"no path leads from {start!r} to {end!r}, or back: choose others")
    found = _picture(stage, tree(part(graph, kept)), chosen.choices, LIMIT)
    return replace(found, part=kept, size=len(graph.nodes))


def _picture(stage: Stage, of: Tree, choices: Choices, limit: int) -> Picture:
    """Return the picture of a function, the open calls in place: the latest first, if it fits."""
    found = shown(of, choices, limit)
    graph = found.graph
    inner: dict[NodeId, Picture] = {}
    for call in _called(graph, choices):
        room = limit - len(graph.nodes)
        if room >= _LEAST_ROOM:
            called = tree_of(stage, graph[call].callee)
            drawn = _picture(stage, called, _inside(choices, call), room)
            if len(drawn.graph.nodes) <= room:
                inner[call] = drawn
                graph = splice(graph, call, replace(drawn.shown, graph=drawn.graph))
    return Picture(graph, found, inner, len(of.steps.graph.nodes))


def _is_call(node: Node) -> bool:
    """Tell whether a node calls a Relax function of the module, which can be shown in place."""
    return node.kind is NodeKind.CALL_FUNCTION and node.resolution is Resolution.FUNCTION


def _called(graph: Graph, choices: Choices) -> list[NodeId]:
    """Return the calls that are open, the one that the reader was in last before the others."""
    ages = {one: age for age, one in enumerate(choices.opened)}
    calls = [
        node.id
        for node in graph.nodes
        if _is_call(node) and node.id in ages and node.id not in choices.closed
    ]
    latest = {
        call: max(age for one, age in ages.items() if one == call or inside(call, one) is not None)
        for call in calls
    }
    return sorted(calls, key=lambda call: -latest[call])


def _inside(choices: Choices, call: NodeId) -> Choices:
    """Return the choices about what is in a called function, as they are in the function."""
    return Choices(
        tuple(found for one in choices.opened if (found := inside(call, one)) is not None),
        frozenset(found for one in choices.closed if (found := inside(call, one)) is not None),
        {
            found: copy
            for one, copy in choices.copies.items()
            if (found := inside(call, one)) is not None
        },
    )
