"""A finished picture that shows itself in a notebook and saves itself as a file."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from irviz.model.graph import OUTPUT, Graph, Node
from irviz.view.dot import Size, contents, dot, output_size, taken_size
from irviz.view.layout import BUDGET, Layout, Point, lay_out
from irviz.view.overlay import Overlay
from irviz.view.plain import plain
from irviz.view.saving import saved
from irviz.view.sign import sign_place
from irviz.view.style import theme_of
from irviz.view.svg import MARGIN, paper_size, svg

_MOST_EDGES, _MOST_EDGES_EACH = 100, 3
"""Where edges are this dense, Graphviz takes many seconds, and finds no order in them either."""


@dataclass(frozen=True)
class Figure:
    """A picture of a graph: `svg` is the drawing, `dot` what the layout engine was told.

    `width` and `height` are in px. `places` has the upper right corner of each node, and of each
    frame that can be closed, by its id; `note` a word about the layout where there is one to say.
    """

    svg: str
    dot: str
    width: float
    height: float
    places: Mapping[str, Point] = field(default_factory=dict)
    note: str = ""

    def __repr__(self) -> str:
        """Return what it is; the picture itself is for notebooks and files."""
        return f"<Figure of {len(self.svg)} bytes of SVG; save it with .save('name.svg')>"

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the picture to a `.svg` file, or its DOT to a `.dot` file; return the path.

        The file is written beside its place and moved there whole. Raises ValueError for
        another suffix, OSError where the place cannot be written.
        """
        return saved(path, {".svg": self.svg, ".dot": self.dot})


def figure(
    graph: Graph,
    theme: str = "course",
    direction: str = "up",
    *,
    openable: Collection[str] | None = None,
    overlay: Overlay | None = None,
    dimmed: Collection[str] = (),
    seconds: float = BUDGET,
) -> Figure:
    """Lay out and draw a graph; raise ValueError for an unknown theme or direction.

    `openable` are the ids of nodes that can be opened; without it the picture is a still one. An
    `overlay` tints nodes and moves none; `dimmed` nodes are pale. A layout that takes longer than
    `seconds` is stopped, and a plainer one is drawn; so is one for so many edges that it would.
    """
    colours = theme_of(theme)
    source = dot(graph, direction)
    is_dense = len(graph.edges) > _MOST_EDGES + _MOST_EDGES_EACH * len(graph.nodes)
    layout, note = None if is_dense else lay_out(source, seconds), ""
    if layout is None:
        layout = _plain(graph, direction)
        why = f"took longer than {seconds:g} s"
        if is_dense:
            why = f"would take too long for {len(graph.edges):,} edges"
        note = f"The layout {why}: this is a plainer one."
    size = paper_size(layout, overlay)
    return Figure(
        svg=svg(graph, layout, colours, direction, openable, overlay=overlay, dimmed=dimmed),
        dot=source,
        width=size.width,
        height=size.height,
        places=_places(graph, layout),
        note=note,
    )


def _places(graph: Graph, layout: Layout) -> dict[str, Point]:
    """Return where the signs of nodes and frames stand, or would."""
    places = {}
    for (name, size), node in zip(_sizes(graph).items(), graph.nodes, strict=True):
        x, y = layout.nodes[name]
        corner = sign_place(x - size.width / 2, y - size.height / 2, size.width)
        places[str(node.id)] = _moved(corner)
    for name, frame in layout.frames.items():
        region = graph.regions[int(name.removeprefix("cluster_"))]
        if region.id:
            places[region.id] = _moved(sign_place(frame.x, frame.y, frame.width))
    return places


def _sizes(graph: Graph) -> dict[str, Size]:
    """Return the room that each node takes, by its name in DOT."""
    return {
        f"n{index}": taken_size(node, len(graph.entering.get(node.id, ())))
        for index, node in enumerate(graph.nodes)
    }


def _moved(point: Point) -> Point:
    return (point[0] + MARGIN, point[1] + MARGIN)


def _plain(graph: Graph, direction: str) -> Layout:
    """Lay out the same boxes, edges and frames in rows."""
    names = {node.id: f"n{index}" for index, node in enumerate(graph.nodes)}
    entering = {node_id: len(edges) for node_id, edges in graph.entering.items()}
    sizes = _sizes(graph)
    edges, entered = [], dict.fromkeys(entering, 0)
    for index, edge in enumerate(graph.edges):
        entry = (entered[edge.target] + 0.5) / entering[edge.target]
        edges.append((f"e{index}", names[edge.source], names[edge.target], entry))
        entered[edge.target] += 1
    if graph.outputs:
        sizes[OUTPUT] = output_size()
    for index, output in enumerate(graph.outputs, start=len(graph.edges)):
        edges.append((f"e{index}", names[output], OUTPUT, 0.5))
    insides = contents(graph)
    frames = {
        f"cluster_{frame}": (
            "" if outer is None else f"cluster_{outer}",
            [names[item.id] for item in insides.get(frame, ()) if isinstance(item, Node)],
        )
        for outer, items in insides.items()
        for frame in items
        if isinstance(frame, int)
    }
    return plain(sizes, edges, frames, direction)
