"""What is drawn of a stage: one function, as far as it is open, with called ones in place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from irviz.app.read import graph_of, tree_of
from irviz.model.graph import Graph, NodeId, NodeKind, Resolution
from irviz.model.nearby import AFTER, BEFORE, between, neighbourhood, part
from irviz.model.opening import LIMIT, Choices
from irviz.model.shown import Shown, shown
from irviz.model.splice import splice, within
from irviz.model.tree import Tree, tree
from irviz.transforms.stage import Stage
from irviz.view.figure import Figure, figure

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

    def toggle(self, one: str, *, is_open: bool) -> Look:
        """Open what is closed, or close what is open."""
        if one in (BEFORE, AFTER):
            return replace(self, steps=self.steps + 1, to=None)
        return self.choose(self.choices.close(one) if is_open else self.choices.open(one))


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
    def openable(self) -> frozenset[str]:
        """The ids of nodes that can be opened: groups, and calls of functions of the module."""
        return frozenset(
            str(node.id)
            for node in self.graph.nodes
            if node.kind is NodeKind.GROUP
            or (
                node.kind is NodeKind.CALL_FUNCTION
                and node.resolution is Resolution.FUNCTION
                and self.opened(node.id) is None
            )
        )

    @property
    def closable(self) -> frozenset[str]:
        """The ids of frames that can be closed."""
        return frozenset(region.id for region in self.graph.regions if region.id)

    def around(self, node_id: str) -> str:
        """Return the id of the innermost frame around a node that can be closed, "" for none."""
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
        """Return the function that a node of the picture is from, its id there and its graph."""
        for call, inner in self.inner.items():
            if node_id.startswith(f"{call}/"):
                return inner.locate(node_id[len(call) + 1 :])
        return self.whole.function, NodeId(node_id), self.whole

    def figure(self, theme: str = "course", direction: str = "up") -> Figure:
        """Draw it, with signs to open and close by; raise ValueError for an unknown theme."""
        return figure(self.graph, theme, direction, openable=self.openable)

    def marks(self, nodes: Iterable[NodeId]) -> list[str]:
        """Return where these nodes of the function are in the picture, each place once."""
        places = (self.where(node) for node in nodes)
        return [str(place) for place in dict.fromkeys(places) if place is not None]

    def opened(self, call: str) -> Picture | None:
        """Return the picture of a called function that is open, None for another call."""
        for outer, inner in self.inner.items():
            if call == outer:
                return inner
            if call.startswith(f"{outer}/"):
                return inner.opened(call[len(outer) + 1 :])
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
    found = shown(of, choices, limit)
    graph = found.graph
    inner: dict[NodeId, Picture] = {}
    for node in found.graph.nodes:
        is_call = node.kind is NodeKind.CALL_FUNCTION and node.resolution is Resolution.FUNCTION
        room = limit - len(graph.nodes)
        if is_call and node.id in choices.opened and room >= _LEAST_ROOM:
            called = tree_of(stage, node.callee)
            inner[node.id] = _picture(stage, called, _inside(choices, node.id), room)
            graph = splice(
                graph, node.id, replace(inner[node.id].shown, graph=inner[node.id].graph)
            )
    return Picture(graph, found, inner, len(of.steps.graph.nodes))


def _inside(choices: Choices, call: NodeId) -> Choices:
    """Return the choices about what is in a called function, as they are in the function."""
    prefix = within(call, "")
    return Choices(
        tuple(one.removeprefix(prefix) for one in choices.opened if one.startswith(prefix)),
        frozenset(one.removeprefix(prefix) for one in choices.closed if one.startswith(prefix)),
        {k.removeprefix(prefix): v for k, v in choices.copies.items() if k.startswith(prefix)},
    )
