"""Draw a graph: from its nodes and edges to a finished picture."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from operator import itemgetter
from types import MappingProxyType
from typing import Literal, NamedTuple
from xml.etree import ElementTree

from irviz.model.graph.graph import Graph, NodeId, RegionKind
from irviz.view import svg_primitives as svg
from irviz.view.figure import Figure
from irviz.view.graph.change_marks import SideChanges, draw_marks, reserved_width
from irviz.view.graph.dot import layout_input, to_dot
from irviz.view.graph.edge_routes import Routing
from irviz.view.graph.layout import LAYOUT_SECONDS, Layout, lay_out
from irviz.view.graph.layout_in_rows import layered_layout
from irviz.view.graph.nodes_and_edges import (
    SceneGeometry,
    bar_width,
    draw_cluster,
    draw_cluster_title,
    draw_edge,
    draw_effect_number,
    draw_node,
    draw_output,
    draw_value_label,
    effect_numbers,
)
from irviz.view.graph.overlay import (
    Overlay,
    draw_flag,
    draw_overlay_legend,
    draw_toggle,
    legend_size,
)
from irviz.view.svg_primitives import Point, Rect, Size, add
from irviz.view.theme import Theme, get_theme

# --- A graph with positions as SVG, for files and for the explorer's canvas -----------------------


MARGIN = 16.0
_DIMMED_OPACITY = "0.62"
_FORK_RADIUS = 2.2


def draw_scene(
    picture: ElementTree.Element,
    graph: Graph,
    scene: SceneGeometry,
    theme: Theme,
    overlay: Overlay | None = None,
    dimmed: Collection[str] = (),
    changes: SideChanges | None = None,
) -> None:
    """Draw a graph into a picture; the arguments are those of `draw_placed`."""
    pale = changes.unchanged.union(dimmed) if changes else frozenset(dimmed)
    beside: dict[NodeId, float] = {}
    if changes:  # what fills a frame has its mark above its texts, or at its lower side
        marks = changes.marks.items()
        beside = {one: reserved_width(mark) for one, mark in marks if one not in changes.contents}
    for index, frame in scene.frames.items():
        draw_cluster(picture, frame, graph.regions[index], theme)
    forks = scene.forks()
    for number, (edge, route) in enumerate(scene.edges):
        change = (
            ("" if edge.source in pale else None) if changes is None else changes.edges.get(number)
        )
        colours = replace(theme, line=theme.changes[change]) if change else theme
        is_removed = change == "removed"
        group = draw_edge(picture, edge, graph[edge.source], route, colours, is_dashed=is_removed)
        for x, y in forks.get(number, ()):
            add(group, "circle", "fork", cx=x, cy=y, r=_FORK_RADIUS, fill=colours.line)
        _dim(group, theme, is_pale=change == "")
    _draw_nodes(picture, graph, scene, theme, overlay, pale, beside)
    for index in scene.frames:  # above the edges that cross the titles
        group = add(picture, "g", "title")
        is_fused = graph.regions[index].kind is RegionKind.FUSED
        colour = theme.changes["fused"] if is_fused else theme.quiet_text
        (title, place), whole = scene.title(index), graph.regions[index].name
        draw_cluster_title(group, title, place, colour, theme)
        if whole and title != whole:
            svg.add_tooltip(group, whole)
    if scene.output:
        draw_output(picture, scene.output, theme)
    if changes:
        draw_marks(picture, scene, changes, theme)


def _draw_nodes(
    picture: ElementTree.Element,
    graph: Graph,
    scene: SceneGeometry,
    theme: Theme,
    overlay: Overlay | None,
    pale: Collection[str],
    beside: Mapping[NodeId, float],
) -> None:
    """Draw each node below the label of its value, and with its markers."""
    effects = effect_numbers(graph)
    for node in graph.nodes:
        if node.id in scene.used:
            outlet = scene.outlet(node.id)
            value = draw_value_label(picture, node, outlet, theme, scene.outward)
            _dim(value, theme, is_pale=node.id in pale)
        rect, mark = scene.shapes[node.id], overlay.marks.get(node.id) if overlay else None
        group = draw_node(picture, node, rect, theme, overlay, beside.get(node.id, 0.0))
        if node.id in effects:
            inside = rect._replace(right=rect.right - bar_width(node))
            draw_effect_number(group, effects[node.id], inside, theme)
        _dim(group, theme, is_pale=node.id in pale)
        if mark and mark.is_flagged:
            draw_flag(group, scene.flag(node.id), theme, is_first=mark.is_first)


def _draw_signs(
    picture: ElementTree.Element,
    graph: Graph,
    scene: SceneGeometry,
    theme: Theme,
    openable: Collection[str],
) -> None:
    """Draw what opens and closes something, above all that could hide it."""
    group = add(picture, "g", "signs")
    for node in graph.nodes:
        if node.id in openable:
            draw_toggle(group, node.id, scene.toggles[node.id], theme, is_open=False)
    for region in (graph.regions[index].id for index in scene.frames):
        if region:
            draw_toggle(group, region, scene.toggles[region], theme, is_open=True)


def _dim(group: ElementTree.Element, theme: Theme, *, is_pale: bool) -> None:
    """Draw a part pale, with a contrast of at least 4.5 to 1 for its texts."""
    if is_pale:
        group.set("class", f"{group.get('class')} dimmed")
        group.set("opacity", _DIMMED_OPACITY)
        for quiet in group.iterfind(f".//*[@fill='{theme.quiet_text}']"):
            quiet.set("fill", theme.text)


# --- label placement ---------------------------------------------------------------------------
#
# Place each label of an overlay next to its node where it covers as little as possible.
#
# A greedy form of the candidate-position model of map labelling (Christensen, Marks and Shieber,
# 1995): each label in turn takes the best free one of a few positions.


_SIZE = 10.0
_ABOVE, _BELOW = 0.75 * _SIZE, 0.22 * _SIZE
_WORDS = 2 * (_ABOVE + _BELOW)
"""The room for two lines of words below the picture."""
_GAP, _SPACE = 4.0, 3.9
"""The distance of a label from its node, and from everything else at its sides."""
_ARROW_LENGTH = 8.5
_CELL = 48.0
_RANK_COST = 0.6
"""The cost of the next candidate position, in covered points of lines."""


class OccupiedArea:
    """The occupied part of a picture.

    A grid of cells makes lookups near a position fast.
    """

    def __init__(self, picture: Rect, obstacles: Iterable[Rect], lines: Iterable[Point]) -> None:
        """Take the rectangles that labels must not overlap, and points that they should avoid."""
        self._picture = picture
        self._obstacles = defaultdict[tuple[int, int], list[Rect]](list)
        self._points = defaultdict[tuple[int, int], list[Point]](list)
        for rect in obstacles:
            self.add(rect)
        for x, y in lines:
            self._points[int(x // _CELL), int(y // _CELL)].append((x, y))

    def add(self, rect: Rect) -> None:
        """Add an obstacle."""
        for cell in _cells(rect):
            self._obstacles[cell].append(rect)

    def is_free(self, rect: Rect) -> bool:
        """Return whether a rectangle is inside the picture and overlaps no obstacle."""
        if not self._picture.contains(rect):
            return False
        return not any(
            rect.overlaps(one) for cell in _cells(rect) for one in self._obstacles.get(cell, ())
        )

    def covered_points(self, rect: Rect) -> int:
        """Count the points of lines in a rectangle."""
        return sum(
            rect.left <= x <= rect.right and rect.top <= y <= rect.bottom
            for cell in _cells(rect)
            for x, y in self._points.get(cell, ())
        )


def place_labels(
    labels: Mapping[NodeId, tuple[str, Rect]], inward: float, area: OccupiedArea
) -> dict[NodeId, Point]:
    """Return the position of each label that has a free one, and add it to the area.

    Of the free positions the one that covers the fewest lines is chosen; earlier ones are
    preferred.

    Args:
        labels: The text of each label, and the rectangle of its node.
        inward: 1 where edges enter nodes from below, -1 where they enter from above.
    """
    placed: dict[NodeId, Point] = {}
    for node_id, (line, node_rect) in labels.items():
        free = []
        for rank, position in enumerate(_positions(line, node_rect, inward)):
            rect = svg.text_rect(line, position, _SIZE)
            rect = rect._replace(left=rect.left - _SPACE, right=rect.right + _SPACE)
            if area.is_free(rect):
                free.append((area.covered_points(rect) + _RANK_COST * rank, position, rect))
        if free:
            _, placed[node_id], chosen = min(free, key=itemgetter(0))
            area.add(chosen)
    return placed


def draw_label(
    parent: ElementTree.Element, node_id: NodeId, line: str, position: Point, theme: Theme
) -> ElementTree.Element:
    """Write the label of a node with a halo in the background's colour; return the group."""
    group = add(parent, "g", "word", data_node=node_id)
    halo = {"stroke": theme.background, "stroke_width": "3", "stroke_linejoin": "round"}
    style = {"font_weight": "600", "paint_order": "stroke", **halo}
    svg.add_text(group, line, position, _SIZE, theme.text, **style)
    return group


def _positions(line: str, rect: Rect, inward: float) -> Iterator[Point]:
    """Yield the candidate positions around a node, the preferred ones first.

    Beside the node; below the corners where edges enter; beside the corners where edges leave; and
    beyond the arrows of the edges that enter.
    """
    half = svg.text_width(line, _SIZE) / 2
    middle = (rect.top + rect.bottom) / 2 + (_ABOVE - _BELOW) / 2
    right, left = rect.right + _GAP + half, rect.left - _GAP - half
    centre = (rect.left + rect.right) / 2
    yield from ((right, middle), (left, middle))
    corner = _baseline(rect.side(inward), 3, inward)
    yield from ((rect.right - half, corner), (rect.left + half, corner))
    past = _baseline(rect.side(-inward), 3, -inward)
    yield from ((right, past), (left, past))
    for row in range(2):
        distance = _ARROW_LENGTH + row * (_ABOVE + _BELOW + 2)
        beyond = _baseline(rect.side(inward), distance, inward)
        yield from ((x, beyond) for x in (centre, rect.right - half, rect.left + half))


def _baseline(border: float, distance: float, direction: float) -> float:
    """Return the baseline of a line of text at a distance below or above a border."""
    return border + direction * distance + (_ABOVE if direction > 0 else -_BELOW)


def _cells(rect: Rect) -> list[tuple[int, int]]:
    return [
        (column, row)
        for column in range(int(rect.left // _CELL), int(rect.right // _CELL) + 1)
        for row in range(int(rect.top // _CELL), int(rect.bottom // _CELL) + 1)
    ]


# --- Figures --------------------------------------------------------------------------------------


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
    overlay: Overlay | None = None,
    dimmed: Collection[str] = (),
) -> GraphFigure:
    """Lay out and draw a graph as `draw_placed` does, without buttons.

    Args:
        direction: "up" or "down": where data flows.

    Raises:
        DrawError: For an unknown theme or direction.
    """
    get_theme(theme)
    return draw_placed(place_graph(graph, direction), theme, overlay=overlay, dimmed=dimmed)


def draw_placed(
    placed: PlacedGraph,
    theme: str = "course",
    *,
    openable: Collection[str] | None = None,
    overlay: Overlay | None = None,
    dimmed: Collection[str] = (),
    changes: SideChanges | None = None,
) -> GraphFigure:
    """Draw a graph at the positions of its layout; the same input gives the same bytes.

    A page restyles and selects by the classes of groups (`node call_tir`, `edge`,
    `block dataflow`, `value`, `toggle`, `tinted`, `word`, `legend`) and by their ids (`data-node`,
    `data-source`, `data-target`, `data-toggle`).

    Args:
        openable: The nodes that get a button to expand them; clusters with an id get one to
            collapse them. None for a picture without buttons.
        overlay: Tints, labels and warnings of nodes, with a legend below. Nodes do not move.
        dimmed: The nodes that are drawn pale, with the edges of their values.
        changes: What became of its nodes and edges, which is marked.
    """
    graph, colours = placed.graph, get_theme(theme)
    scene = SceneGeometry(graph, placed.layout, placed.direction)
    width, height = (side + 2 * MARGIN for side in scene.size)
    if overlay:
        legend = legend_size(overlay)
        width = max(width, legend.width + 2 * MARGIN)
        height += _WORDS + legend.height + MARGIN
    label, css_class = f"graph of {graph.function}", "overlaid" if overlay else ""
    root = svg.svg_document(Size(width, height), css_class, label, colours)
    picture = add(root, "g", transform=f"translate({svg.px(MARGIN)} {svg.px(MARGIN)})")
    draw_scene(picture, graph, scene, colours, overlay, dimmed, changes)
    if overlay:
        below = scene.size.height + MARGIN + _WORDS
        bounds = Rect(-MARGIN, -MARGIN, width - MARGIN, below)
        area = OccupiedArea(bounds, scene.obstacles(overlay, openable or ()), scene.lines())
        labels = scene.labels(overlay)
        for node_id, position in place_labels(labels, -scene.outward, area).items():
            drawn = draw_label(picture, node_id, labels[node_id][0], position, colours)
            _dim(drawn, colours, is_pale=node_id in dimmed)
        draw_overlay_legend(picture, overlay, (0, below), colours)
    if openable is not None:
        _draw_signs(picture, graph, scene, colours, openable)
    return GraphFigure(
        svg=svg.svg_text(root),
        width=width,
        height=height,
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

    `rank_gap` is the space between two ranks, as in `to_dot`; without it there is more for edges.

    A layout that takes longer than `seconds`, fails, or would take too long because of its edges is
    replaced by a simpler one, and the note says so.

    Raises:
        DrawError: For an unknown direction.
    """
    given = layout_input(graph, direction, sizes)
    dot, why, is_strict = to_dot(graph, given, rank_gap), "", False
    if len(graph.edges) > _MAX_EDGES + _MAX_EDGES_PER_NODE * len(graph.nodes):
        why = f"would take too long for {len(graph.edges):,} edges"
    else:
        try:
            layout = lay_out(dot, seconds)
        except TimeoutError:
            why = f"was not ready within {seconds:g} s"
        except Exception as failure:  # there is a picture whatever goes wrong in the engine
            why = f"failed ({failure})"
        else:
            is_whole = layout.nodes.keys() == given.sizes.keys()
            why = (
                "" if is_whole and layout.frames.keys() == given.frames.keys() else "is incomplete"
            )
    if why:
        note = f"The layout {why}: this is a plainer one."
        return PlacedGraph(graph, direction, dot, layered_layout(given), note)
    if _runs_back(graph, layout, given.flow):
        strict = to_dot(graph, given, rank_gap, is_strict=True)
        with suppress(Exception):  # the other layout is there, whatever goes wrong
            found = lay_out(strict, seconds)
            if found.nodes.keys() == given.sizes.keys():
                dot, layout, is_strict = strict, found, True
    routing = Routing(layout, given)
    routing.uncross()
    routing.keep_in_frames()
    if is_strict:
        routing.go_around_boxes()
    routing.use_lanes()
    if not rank_gap:
        routing.spread()
    routing.straighten()
    return PlacedGraph(graph, direction, dot, routing.layout())


def _runs_back(graph: Graph, layout: Layout, flow: float) -> bool:
    """Return whether an edge does not lead on, though its target comes later in the text."""
    ends = ((graph.index[edge.source], graph.index[edge.target]) for edge in graph.edges)
    return any(
        (layout.nodes[f"n{target}"][1] - layout.nodes[f"n{source}"][1]) * flow <= 0
        for edge, (source, target) in zip(graph.edges, ends, strict=True)
        if source < target and not edge.is_carried
    )
