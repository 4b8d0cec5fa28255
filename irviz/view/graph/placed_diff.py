"""The graphs before and after in one layout, with what became of nodes and edges."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from irviz.model.diff.diff_result import FunctionDiff
from irviz.model.diff.side_graphs import SideGraph, SideGraphs, side_graphs
from irviz.model.diff.union_graph import union_graph
from irviz.model.folding.expansion import Expansion
from irviz.model.graph.graph import Edge, Graph, NodeId, RegionKind
from irviz.view.graph.aligned_layouts import place_sides
from irviz.view.graph.change_marks import (
    ChangeMark,
    SideChanges,
    SideMarks,
    reserved_width,
    side_marks,
)
from irviz.view.graph.graph_figure import PlacedGraph


@dataclass(frozen=True, eq=False)
class PlacedDiff:
    """Both sides of a diff, positioned by their union graph.

    Attributes:
        sides: What is drawn of each side.
        union: The layout of the graph of both.
        placed: The layout of each side, of the same size.
        changes: What became of each side.
    """

    sides: SideGraphs
    union: PlacedGraph
    placed: Sequence[PlacedGraph]
    changes: Sequence[SideChanges]

    def changes_of_both(self) -> SideChanges:
        """Return the changes in the graph of both sides."""
        found: dict[NodeId, ChangeMark] = {}
        unchanged: set[NodeId] = set()
        for side, each in zip(self.sides.sides, self.changes, strict=True):
            places, marks = side.places, each.nodes
            found.update({places[one]: mark for one, mark in marks.marks.items() if one in places})
            unchanged.update(places[one] for one in marks.unchanged if one in places)
        edges = _overlay_edges(self.union, self.sides, unchanged)
        return SideChanges(SideMarks(found, frozenset(unchanged)), edges, {})


def place_diff(
    diff: FunctionDiff, direction: str = "up", expansion: Expansion | None = None
) -> PlacedDiff:
    """Lay out the graphs of a function before and after; both must exist."""
    before, after = diff.graphs
    assert before is not None
    assert after is not None
    sides = side_graphs(union_graph((before, after), (diff.nodes,)), expansion)
    marks = [side_marks(side, diff.nodes, is_before=not at) for at, side in enumerate(sides.sides)]
    widths = [{one: reserved_width(mark) for one, mark in each.marks.items()} for each in marks]
    union, placed = place_sides(sides, direction, widths=widths)
    along = [_routes(side) for side in sides.sides]
    inside = diff.frame_contents
    changes = [
        SideChanges(
            marks[at],
            _edge_changes(union.graph, side, along[1 - at], marks[at], is_after=bool(at)),
            {one: inside.get(one, "") for one in side.frames},
        )
        for at, side in enumerate(sides.sides)
    ]
    return PlacedDiff(sides, union, placed, changes)


def _routes(side: SideGraph) -> set[int]:
    """Return the edges of the union graph that a stage has."""
    return {number for number in side.routes if number is not None}


def _edge_changes(
    union: Graph, side: SideGraph, others: set[int], marks: SideMarks, *, is_after: bool
) -> dict[int, str]:
    """Return what became of the edges of a stage; unchanged ones are pale."""
    found: dict[int, str] = {}
    stays = _staying(union, others)
    graph = side.graph
    for index, (edge, number) in enumerate(zip(graph.edges, side.routes, strict=True)):
        if number not in stays:
            found[index] = "added" if is_after else "removed"
        elif {edge.source, edge.target} & marks.unchanged:
            found[index] = ""
    for index, one in enumerate(graph.outputs, start=len(graph.edges)):
        if one in marks.unchanged:
            found[index] = ""
    return found


def _staying(union: Graph, numbers: Collection[int]) -> set[int]:
    """Return edges as pairs of what they connect, with a frame and its contents as one.

    Fused nodes may have used a value twice that the fused call uses once.
    """

    def ends(edge: Edge) -> tuple[object, object]:
        return _outermost_frame(union, edge.source), _outermost_frame(union, edge.target)

    known = {ends(union.edges[number]) for number in numbers}
    return set(numbers) | {
        number
        for number, edge in enumerate(union.edges)
        if (pair := ends(edge)) != (edge.source, edge.target)
        and (pair in known or pair[0] == pair[1])
    }


def _outermost_frame(graph: Graph, node: NodeId) -> NodeId | int:
    """Return the region of the outermost frame around a node, or the node itself."""
    found: NodeId | int = node
    region = graph[node].region
    while region is not None:
        if graph.regions[region].kind is RegionKind.FUSED:
            found = region
        region = graph.regions[region].parent
    return found


def _overlay_edges(
    union: PlacedGraph, sides: SideGraphs, unchanged: Collection[NodeId]
) -> dict[int, str]:
    """Return what became of the edges of both stages in one picture."""
    before, after = (_routes(side) for side in sides.sides)
    stays = _staying(union.graph, before) & _staying(union.graph, after)
    found: dict[int, str] = {}
    for number, edge in enumerate(union.graph.edges):
        if number not in stays:
            found[number] = "removed" if number in before else "added"
        elif edge.source in unchanged or edge.target in unchanged:
            found[number] = ""
    return found
