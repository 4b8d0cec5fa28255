"""Graph -> DOT, the input of the layout engine."""

from __future__ import annotations

import math
from collections import Counter

import graphviz

from irviz.errors import DrawError
from irviz.model.graph.graph import OUTPUT, Graph, Node, NodeId
from irviz.view.geometry import Size
from irviz.view.graph import label
from irviz.view.graph.clusters import cluster_contents, cluster_title
from irviz.view.graph.node_shapes import layout_size, output_size
from irviz.view.svg_primitives import text_width

RANKDIRS = {"up": "BT", "down": "TB"}
_PX_PER_INCH = 72.0


def to_dot(graph: Graph, direction: str = "up") -> str:
    """Return the graph in DOT, with sizes instead of text.

    Node `n3` is the fourth node of the graph and edge `e3` the fourth edge; the edges to the
    output follow the graph's own. The size of a node includes the label of its value, which is
    drawn where the node's edges begin: edge labels in Graphviz take several times as long. A node
    is a table with a cell for each argument, so that edges enter in the order of the arguments.
    The engine has no text to measure, so a layout does not depend on the fonts of a machine.

    Raises:
        DrawError: For a direction other than "up" and "down".
    """
    if direction not in RANKDIRS:
        raise DrawError(f"there is no direction {direction!r}; choose one of {', '.join(RANKDIRS)}")
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
    contents = cluster_contents(graph)
    labelloc = "b" if direction == "up" else "t"

    def fill(into: graphviz.Digraph, region: int | None) -> None:
        for item in contents.get(region, ()):
            if isinstance(item, Node):
                _add_node(into, names[item.id], item, arguments[item.id])
            else:
                with into.subgraph(name=f"cluster_{item}") as cluster:
                    title_width = text_width(cluster_title(graph, item), label.VALUE_SIZE)
                    title = _table(Size(title_width + 30, 16.0), 1)
                    cluster.attr(label=title, labeljust="l", margin="12")
                    cluster.attr(labelloc=labelloc)
                    fill(cluster, item)

    fill(source, None)
    for index, (first, second) in enumerate(_consecutive_effects(graph)):
        source.edge(names[first], names[second], id=f"o{index}", style="invis")
    _add_edges(source, graph, names, "s" if direction == "up" else "n")
    return str(source.source)


def _consecutive_effects(graph: Graph) -> list[tuple[NodeId, NodeId]]:
    """Return each impure node with the next one of its region.

    An invisible edge between the two shows them in the order in which they run. Without it, calls
    that only have effects would all be placed side by side.
    """
    last: dict[int | None, NodeId] = {}
    pairs = []
    for node in graph.nodes:
        if not node.is_pure:
            if node.region in last:
                pairs.append((last[node.region], node.id))
            last[node.region] = node.id
    return pairs


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
    size = layout_size(node, arguments)
    tooltip = graphviz.escape(label.title(node))
    if arguments:
        table = _table(size, arguments)
        source.node(name, table, shape="plain", fixedsize="false", tooltip=tooltip)
    else:
        source.node(name, tooltip=tooltip, **_inches(size))


def _table(size: Size, count: int) -> str:
    """Return an HTML label: a row of empty cells with the ports `a0`, `a1`, …"""
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
