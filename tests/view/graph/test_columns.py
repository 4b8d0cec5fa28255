"""A tall picture of a model is drawn in columns, so that all of it can be read on a screen."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest

from irviz.model.graph.graph import Edge, Graph, Node, NodeId, NodeKind, Region, RegionKind
from irviz.model.graph.layers import LayerPart
from irviz.view.geometry import Rect
from irviz.view.graph.columns import SCREENS, scale_on_screens
from irviz.view.graph.edges import points_along
from irviz.view.graph.graph_figure import place_graph
from irviz.view.graph.scene_geometry import SceneGeometry


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
def test_a_tall_model_is_on_one_screen_and_no_edge_crosses_a_node(direction, skips):
    graph = chain(22, skips=skips)
    placed = place_graph(graph, direction)
    assert scale_on_screens(placed.layout) == 1
    scene = SceneGeometry(graph, placed.layout, direction)
    assert set(scene.frames) == {0}
    (frame,) = scene.frames.values()
    assert all(frame.rect.contains(scene.shapes[node.id]) for node in graph.nodes[1:])
    for edge, route in scene.edges:
        others = [rect for node, rect in scene.shapes.items() if node not in edge[:2]]
        for x, y in points_along(route, 4.0):
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


def test_what_has_no_layers_or_fits_is_one_column():
    for graph in (chain(22, has_layers=False), chain(8)):
        placed = place_graph(graph)
        across = {round(x) for x, _ in placed.layout.nodes.values()}
        assert len(across) == 1
    assert place_graph(chain(22, has_layers=False)).layout.height > SCREENS[0].height
