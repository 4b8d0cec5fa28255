"""The layout engine is told sizes, edges in argument order, and nothing of fonts."""

import re

import pygraphviz
import pytest

from irviz.course.mlp import MODULES
from irviz.ir.function_graph import extract
from irviz.model.graph.graph import Edge, Graph, Node, NodeId, NodeKind, Region, RegionKind
from irviz.view.graph.dot import layout_input, to_dot
from irviz.view.graph.graph_figure import place_graph
from irviz.view.graph.layout import lay_out


def dot_of(graph, direction="up"):
    return to_dot(graph, layout_input(graph, direction))


def param(name):
    return Node(NodeId(name), NodeKind.PARAM, name, "T")


def test_edges_enter_at_the_port_of_their_argument(modules):
    text = dot_of(extract(modules.SameTwice))
    assert re.findall(r"n0 -> n1:a(\d):s \[id=(e\d)\]", text) == [("0", "e0"), ("1", "e1")]
    assert text.count("<TD PORT=") == 2


def test_edges_have_ids_in_order_outputs_last():
    mod = MODULES["MyModuleStatic"]
    graph = extract(mod)
    text = dot_of(graph)
    assert re.findall(r"id=e(\d+)", text) == [str(i) for i in range(len(graph.edges) + 1)]
    assert f"-> return [id=e{len(graph.edges)}]" in text


def test_directions_turn_the_ranks_and_the_ports(modules):
    graph = extract(modules.SameTwice)
    up, down = dot_of(graph, "up"), dot_of(graph, "down")
    assert "rankdir=BT" in up
    assert "tailport=n" in up
    assert "rankdir=TB" in down
    assert "tailport=s" in down
    assert "n1:a0:n" in down


def test_an_unknown_direction_is_named_with_those_there_are(modules):
    with pytest.raises(ValueError, match="no direction 'left'; choose one of up, down"):
        dot_of(extract(modules.SameTwice), "left")


@pytest.mark.parametrize("name", MODULES)
def test_the_engine_measures_no_text(name):
    """Places do not depend on fonts: every node has a fixed size and no text of its own."""
    text = dot_of(extract(MODULES[name]))
    assert "fixedsize=true" in text
    assert "fontname" not in text
    assert not re.search(r">[^<>\s\[\]{};]+<", text)  # between the tags of a table


def test_a_name_is_told_only_as_a_tooltip():
    graph = Graph("main", (param('a"b\\'),), (), (), ())
    found = pygraphviz.AGraph(string=dot_of(graph))
    assert found.nodes() == ["n0"]
    assert len(found.get_node("n0").attr["tooltip"]) >= 4


def test_only_dataflow_blocks_are_clusters(modules):
    text = dot_of(extract(modules.Impure))
    assert re.findall(r"subgraph (\w+)", text) == ["cluster_0", "cluster_2"]


def test_frames_stand_in_frames_as_regions_do(modules):
    text = dot_of(extract(modules.EveryKind))
    inner = re.search(r"subgraph cluster_2 (.*?)subgraph cluster_4 ", text, re.S)
    assert re.findall(r"subgraph (\w+)", text) == ["cluster_0", "cluster_2", "cluster_4"]
    assert inner is not None


def test_what_goes_from_copy_to_copy_has_no_say_in_the_ranks():
    a, b = param("a"), Node(NodeId("b"), NodeKind.OPERATOR, "b", "T")
    edges = (Edge(a.id, b.id, (0,)), Edge(b.id, b.id, (0,), is_carried=True))
    graph = Graph("main", (a, b), edges, (), ())
    assert re.findall(r"id=(e\d)", dot_of(graph)) == ["e0"]
    assert place_graph(graph).layout.routes.keys() == {"e0", "e1"}


def test_the_values_of_an_argument_in_several_copies_enter_a_node_at_one_place():
    a, b = param("a"), param("b")
    add = Node(NodeId("lv"), NodeKind.OPERATOR, "lv", "T", "relax.add")
    edges = (
        Edge(a.id, add.id, (0,)),
        Edge(add.id, add.id, (0,), is_carried=True),
        Edge(b.id, add.id, (1,)),
    )
    routes = place_graph(Graph("main", (a, b, add), edges, (), ())).layout.routes
    first, carried, second = (routes[f"e{index}"].tip[0] for index in range(3))
    assert carried == pytest.approx(first, abs=1)
    assert second == pytest.approx(first + 28, abs=1)


def test_effects_are_placed_in_their_order(modules):
    graph = extract(modules.Impure)
    text = dot_of(graph)
    order = re.findall(r"(n\d) -> (n\d) \[id=o\d style=invis\]", text)
    names = {f"n{index}": node.name for index, node in enumerate(graph.nodes)}
    assert [(names[first], names[second]) for first, second in order] == [("said", "got")]
    placed = lay_out(text)
    assert placed.nodes["n2"][1] > placed.nodes["n3"][1]


def test_blocks_without_nodes_do_no_harm():
    blocks = (Region(RegionKind.DATAFLOW_BLOCK), Region(RegionKind.BINDING_BLOCK))
    graph = Graph("main", (param("x"),), (), blocks, ())
    placed = lay_out(dot_of(graph))
    assert list(placed.nodes) == ["n0"]
    assert placed.frames == {}


def test_an_empty_graph_is_an_empty_place():
    placed = lay_out(dot_of(Graph("main", (), (), (), ())))
    assert (placed.nodes, placed.frames, placed.routes) == ({}, {}, {})


def test_places_count_downwards_from_the_top_left():
    x, y = NodeId("x"), NodeId("y")
    nodes = (param("x"), Node(y, NodeKind.OPERATOR, "y", "T", "relax.nn.relu"))
    graph = Graph("main", nodes, (Edge(x, y, (0,)),), (), ())
    placed = lay_out(dot_of(graph, "down"))
    assert 0 < placed.nodes["n0"][1] < placed.nodes["n1"][1] < placed.height
    route = placed.routes["e0"]
    assert route.points[0][1] < route.points[-1][1] <= route.tip[1]
    assert len(route.points) % 3 == 1
