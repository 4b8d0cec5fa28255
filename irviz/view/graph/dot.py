"""Write a graph as DOT, the input of the layout engine."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import product
from types import MappingProxyType

import graphviz

from irviz.errors import DrawError
from irviz.model.graph.graph import DIFF_REGIONS, OUTPUT, Edge, Graph, Node, NodeId, RegionKind
from irviz.view.graph import node_labels
from irviz.view.graph.layout import WAYPOINT, LayoutInput
from irviz.view.graph.nodes_and_edges import (
    Entries,
    cluster_contents,
    entries,
    layout_size,
    output_size,
    title_space,
)
from irviz.view.svg_primitives import Size

_STRAIGHT, _ALMOST_STRAIGHT = "8", "3"
FLOWS = {"up": -1.0, "down": 1.0}
"""Where data can flow, as the signs of y."""
_PX_PER_INCH = 72.0
_STEPS = 2000
"""How many steps the engine may take to make edges straight; large graphs get one for each node."""
_STRICT = {"newrank": "true", "mclimit": "0.5"}
"""How edges lead on between frames, too, with half as many steps to uncross them: it is slow."""
_WIDE_SPACES = {"nodesep": "0.25", "ranksep": "0.5", "margin": "12", "title": "16"}
_NARROW_SPACES = {"nodesep": "0.2", "ranksep": "0.25", "margin": "12", "title": "6"}
"""The spaces of a model with layers: between nodes, between ranks, and of frames."""


def layout_input(
    graph: Graph, direction: str = "up", sizes: Mapping[NodeId, Size] = MappingProxyType({})
) -> LayoutInput:
    """Return the sizes, edges and clusters of a graph; `sizes` are those already known.

    Raises:
        DrawError: `direction` is neither "up" nor "down".
    """
    if direction not in FLOWS:
        raise DrawError(f"there is no direction {direction!r}; choose one of {', '.join(FLOWS)}")
    names, entering = _names(graph), entries(graph)
    by_name = {
        names[node.id]: sizes.get(node.id) or layout_size(node, entering.counts[node.id])
        for node in graph.nodes
    }
    edges = []
    for index, (edge, cell) in enumerate(zip(graph.edges, entering.cells, strict=True)):
        target = names[edge.target]
        before, width = entering.widths(edge.target, by_name[target].width)
        entry = (before + width * (cell + 0.5)) / math.ceil(by_name[target].width)
        edges.append((f"e{index}", names[edge.source], target, entry))
    for index, output in enumerate(graph.outputs, start=len(graph.edges)):
        by_name[OUTPUT] = output_size()
        edges.append((f"e{index}", names[output], OUTPUT, 0.5))
    contents = cluster_contents(graph)
    frames = {
        f"cluster_{cluster}": (
            "" if outer is None else f"cluster_{outer}",
            [names[item.id] for item in contents.get(cluster, ()) if isinstance(item, Node)],
        )
        for outer, items in contents.items()
        for cluster in items
        if isinstance(cluster, int)
    }
    return LayoutInput(by_name, edges, frames, FLOWS[direction])


def to_dot(graph: Graph, given: LayoutInput, rank_gap: str = "", is_strict: bool = False) -> str:
    """Return the graph in DOT, with sizes instead of text.

    The size of a node includes the label of its value, which is drawn where the node's edges begin:
    edge labels in Graphviz take several times as long. A node is a table with a cell for each
    argument, so that edges enter in the order of the arguments. The engine has no text to measure,
    so a layout does not depend on the fonts of a machine.

    Args:
        rank_gap: The space between two ranks in inches, by default what suits the graph.
        is_strict: Whether each edge leads to a later rank, also between frames: the engine places
            these one by one otherwise, and prefers short edges to a few that lead on.
    """
    spaces = _NARROW_SPACES if graph.has_weights else _WIDE_SPACES
    rankdir, outlet, inlet, labelloc = (
        ("BT", "n", "s", "b") if given.flow < 0 else ("TB", "s", "n", "t")
    )
    source = graphviz.Digraph(
        graph_attr={
            "rankdir": rankdir,
            "nslimit": str(max(1, _STEPS // max(1, len(graph.nodes)))),
            "nodesep": spaces["nodesep"],
            "ranksep": rank_gap or spaces["ranksep"],
            **(_STRICT if is_strict else {}),
        },
        node_attr={"shape": "box", "fixedsize": "true", "label": ""},
        edge_attr={"tailport": outlet, "arrowsize": "0.7"},
    )
    entering = entries(graph)
    names, contents = _names(graph), cluster_contents(graph)
    waypoints = _waypoints(graph, contents.keys())

    def fill(into: graphviz.Digraph, region: int | None) -> None:
        """Add the nodes, in clusters for their regions."""
        for item in contents.get(region, ()):
            if isinstance(item, Node):
                name = names[item.id]
                _add_node(into, name, item, given.sizes[name], entering)
            else:
                with into.subgraph(name=f"cluster_{item}") as cluster:
                    title = _table([("", title_space(graph, item))], float(spaces["title"]))
                    cluster.attr(label=title, labeljust="l", margin=spaces["margin"])
                    cluster.attr(labelloc=labelloc)
                    fill(cluster, item)
        for name, (entered, _) in waypoints.items():
            if entered == region:
                into.node(f"{name}_in", shape=WAYPOINT, width="0")

    fill(source, None)
    for index, (first, second) in enumerate(_consecutive_effects(graph)):
        source.edge(names[first], names[second], id=f"o{index}", style="invis")
    _add_edges(source, graph, given, [f"a{cell}:{inlet}" for cell in entering.cells], waypoints)
    if OUTPUT in given.sizes:
        source.node(OUTPUT, **_inches(given.sizes[OUTPUT]))
    for name, start, end, _ in given.edges[len(graph.edges) :]:
        source.edge(start, end, id=name)
    for index, (first, user) in enumerate((*_below_frames(graph), *_below_fused(graph))):
        source.edge(names[first], names[user], id=f"i{index}", style="invis")
    return str(source.source)


def _add_edges(
    source: graphviz.Digraph,
    graph: Graph,
    given: LayoutInput,
    ports: Sequence[str],
    waypoints: Mapping[str, tuple[int, NodeId]],
) -> None:
    """Add the edges, which enter their targets at these ports, with a waypoint in two parts."""
    names = _names(graph)
    own = given.edges[: len(graph.edges)]
    for edge, port, (name, start, end, _) in zip(graph.edges, ports, own, strict=True):
        if edge.is_carried:  # it leads back, around its ends: irviz routes it
            continue
        if name in waypoints:
            point, (_, beside) = f"{name}_in", waypoints[name]
            source.edge(start, point, id=name, arrowhead="none", weight=_STRAIGHT)
            source.edge(point, names[beside], id=point, minlen="0", weight=_STRAIGHT, style="invis")
            start = f"{point}:c"
        source.edge(start, f"{end}:{port}", id=name, **_weight(graph, edge))


def _weight(graph: Graph, edge: Edge) -> dict[str, str]:
    """Return what makes an edge straight if it is the only one of both nodes: it is in a chain.

    One that is the only one of its source or its target is bent rather than a chain.
    """
    edges = graph.leaving[edge.source], graph.entering[edge.target]
    ends = [sum(not one.is_carried for one in each) for each in edges]
    if max(ends) == 1:
        return {"weight": _STRAIGHT}
    is_only = min(ends) == 1 and not graph[edge.source].is_input
    return {"weight": _ALMOST_STRAIGHT} if is_only else {}


def _waypoints(graph: Graph, clusters: Set[int | None]) -> dict[str, tuple[int, NodeId]]:
    """Return a cluster, and a node with which it begins, for edges that lead past nodes into it.

    Such an edge leads through a point beside that node, and from there on inside of the
    cluster: the engine would lead it along outside.
    """
    around = {node.id: [*graph.regions_around(node.region)] for node in graph.nodes}
    ahead = [edge for edge in graph.edges if not edge.is_carried]
    inside = {(edge.target, region) for edge in ahead for region in around[edge.source]}
    found = {}
    for index, (source, target, *_) in enumerate(graph.edges):
        if graph[source].is_input or graph.edges[index].is_carried:
            continue
        entered = [one for one in around[target] if one in clusters and one not in around[source]]
        region = next((one for one in entered if (target, one) in inside), None)
        if region is None or graph.regions[region].kind in DIFF_REGIONS:
            continue
        users = (edge.target for edge in graph.leaving[source] if not edge.is_carried)
        first = (n for n in users if region in around[n] and (n, region) not in inside)
        if beside := next(first, None):
            found[f"e{index}"] = region, beside
    return found


def _names(graph: Graph) -> dict[NodeId, str]:
    return {node.id: f"n{index}" for index, node in enumerate(graph.nodes)}


def _below_frames(graph: Graph) -> list[tuple[NodeId, NodeId]]:
    """Pair each input of a model with the nodes in frames that its paths reach first.

    An invisible edge between the two places the input below the frames instead of beside them,
    which would widen the picture.
    """
    if not graph.has_weights:
        return []
    inputs = [n.id for n in graph.nodes if n.region is None and n.is_input]
    entering = (
        (n, [e for e in graph.entering.get(n.id, ()) if not e.is_carried]) for n in graph.nodes
    )
    first = [
        node.id
        for node, edges in entering
        if node.region is not None and edges and all(edge.source in inputs for edge in edges)
    ]
    return [*product(inputs, first)]


def _below_fused(graph: Graph) -> Iterator[tuple[NodeId, NodeId]]:
    """Pair what is used in the place of one node of another stage with what else begins there.

    That node fills the place, so that all of it must be above the node's operands.
    """
    of_node = {index for index, one in enumerate(graph.regions) if one.kind is RegionKind.FUSED}
    first: dict[int, list[NodeId]] = {}
    for node in graph.nodes:
        if node.region in of_node and node.id not in graph.entering:
            users = graph.leaving.get(node.id, ())
            if all(graph[edge.target].region == node.region for edge in users):
                first.setdefault(node.region, []).append(node.id)
    for edge in graph.edges:
        region = graph[edge.target].region
        if region in first and graph[edge.source].region != region and not edge.is_carried:
            yield from ((edge.source, one) for one in first[region])


def _consecutive_effects(graph: Graph) -> list[tuple[NodeId, NodeId]]:
    """Pair each impure node with the next one in its block.

    An invisible edge between the two shows them in execution order. Without it, calls that only
    have effects would be placed side by side. For frames of a diff, the last node of one is
    connected to the first of the next.
    """
    ends: dict[int, list[NodeId]] = {}
    for node in graph.nodes:
        if node.region is not None and graph.regions[node.region].kind is RegionKind.FUSED:
            ends[node.region] = [*ends.get(node.region, [node.id])[:1], node.id]
    last: dict[int | None, NodeId] = {}
    pairs = []
    for node in graph.nodes:
        if not node.is_pure:
            around = graph.regions_around(node.region)
            block = next((n for n in around if graph.regions[n].kind not in DIFF_REGIONS), None)
            first, end = ends.get(-1 if node.region is None else node.region, [node.id] * 2)
            if block in last and last[block] != end:
                pairs.append((last[block], first))
            last[block] = end
    return pairs


def _add_node(
    source: graphviz.Digraph, name: str, node: Node, size: Size, entering: Entries
) -> None:
    tooltip = graphviz.escape(node_labels.title(node))
    if count := entering.counts[node.id]:
        whole = math.ceil(size.width)
        before, width = entering.widths(node.id, whole)
        ports = [(f' PORT="a{index}"', width) for index in range(count)]
        cells = [("", before), *ports, ("", whole - before - count * width)]
        table = _table(cells, size.height)
        source.node(name, table, shape="plain", fixedsize="false", tooltip=tooltip)
    else:
        source.node(name, tooltip=tooltip, **_inches(size))


def _table(cells: Iterable[tuple[str, float]], height: float) -> str:
    """Return an HTML label: a row of empty cells, of a port and a width."""
    row = "".join(
        f'<TD{port} FIXEDSIZE="TRUE" WIDTH="{math.ceil(wide)}" HEIGHT="{math.ceil(height)}"></TD>'
        for port, wide in cells
        if wide
    )
    return (
        f'<<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="0"><TR>{row}</TR></TABLE>>'
    )


def _inches(size: Size) -> dict[str, str]:
    return {
        "width": f"{size.width / _PX_PER_INCH:.3f}",
        "height": f"{size.height / _PX_PER_INCH:.3f}",
    }
