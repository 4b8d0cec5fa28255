"""Draw a graph: from its nodes and edges to a finished picture."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from irviz.model.graph.graph import OUTPUT, Graph, Node
from irviz.view.figure import Figure
from irviz.view.geometry import Point, Size
from irviz.view.graph.clusters import cluster_contents
from irviz.view.graph.dot import to_dot
from irviz.view.graph.layered_layout import add_missing_routes, layered_layout
from irviz.view.graph.layout import LAYOUT_SECONDS, Layout, lay_out
from irviz.view.graph.markers import toggle_position
from irviz.view.graph.node_shapes import layout_size, output_size
from irviz.view.graph.overlay import Overlay
from irviz.view.graph.svg import MARGIN, graph_svg, picture_size
from irviz.view.theme import get_theme

Direction = Literal["up", "down"]
"""Where data flows."""

_MAX_EDGES, _MAX_EDGES_PER_NODE = 100, 3
"""With more edges Graphviz takes many seconds, and its layout shows no order either."""


@dataclass(frozen=True, kw_only=True, repr=False)
class GraphFigure(Figure):
    """The picture of a graph.

    Attributes:
        dot: The graph in DOT, as the layout engine got it.
        places: The upper right corner of each node, and of each cluster that can be collapsed, by
            its id: where the button is, or would be.
        note: A remark about the layout, "" for none.
    """

    dot: str
    places: Mapping[str, Point] = field(default_factory=dict)
    note: str = ""

    def _texts(self) -> Mapping[str, str]:
        return {".svg": self.svg, ".dot": self.dot}


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
        openable: The nodes that get a button to expand them, None for a picture without buttons.
        overlay: Tints, labels and warnings of nodes. Nodes do not move.
        dimmed: The nodes that are drawn pale.
        seconds: The time limit of the layout. A layout that takes longer, fails, or would take too
            long because of its edges is replaced by a simpler one, and the figure's `note` says so.

    Raises:
        DrawError: For an unknown theme or direction.
    """
    colours = get_theme(theme)
    source = to_dot(graph, direction)
    layout, note = _layout(graph, source, direction, seconds)
    size = picture_size(layout, overlay)
    return GraphFigure(
        svg=graph_svg(graph, layout, colours, direction, openable, overlay=overlay, dimmed=dimmed),
        width=size.width,
        height=size.height,
        dot=source,
        places=_toggle_positions(graph, layout),
        note=note,
    )


def _layout(graph: Graph, source: str, direction: str, seconds: float) -> tuple[Layout, str]:
    """Return a layout with a position for everything, and a note if it is the simpler one."""
    sizes, edges, clusters = _sizes(graph), _edges(graph), _clusters(graph)
    if graph.outputs:
        sizes[OUTPUT] = output_size()
    if len(graph.edges) > _MAX_EDGES + _MAX_EDGES_PER_NODE * len(graph.nodes):
        why = f"would take too long for {len(graph.edges):,} edges"
    else:
        try:
            layout = lay_out(source, seconds)
        except Exception as failure:  # there is a picture whatever goes wrong in the engine
            why = f"failed ({failure})"
        else:
            if layout is None:
                why = f"was not ready within {seconds:g} s"
            elif layout.nodes.keys() >= sizes.keys() and layout.frames.keys() == clusters.keys():
                return add_missing_routes(layout, sizes, edges, direction), ""
            else:
                why = "is incomplete"
    note = f"The layout {why}: this is a plainer one."
    return layered_layout(sizes, edges, clusters, direction), note


def _toggle_positions(graph: Graph, layout: Layout) -> dict[str, Point]:
    places = {}
    for (name, size), node in zip(_sizes(graph).items(), graph.nodes, strict=True):
        x, y = layout.nodes[name]
        corner = toggle_position(x - size.width / 2, y - size.height / 2, size.width)
        places[str(node.id)] = _in_picture(corner)
    for name, frame in layout.frames.items():
        region = graph.regions[int(name.removeprefix("cluster_"))]
        if region.id:
            places[region.id] = _in_picture(toggle_position(frame.x, frame.y, frame.width))
    return places


def _in_picture(point: Point) -> Point:
    return (point[0] + MARGIN, point[1] + MARGIN)


def _sizes(graph: Graph) -> dict[str, Size]:
    """Return the size that each node needs in the layout, by its name in DOT."""
    return {
        f"n{index}": layout_size(node, len(graph.entering.get(node.id, ())))
        for index, node in enumerate(graph.nodes)
    }


def _edges(graph: Graph) -> list[tuple[str, str, str, float]]:
    """Return each edge's id and ends, and where it enters its target's width, from 0 to 1."""
    names = {node.id: f"n{index}" for index, node in enumerate(graph.nodes)}
    edges, entered = [], dict.fromkeys(graph.entering, 0)
    for index, edge in enumerate(graph.edges):
        entry = (entered[edge.target] + 0.5) / len(graph.entering[edge.target])
        edges.append((f"e{index}", names[edge.source], names[edge.target], entry))
        entered[edge.target] += 1
    for index, output in enumerate(graph.outputs, start=len(graph.edges)):
        edges.append((f"e{index}", names[output], OUTPUT, 0.5))
    return edges


def _clusters(graph: Graph) -> dict[str, tuple[str, list[str]]]:
    """Return each cluster's parent, "" for none, and the nodes that are directly inside it."""
    names = {node.id: f"n{index}" for index, node in enumerate(graph.nodes)}
    contents = cluster_contents(graph)
    return {
        f"cluster_{cluster}": (
            "" if outer is None else f"cluster_{outer}",
            [names[item.id] for item in contents.get(cluster, ()) if isinstance(item, Node)],
        )
        for outer, items in contents.items()
        for cluster in items
        if isinstance(cluster, int)
    }
