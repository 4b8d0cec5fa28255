"""A tall picture of a model is drawn in columns, so that all of it can be read on a screen."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest

from irviz.model.graph.graph import Edge, Graph, Node, NodeId, NodeKind, Region, RegionKind
from irviz.model.graph.layers import LayerPart
from irviz.view.geometry import Rect
from irviz.view.graph.columns import SCREENS, scale_on_screens
from irviz.view.graph.graph_figure import place_graph
from irviz.view.graph.nodes_and_edges import points_along
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


def test_the_edge_that_turns_to_a_column_ends_in_it():
    """A mask that no step before it leads to stands beside these, not in the column after them."""
    graph = chain(19, skips=[(1, 12), (1, 14)])
    around = [None, None, *[0] * 10, *[None] * 7]
    nodes = [one._replace(region=at) for one, at in zip(graph.nodes, around, strict=True)]
    placed = place_graph(
        replace(
            graph,
            nodes=tuple(nodes),
            edges=tuple(one for one in graph.edges if one[:2] != ("lv1", "lv2")),
            regions=(Region(RegionKind.LAYER, "mask"),),
        )
    )
    scene = SceneGeometry(placed.graph, placed.layout, "up")
    (route,) = (route for edge, route in scene.edges if edge[:2] == ("lv1", "lv12"))
    ys = [y for _, y in points_along(route, 4.0)]
    assert max(ys) <= scene.shapes["lv1"].bottom, "it leads back past its own beginning"


def test_a_column_is_as_wide_as_its_steps_whatever_the_title_of_the_frame():
    graph = chain(22)
    widths = []
    for title in (
        "short",
        "the name of a layer that is a lot wider than any of its steps, all alike",
    ):
        region = graph.regions[0]._replace(kind=RegionKind.REPEAT, name=title)
        placed = place_graph(replace(graph, regions=(region,)))
        widths.append(placed.layout.width)
        assert len({x for x, _ in placed.layout.nodes.values()}) > 1
    assert widths[0] == widths[1]


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
