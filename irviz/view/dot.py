"""Graph -> DOT: what the layout engine is told."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import graphviz

from irviz.model.graph import Graph, Node, NodeId, NodeKind
from irviz.view import label
from irviz.view.style import Shape, style_of

RANKDIRS = {"up": "BT", "down": "TB"}
OUTPUT = NodeId("return")
VALUE_HEIGHT = 20.0
"""The strip at a node's outlet where its value's label stands, in px."""
_PX_PER_INCH = 72.0
_VALUE_MARGIN = 10.0


@dataclass(frozen=True, slots=True)
class Size:
    """Width and height in px."""

    width: float
    height: float


def dot(graph: Graph, direction: str = "up") -> str:
    """Return the graph in DOT: sizes in inches, node `n3` for the fourth node of the graph.

    Edge labels are left to the drawing, which puts a value's label where its node's edges
    begin: every node is given the room of that label too, so that no two of them meet.
    A node's record has a field for each argument, so that edges enter in argument order.
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
        node_attr={"shape": "record", "fixedsize": "true"},
        edge_attr={"tailport": "n" if direction == "up" else "s", "arrowsize": "0.7"},
    )
    names = {node.id: f"n{index}" for index, node in enumerate(graph.nodes)}
    arguments = Counter(edge.target for edge in graph.edges)
    for node in graph.nodes:
        if not _is_framed(graph, node):
            _add_node(source, names[node.id], node, arguments[node.id])
    for block in graph.blocks:
        if block.is_dataflow:
            with source.subgraph(name=f"cluster_{block.index}") as frame:
                frame.attr(label="dataflow", labeljust="l", fontsize="11", margin="12")
                frame.attr(labelloc="b" if direction == "up" else "t")
                for node in graph.nodes:
                    if node.block == block.index:
                        _add_node(frame, names[node.id], node, arguments[node.id])
    inlet = "s" if direction == "up" else "n"
    entered: Counter[NodeId] = Counter()
    for edge in graph.edges:
        head = f"{names[edge.target]}:a{entered[edge.target]}:{inlet}"
        source.edge(names[edge.source], head)
        entered[edge.target] += 1
    if graph.outputs:
        source.node(OUTPUT, "", shape="box", **_inches(output_size()))
    for output in graph.outputs:
        source.edge(names[output], OUTPUT)
    return str(source.source)


def shape_size(node: Node) -> Size:
    """Return the size of a node's own outline."""
    title_width = label.width(label.title(node), label.NAME_SIZE)
    note = label.note(node)
    if style_of(node).shape is Shape.CIRCLE and title_width <= 44:
        side = max(34.0, title_width + 14)
        return Size(side, side)
    if node.kind in (NodeKind.PARAM, NodeKind.CONSTANT):
        return Size(max(34.0, title_width + 20), 28.0)
    text_width = max(title_width, label.width(note, label.NOTE_SIZE))
    return Size(max(72.0, text_width + 28, _value_width(node)), 42.0 if note else 30.0)


def output_size() -> Size:
    """Return the size of the mark that stands for what the function returns."""
    return Size(label.width(OUTPUT, label.NOTE_SIZE) + 16, 20.0)


def _value_width(node: Node) -> float:
    return label.width(label.value_label(node), label.VALUE_SIZE) + _VALUE_MARGIN


def _is_framed(graph: Graph, node: Node) -> bool:
    return node.block is not None and graph.blocks[node.block].is_dataflow


def _add_node(source: graphviz.Digraph, name: str, node: Node, arguments: int) -> None:
    size = shape_size(node)
    taken = Size(max(size.width, _value_width(node)), size.height + VALUE_HEIGHT)
    fields = "|".join(f" <a{index}> " for index in range(arguments))
    source.node(name, fields, tooltip=graphviz.escape(label.title(node)), **_inches(taken))


def _inches(size: Size) -> dict[str, str]:
    return {
        "width": f"{size.width / _PX_PER_INCH:.3f}",
        "height": f"{size.height / _PX_PER_INCH:.3f}",
    }
