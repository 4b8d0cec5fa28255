"""What is drawn of a stage: one function, partly expanded, with called functions inlined."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from irviz.errors import NotFoundError
from irviz.limits import MIN_NODES, MOST_NODES
from irviz.model.folding.expansion import Expansion
from irviz.model.folding.group_tree import ContainerTree, container_tree
from irviz.model.folding.visible_graph import VisibleGraph, visible_graph
from irviz.model.graph.graph import (
    AFTER,
    BEFORE,
    CALLEE,
    Edge,
    Graph,
    Node,
    NodeId,
    NodeKind,
    Region,
    RegionKind,
    Resolution,
    id_in_callee,
    inlined_id,
    inlined_parts,
    neighbourhood,
    nodes_between,
    subgraph,
)
from irviz.session.stage_cache import graph_of, tree_of
from irviz.transforms.stage import Stage
from irviz.view.graph import node_labels
from irviz.view.graph.change_marks import SideChanges
from irviz.view.graph.graph_figure import (
    Direction,
    GraphFigure,
    PlacedGraph,
    draw_placed,
    place_graph,
)
from irviz.view.graph.overlay import Overlay
from irviz.view.theme import PageTheme, ThemeName

_MIN_CALLEE_NODES = 12
"""A called function is inlined only if there is room for this many nodes."""


@dataclass(frozen=True)
class ViewState:
    """Which containers of a function are expanded, and which part of it is drawn.

    Attributes:
        choices: The containers that the user expanded and collapsed.
        around: Draw only the nodes at most `steps` uses away from this node.
        steps: How many uses.
        to: Draw only what is on the paths between `around` and this node.
    """

    choices: Expansion = field(default_factory=Expansion)
    around: NodeId | None = None
    steps: int = 1
    to: NodeId | None = None

    @property
    def whole(self) -> ViewState:
        """This state, but with the whole function drawn."""
        return replace(self, around=None, to=None, steps=1)

    def at(self, around: NodeId, steps: int = 1, to: NodeId | None = None) -> ViewState:
        """Draw only the neighbourhood of a node, or the paths between two."""
        return replace(self, around=around, steps=steps, to=to)

    def choose(self, choices: Expansion) -> ViewState:
        """Return the state with other containers expanded and collapsed."""
        return replace(self, choices=choices)

    def toggle(self, one: str, now: Collection[str]) -> ViewState:
        """Collapse a container that is open `now`, or expand one that is not.

        BEFORE and AFTER stand for what is left out of a part: they extend it by one step.
        """
        if one in (BEFORE, AFTER):
            return replace(self, steps=self.steps + 1, to=None)
        if one in now:
            return self.choose(self.choices.close(one))
        known = {*self.choices.opened, *self.choices.closed}
        kept = tuple(other for other in now if other not in known)
        choices = replace(self.choices, opened=(*kept, *self.choices.opened))
        return self.choose(choices.open(one))


@dataclass(frozen=True, eq=False)
class StageView:
    """The drawn graph, and where each node of the function is in it.

    Attributes:
        visible: The visible graph of the function alone.
        inner: The views of inlined functions, by call.
        size: The number of nodes in the function.
        part: The nodes of the drawn part; None for the whole function.
        placed: A layout shared with other stages; None if it is laid out alone.
        changes: What became of its nodes in a comparison, which the figure marks.
    """

    graph: Graph
    visible: VisibleGraph
    inner: Mapping[NodeId, StageView]
    size: int
    part: frozenset[NodeId] | None = None
    placed: PlacedGraph | None = None
    changes: SideChanges | None = None

    @property
    def whole(self) -> Graph:
        """The graph of the function, or of the part that is drawn."""
        return self.visible.tree.graph

    @property
    def count(self) -> int:
        """The number of the function's nodes that are drawn, as nodes or as lines of others."""
        known = self.whole.index.keys() - {BEFORE, AFTER}
        return len(known & {*(node.id for node in self.graph.nodes), *self.weights})

    @property
    def openable(self) -> frozenset[str]:
        """The ids of nodes that can be expanded: groups, and calls of the module's functions."""
        opened = self.closable
        return frozenset(
            str(node.id)
            for node in self.graph.nodes
            if node.kind is NodeKind.GROUP or (_is_call(node) and node.id not in opened)
        )

    @cached_property
    def weights(self) -> Mapping[NodeId, tuple[Node, NodeId]]:
        """The weights that are lines in a drawn node, by id, with the id of that node."""
        return {
            weight.id: (weight, node.id)
            for node in self.graph.nodes
            for weight in node_labels.weights(node)
        }

    def draws(self, node_id: str) -> bool:
        """Return whether a node or the line of a weight has this id."""
        return node_id in self.graph.index or node_id in self.weights

    @property
    def closable(self) -> frozenset[str]:
        """The ids of regions that can be collapsed."""
        return frozenset(region.id for region in self.graph.regions if region.id)

    def around(self, node_id: str) -> str:
        """Return the id of the innermost region around a node that can be collapsed, or ""."""
        if node_id in self.closable:  # an expanded call
            return node_id
        return next(self.all_around(node_id), "")

    def all_around(self, node_id: str) -> Iterator[str]:
        """Yield the ids of the regions around a node that can be collapsed, the innermost first."""
        _, drawn = self.weights.get(NodeId(node_id), (None, NodeId(node_id)))
        index = self.graph.index.get(drawn)
        region = self.graph.nodes[index].region if index is not None else None
        around = self.graph.regions_around(region)
        return filter(None, (self.graph.regions[one].id for one in around))

    def where(self, node_id: NodeId) -> NodeId | None:
        """Return the drawn node that shows a node of the function, None outside of the part."""
        if self.part is not None and node_id not in self.part:
            return None
        return self.visible.where(node_id)

    def locate(self, node_id: str) -> tuple[str, NodeId, Graph]:
        """Return the function that a drawn node is from, its id there, and the function's graph."""
        for call, inner in self.inner.items():
            found = id_in_callee(call, node_id)
            if found is not None:
                return inner.locate(found)
        return self.whole.function, NodeId(node_id), self.whole

    def figure(
        self,
        theme: ThemeName | PageTheme = "course",
        direction: Direction = "up",
        *,
        overlay: Overlay | None = None,
        dimmed: Collection[str] = (),
    ) -> GraphFigure:
        """Draw the view with markers to expand and collapse; `dimmed` nodes are pale.

        Raises DrawError for an unknown theme or direction.
        """
        placed = self.placed
        if placed is None or placed.direction != direction:
            placed = place_graph(self.graph, direction)
        return draw_placed(
            placed,
            theme,
            openable=self.openable,
            overlay=overlay,
            dimmed=dimmed,
            changes=self.changes,
        )

    def marks(self, nodes: Iterable[NodeId]) -> list[str]:
        """Return the drawn nodes that show these nodes of the function, each once."""
        places = (self.where(node) for node in nodes)
        return [str(place) for place in dict.fromkeys(places) if place is not None]


def stage_view(stage: Stage, function: str, state: ViewState | None = None) -> StageView:
    """Return what is drawn of a stage's function.

    Raises NotFoundError if there is no such function or node, or no path between two.
    """
    chosen = state or ViewState()
    if chosen.around is None:
        return _view(stage, tree_of(stage, function), chosen.choices)
    graph = graph_of(stage, function)
    for node_id in (chosen.around, chosen.to):
        if node_id is not None and node_id not in graph.index:
            raise NotFoundError(
                f"{node_id!r} is not a node of {function!r}: give the name of one of its variables"
            )
    start, end = chosen.around, chosen.to
    if end is None:
        kept = neighbourhood(graph, start, chosen.steps)
    else:
        kept = nodes_between(graph, start, end)
        if not kept:
            raise NotFoundError(f"no path leads from {start!r} to {end!r}, or back: choose others")
    found = _view(stage, container_tree(subgraph(graph, kept)), chosen.choices)
    return replace(found, part=kept, size=len(graph.nodes))


def _view(
    stage: Stage,
    of: ContainerTree,
    choices: Expansion,
    limit: int = MOST_NODES,
    minimum: int = MIN_NODES,
) -> StageView:
    """Return the view of a function with expanded calls inlined, latest first, if they fit."""
    found = visible_graph(of, choices, limit, minimum)
    graph = found.graph
    inner: dict[NodeId, StageView] = {}
    for call in _called(graph, choices):
        room = limit - len(graph.nodes)
        if room >= _MIN_CALLEE_NODES:
            called = tree_of(stage, graph[call].callee)
            drawn = _view(stage, called, _inside(choices, call), room, 0)
            if len(drawn.graph.nodes) <= room:
                inner[call] = drawn
                graph = inline_call(graph, call, replace(drawn.visible, graph=drawn.graph))
    return StageView(graph, found, inner, len(of.graph.nodes))


def _is_call(node: Node) -> bool:
    """Tell whether a node calls a Relax function of the module, which can be inlined."""
    return node.kind is NodeKind.CALL_FUNCTION and node.resolution is Resolution.FUNCTION


def _called(graph: Graph, choices: Expansion) -> list[NodeId]:
    """Return the expanded calls, most recently changed first."""
    opened = choices.opened[::-1]

    def place(call: NodeId) -> int:
        inside = (one == call or id_in_callee(call, one) is not None for one in opened)
        return [*inside].index(True)

    calls = [node.id for node in graph.nodes if _is_call(node) and node.id in opened]
    return sorted((call for call in calls if call not in choices.closed), key=place)


def _inside(choices: Expansion, call: NodeId) -> Expansion:
    """Return the choices inside of a call, with node ids relative to the called function."""
    inner = {
        one: found
        for one in {*choices.opened, *choices.closed, *choices.copies}
        if (found := id_in_callee(call, one)) is not None
    }
    return Expansion(
        tuple(inner[one] for one in choices.opened if one in inner),
        frozenset(inner[one] for one in choices.closed if one in inner),
        {inner[one]: copy for one, copy in choices.copies.items() if one in inner},
        choices.every,
    )


# --- A called function that is drawn in place of its call ----------------------------------------


def inline_call(outer: Graph, call: NodeId, inner: VisibleGraph) -> Graph:
    """Insert a drawn function as a region before its call.

    The arguments lead to the function's parameters, and its results to the call, which is kept
    because it has the value's name. The ids of the function's nodes are those of `inlined_id`.
    """
    caller, frame = outer[call], len(outer.regions)
    region = Region(RegionKind.FUNCTION, inner.graph.function, caller.region, call, call)
    nodes, regions = inlined_parts(inner.graph, call, frame, frame + 1)
    edges = _entering(outer, call, inner)
    edges += [
        edge._replace(source=inlined_id(call, edge.source), target=inlined_id(call, edge.target))
        for edge in inner.graph.edges
    ]
    edges += [
        Edge(inlined_id(call, output), call, (index,))
        for index, output in enumerate(inner.graph.outputs)
    ]
    at = outer.index[call]
    kept = [edge for edge in outer.edges if edge.target != call]
    return replace(
        outer,
        nodes=(*outer.nodes[:at], *nodes, *outer.nodes[at:]),
        edges=(*kept, *edges),
        regions=(*outer.regions, region, *regions),
    )


def _entering(outer: Graph, call: NodeId, inner: VisibleGraph) -> list[Edge]:
    whole = inner.tree.bound.graph
    params = [n for n in whole.nodes if n.kind is NodeKind.PARAM and n.region is None]
    edges = []
    for edge in outer.entering.get(call, ()):
        position = edge.position
        if position == CALLEE or position[0] >= len(params):
            edges.append(edge)
            continue
        param = inner.where(params[position[0]].id)
        if param is not None:
            edges.append(edge._replace(target=inlined_id(call, param), position=position[1:]))
    return edges
