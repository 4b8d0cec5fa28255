"""Data flows one way in each picture, however long it is."""

import math
from dataclasses import replace
from itertools import combinations, pairwise, product

import pytest

from irviz.course.mlp import MyModuleStatic
from irviz.ir.function_graph import extract
from irviz.model.graph.graph import (
    Edge,
    Graph,
    LayerPart,
    Node,
    NodeId,
    NodeKind,
    Region,
    RegionKind,
)
from irviz.view.graph.graph_figure import place_graph
from irviz.view.graph.nodes_and_edges import SceneGeometry, points_along
from irviz.view.svg_primitives import Rect


def chain(length, *, has_layers=True, skips=()):
    """Return a graph of nodes that each use the one before; `skips` are further edges."""
    layers = ((LayerPart("model", "Model"),),) if has_layers else ()
    ids = [NodeId(f"lv{index}") for index in range(length)]
    kinds = [NodeKind.PARAM, *[NodeKind.OPERATOR] * (length - 1)]
    nodes = [
        Node(one, kind, one, "Tensor[(1, 4)]", "relax.nn.relu", region=index and 0, layers=layers)
        for index, (one, kind) in enumerate(zip(ids, kinds, strict=True))
    ]
    nodes[0] = nodes[0]._replace(callee="", region=None)
    pairs = [*pairwise(ids), *((ids[a], ids[b]) for a, b in skips)]
    edges = [Edge(source, target, (index,)) for index, (source, target) in enumerate(pairs)]
    regions = (Region(RegionKind.DATAFLOW_BLOCK),)
    return Graph("main", tuple(nodes), tuple(edges), regions, (ids[-1],))


@pytest.mark.parametrize("direction", ["up", "down"])
@pytest.mark.parametrize("skips", [(), ((3, 5), (12, 16)), [(n, n + 2) for n in range(1, 20, 2)]])
def test_no_edge_of_a_tall_model_turns_back_or_crosses_a_node(direction, skips):
    graph = chain(22, skips=skips)
    placed = place_graph(graph, direction)
    scene = SceneGeometry(graph, placed.layout, direction)
    assert set(scene.frames) == {0}
    (frame,) = scene.frames.values()
    assert all(frame.rect.contains(scene.shapes[node.id]) for node in graph.nodes[1:])
    for edge, route in scene.edges:
        others = [rect for node, rect in scene.shapes.items() if node not in edge[:2]]
        points = [*points_along([route], 4.0)]
        assert (points[-1][1] - points[0][1]) * scene.outward > 0, edge
        for x, y in points:
            assert not any(rect.overlaps(Rect(x, y, x + 1, y + 1)) for rect in others), edge
        if edge.target in scene.shapes:
            rect = scene.shapes[edge.target]
            inlet = rect.bottom if scene.outward < 0 else rect.top
            assert math.isclose(route.tip[1], inlet, abs_tol=3)


@pytest.mark.parametrize(("direction", "below"), [("up", 1), ("down", -1)])
def test_an_input_that_is_used_late_is_where_the_first_one_is_and_not_beside_the_frame(
    direction, below
):
    graph = chain(9)
    late = graph.nodes[0]._replace(id=NodeId("late"), name="late")
    edges = (*graph.edges, Edge(late.id, graph.nodes[-1].id, (1,)))
    scene = SceneGeometry(
        *place_graph(replace(graph, nodes=(late, *graph.nodes), edges=edges), direction)[::3],
        direction,
    )
    first, frame = scene.shapes[graph.nodes[0].id], scene.frames[0].rect
    assert scene.shapes[late.id].centre[1] == first.centre[1]
    assert below * (first.centre[1] - frame.centre[1]) > frame.height / 2


@pytest.mark.parametrize("has_layers", [True, False])
def test_a_chain_is_one_column_however_long_it_is(has_layers):
    placed = place_graph(chain(60, has_layers=has_layers))
    assert len({round(x) for x, _ in placed.layout.nodes.values()}) == 1


@pytest.mark.parametrize("direction", ["up", "down"])
def test_each_edge_leads_on_also_where_many_pull_a_step_beside_a_frame(direction):
    """Steps that all layers use, as the places of tokens, come before the layer that is open."""
    skips = [(1, 4), (2, 5), (3, 5), (1, 6), (6, 9)]
    skips += [(one, layer) for layer in (10, 11, 12) for one in (2, 3)]
    graph = chain(14, skips=skips)
    nodes = [one._replace(region=0 if 4 <= at <= 9 else None) for at, one in enumerate(graph.nodes)]
    edges = [one for one in graph.edges if (one.source, one.target) != ("lv3", "lv4")]
    graph = replace(
        graph,
        nodes=tuple(one._replace(is_pure=at < 1) for at, one in enumerate(nodes)),
        edges=tuple(one for one in edges if (one.source, one.target) != ("lv1", "lv2")),
        regions=(Region(RegionKind.LAYER, "layers.0"),),
    )
    scene = SceneGeometry(*place_graph(graph, direction)[::3], direction)
    inside = [edge for edge, _ in scene.edges if {*edge[:2]} <= {*scene.shapes}]
    assert len(inside) > len(skips)
    for edge in inside:
        source, target = scene.shapes[edge.source], scene.shapes[edge.target]
        assert (target.centre[1] - source.centre[1]) * scene.outward > 0, edge


@pytest.mark.parametrize("direction", ["up", "down"])
def test_the_parameters_of_the_first_picture_do_not_cross(direction):
    graph = extract(MyModuleStatic)
    routes = place_graph(graph, direction).layout.routes
    lines = {
        edge.source: points_along([routes[f"e{index}"]], 4)
        for index, edge in enumerate(graph.edges)
        if edge.target == "out"
    }
    assert lines.keys() == {"lv1", "w1", "b1"}
    for one, two in combinations(lines.values(), 2):
        assert not [
            ends
            for ends in product(pairwise(one), pairwise(two))
            if side(*ends[0], ends[1][0]) * side(*ends[0], ends[1][1]) < 0
            and side(*ends[1], ends[0][0]) * side(*ends[1], ends[0][1]) < 0
        ]


def side(start, end, point):
    """Return on which side of a line a point is, by the sign."""
    across = (end[0] - start[0]) * (point[1] - start[1])
    return across - (end[1] - start[1]) * (point[0] - start[0])
