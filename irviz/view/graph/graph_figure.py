"""Draw a graph: from its nodes and edges to a finished picture."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, NamedTuple

from irviz.model.graph.graph import Graph, NodeId
from irviz.view.figure import Figure
from irviz.view.geometry import Point, Size
from irviz.view.graph.change_marks import SideChanges
from irviz.view.graph.dot import layout_input, to_dot
from irviz.view.graph.fallback_layout import add_missing_routes, layered_layout
from irviz.view.graph.graphviz_layout import (
    LAYOUT_SECONDS,
    Layout,
    lay_out,
    without_mirrored_routes,
)
from irviz.view.graph.overlay import Overlay
from irviz.view.graph.scene_geometry import SceneGeometry
from irviz.view.graph.svg import MARGIN, graph_svg, picture_size
from irviz.view.theme import get_theme

Direction = Literal["up", "down"]
"""Where data flows."""

_MAX_EDGES, _MAX_EDGES_PER_NODE = 100, 3
"""With more edges Graphviz takes many seconds, and its layout is unreadable anyway."""


@dataclass(frozen=True, kw_only=True, repr=False)
class GraphFigure(Figure):
    """The picture of a graph.

    Attributes:
        dot: The graph in DOT, as the layout engine got it.
        places: By id, the upper right corner of each node and of each collapsible cluster, where
            its button is or would be.
        note: A remark about the layout, "" for none.
    """

    dot: str
    places: Mapping[str, Point] = field(default_factory=dict)
    note: str = ""

    @property
    def formats(self) -> Sequence[str]:
        """The file suffixes that it can be saved with."""
        return (*super().formats, ".dot")

    def content(self, suffix: str) -> bytes:
        """Return the picture as a file's content; raise SaveError for a suffix not in `formats`."""
        return self.dot.encode() if suffix.lower() == ".dot" else super().content(suffix)


class PlacedGraph(NamedTuple):
    """A graph with a position for everything; `note` is a remark about the layout."""

    graph: Graph
    direction: str
    dot: str
    layout: Layout
    note: str = ""


def draw_graph(
    graph: Graph,
    theme: str = "course",
    direction: str = "up",
    *,
    openable: Collection[str] | None = None,
    overlay: Overlay | None = None,
    dimmed: Collection[str] = (),
    seconds: float = LAYOUT_SECONDS,
) -> GraphFigure:
    """Lay out and draw a graph.

    Args:
        direction: "up" or "down": where data flows.
        openable: The nodes that get a button to expand them; clusters with an id get one to
            collapse them. None for a picture without buttons.
        overlay: Tints, labels and warnings of nodes, with a legend below. Nodes do not move.
        dimmed: The nodes that are drawn pale, with the edges of their values.
        seconds: The time limit of the layout, as in `place_graph`.

    Raises:
        DrawError: For an unknown theme or direction.
    """
    get_theme(theme)
    placed = place_graph(graph, direction, seconds)
    return draw_placed(placed, theme, openable=openable, overlay=overlay, dimmed=dimmed)


def draw_placed(
    placed: PlacedGraph,
    theme: str = "course",
    *,
    openable: Collection[str] | None = None,
    overlay: Overlay | None = None,
    dimmed: Collection[str] = (),
    changes: SideChanges | None = None,
) -> GraphFigure:
    """Draw a graph at the positions of its layout; the arguments are those of `draw_graph`.

    Args:
        changes: What became of its nodes and edges, which is marked.
    """
    scene = SceneGeometry(placed.graph, placed.layout, placed.direction)
    size = picture_size(scene, overlay)
    return GraphFigure(
        svg=graph_svg(placed.graph, scene, get_theme(theme), openable, overlay, dimmed, changes),
        width=size.width,
        height=size.height,
        dot=placed.dot,
        places={name: (x + MARGIN, y + MARGIN) for name, (x, y) in scene.toggles.items()},
        note=placed.note,
    )


def place_graph(
    graph: Graph,
    direction: str = "up",
    seconds: float = LAYOUT_SECONDS,
    sizes: Mapping[NodeId, Size] = MappingProxyType({}),
    rank_gap: str = "",
) -> PlacedGraph:
    """Lay out a graph; `sizes` are those of nodes that need more space than their texts.

    `rank_gap` is the space between two ranks, as in `to_dot`.

    A layout that takes longer than `seconds`, fails, or would take too long because of its edges is
    replaced by a simpler one, and the note says so.

    Raises:
        DrawError: For an unknown direction.
    """
    given = layout_input(graph, sizes)
    dot = to_dot(graph, direction, given, rank_gap=rank_gap)
    if len(graph.edges) > _MAX_EDGES + _MAX_EDGES_PER_NODE * len(graph.nodes):
        why = f"would take too long for {len(graph.edges):,} edges"
    else:
        try:
            layout = lay_out(dot, seconds)
        except Exception as failure:  # there is a picture whatever goes wrong in the engine
            why = f"failed ({failure})"
        else:
            if layout is None:
                why = f"was not ready within {seconds:g} s"
            elif layout.nodes.keys() == given.sizes.keys() and set(layout.frames) == set(
                given.frames
            ):
                if _runs_back(graph, layout, direction):
                    strict = to_dot(graph, direction, given, rank_gap=rank_gap, is_strict=True)
                    found = lay_out(strict, seconds)
                    if found and found.nodes.keys() == given.sizes.keys():
                        dot, layout = strict, found
                layout = without_mirrored_routes(layout, given.edges, direction)
                layout = add_missing_routes(layout, given.sizes, given.edges, direction)
                return PlacedGraph(graph, direction, dot, layout)
            else:
                why = "is incomplete"
    note = f"The layout {why}: this is a plainer one."
    return PlacedGraph(graph, direction, dot, layered_layout(*given, direction), note)


def _runs_back(graph: Graph, layout: Layout, direction: str) -> bool:
    """Return whether an edge does not lead on, though its target comes later in the text."""
    flow = 1.0 if direction == "down" else -1.0
    ends = ((graph.index[edge.source], graph.index[edge.target]) for edge in graph.edges)
    return any(
        (layout.nodes[f"n{target}"][1] - layout.nodes[f"n{source}"][1]) * flow <= 0
        for edge, (source, target) in zip(graph.edges, ends, strict=True)
        if source < target and not edge.is_carried
    )
