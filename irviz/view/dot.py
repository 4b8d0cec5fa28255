"""Graph -> DOT: what the layout engine is told."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import graphviz

from irviz.model.graph import LEAVES, OUTPUT, Graph, Node, NodeId, RegionKind
from irviz.view import label
from irviz.view.style import Shape, style_of

RANKDIRS = {"up": "BT", "down": "TB"}
VALUE_HEIGHT = 20.0
"""The strip at a node's outlet where its value's label stands, in px."""
_PX_PER_INCH = 72.0
_VALUE_MARGIN = 10.0
_LEAST_CELL = 5


@dataclass(frozen=True, slots=True)
class Size:
    """Width and height in px."""

    width: float
    height: float


def dot(graph: Graph, direction: str = "up") -> str:
    """Return the graph in DOT: sizes in inches, node `n3` for the fourth node of the graph.

    Edges have ids, `e3` for the fourth edge; those of the outputs are counted behind them.

    Edge labels are left to the drawing, which puts a value's label where its node's edges
    begin: every node is given the room of that label too, so that no two of them meet.
    A node's table has a cell for each argument, so that edges enter in argument order. There
    is no text for the engine to measure: places do not depend on the fonts of a machine.
    Raises ValueError for a direction other than "up" and "down".
    """
    if direction not in RANKDIRS:
        raise ValueError(
            f"there is no direction {direction!r}; choose one of {', '.join(RANKDIRS)}"
        )
    source = graphviz.Digraph(
        graph_attr={
            "rankdir": RANKDIRS[direction],
            "nslimit": "1",
            "nodesep": "0.25",
            "ranksep": "0.5",
        },
        node_attr={"shape": "box", "fixedsize": "true", "label": ""},
        edge_attr={"tailport": "n" if direction == "up" else "s", "arrowsize": "0.7"},
    )
    names = {node.id: f"n{index}" for index, node in enumerate(graph.nodes)}
    arguments = Counter(edge.target for edge in graph.edges)
    insides = contents(graph)
    labelloc = "b" if direction == "up" else "t"

    def fill(into: graphviz.Digraph, region: int | None) -> None:
        for item in insides.get(region, ()):
            if isinstance(item, Node):
                _add_node(into, names[item.id], item, arguments[item.id])
            else:
                with into.subgraph(name=f"cluster_{item}") as frame:
                    room = Size(label.width(frame_title(graph, item), label.VALUE_SIZE) + 30, 16.0)
                    frame.attr(label=_cells(room, 1), labeljust="l", margin="12")
                    frame.attr(labelloc=labelloc)
                    fill(frame, item)

    fill(source, None)
    for index, (first, second) in enumerate(effects(graph)):
        source.edge(names[first], names[second], id=f"o{index}", style="invis")
    _add_edges(source, graph, names, "s" if direction == "up" else "n")
    return str(source.source)


def effects(graph: Graph) -> list[tuple[NodeId, NodeId]]:
    """Return what may have an effect, each with the next such in its region.

    The second is placed behind the first, as it happens: calls that only have effects would all
    stand side by side else.
    """
    last: dict[int | None, NodeId] = {}
    found = []
    for node in graph.nodes:
        if not node.is_pure:
            if node.region in last:
                found.append((last[node.region], node.id))
            last[node.region] = node.id
    return found


def contents(graph: Graph) -> dict[int | None, list[Node | int]]:
    """Return what each frame holds: its nodes, and the frames in it that are not empty.

    A frame is the index of its region; None has what is in no frame. Binding blocks have none.
    """
    found: dict[int | None, list[Node | int]] = {}
    placed: set[int] = set()
    for node in graph.nodes:
        region = _framed(graph, node.region)
        found.setdefault(region, []).append(node)
        while region is not None and region not in placed:
            placed.add(region)
            outer = _framed(graph, graph.regions[region].parent)
            found.setdefault(outer, []).append(region)
            region = outer
    return found


def _framed(graph: Graph, region: int | None) -> int | None:
    while region is not None and graph.regions[region].kind is RegionKind.BINDING_BLOCK:
        region = graph.regions[region].parent
    return region


def frame_title(graph: Graph, index: int) -> str:
    """Return the words of a frame: what it is, for which node where that is not its name."""
    region = graph.regions[index]
    if region.kind is RegionKind.DATAFLOW_BLOCK:
        return "dataflow"
    return label.shortened(region.name)


def shape_size(node: Node, arguments: int) -> Size:
    """Return the size of a node's own outline, wide enough for its arguments to enter."""
    title_width = label.width(label.title(node), label.NAME_SIZE)
    note = label.note(node)
    if style_of(node).shape is Shape.CIRCLE and title_width <= 44:
        side = max(34.0, title_width + 14)
        return Size(side, side)
    if node.kind in LEAVES:
        return Size(max(34.0, title_width + 20), 28.0)
    text_width = max(title_width, label.width(note, label.NOTE_SIZE))
    width = max(72.0, text_width + 28, _value_width(node))
    if arguments:
        width = arguments * max(_LEAST_CELL, math.ceil(width / arguments))
    return Size(width, 42.0 if note else 30.0)


def taken_size(node: Node, arguments: int) -> Size:
    """Return the room that a node takes, with the strip for its value's label."""
    size = shape_size(node, arguments)
    return Size(max(size.width, _value_width(node)), size.height + VALUE_HEIGHT)


def output_size() -> Size:
    """Return the size of the mark that stands for what the function returns."""
    return Size(label.width(OUTPUT, label.NOTE_SIZE) + 16, 20.0)


def _value_width(node: Node) -> float:
    return label.width(label.value_label(node), label.VALUE_SIZE) + _VALUE_MARGIN


def _add_edges(
    source: graphviz.Digraph, graph: Graph, names: dict[NodeId, str], inlet: str
) -> None:
    entered: Counter[NodeId] = Counter()
    for index, edge in enumerate(graph.edges):
        head = f"{names[edge.target]}:a{entered[edge.target]}:{inlet}"
        back = {"constraint": "false"} if edge.is_carried else {}
        source.edge(names[edge.source], head, id=f"e{index}", **back)
        entered[edge.target] += 1
    if graph.outputs:
        source.node(OUTPUT, **_inches(output_size()))
    for index, output in enumerate(graph.outputs, start=len(graph.edges)):
        source.edge(names[output], OUTPUT, id=f"e{index}")


def _add_node(source: graphviz.Digraph, name: str, node: Node, arguments: int) -> None:
    taken = taken_size(node, arguments)
    tooltip = graphviz.escape(label.title(node))
    if arguments:
        table = _cells(taken, arguments)
        source.node(name, table, shape="plain", fixedsize="false", tooltip=tooltip)
    else:
        source.node(name, tooltip=tooltip, **_inches(taken))


def _cells(size: Size, count: int) -> str:
    """Return a label of this size: a row of empty cells with the ports `a0`, `a1`, …"""
    width, height = math.ceil(size.width / count), math.ceil(size.height)
    cell = f'FIXEDSIZE="TRUE" WIDTH="{width}" HEIGHT="{height}"'
    cells = "".join(f'<TD PORT="a{index}" {cell}></TD>' for index in range(count))
    return (
        '<<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="0">'
        f"<TR>{cells}</TR></TABLE>>"
    )


def _inches(size: Size) -> dict[str, str]:
    return {
        "width": f"{size.width / _PX_PER_INCH:.3f}",
        "height": f"{size.height / _PX_PER_INCH:.3f}",
    }
