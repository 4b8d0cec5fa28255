"""A graph is plain data: looked up by id, and handed on to networkx."""

import dataclasses
import pickle

import networkx as nx
import pytest

from irviz.course.mlp import MyModuleStatic
from irviz.ir.function_graph import extract
from irviz.model.graph.graph import OUTPUT, Edge, Graph, Node, NodeId, NodeKind, Resolution


def node(name, kind=NodeKind.OPERATOR, **facts):
    return Node(NodeId(name), kind, name, "Tensor[(2,)]", **facts)


def small():
    x, y = NodeId("x"), NodeId("y")
    nodes = (node("x", NodeKind.PARAM), node("y", callee="relax.add", region=0))
    edges = (Edge(x, y, (0,)), Edge(x, y, (1, 0)))
    return Graph("main", nodes, edges, (), (y, x))


def test_a_node_is_found_by_its_id():
    assert small()["y"].callee == "relax.add"


def test_an_unknown_id_is_named_with_those_there_are():
    with pytest.raises(KeyError, match="'z' is not a node of 'main'; its nodes are 'x', 'y'"):
        _ = small()["z"]


def test_to_networkx_has_one_edge_for_each_use():
    graph = small().to_networkx()
    assert isinstance(graph, nx.MultiDiGraph)
    assert sorted(graph.edges(keys=True)) == [("x", "y", (0,)), ("x", "y", (1, 0))]
    assert graph.edges["x", "y", (1, 0)]["position"] == (1, 0)
    assert graph.in_degree("y") == 2


def test_to_networkx_carries_what_the_nodes_are():
    graph = small().to_networkx()
    assert list(graph) == ["x", "y"]
    assert graph.nodes["y"] == {
        "kind": "operator",
        "name": "y",
        "type_label": "Tensor[(2,)]",
        "callee": "relax.add",
        "operator": "",
        "resolution": "",
        "is_pure": True,
        "region": 0,
    }
    assert graph.graph == {"function": "main", "outputs": ("y", "x")}


def test_networkx_can_work_with_a_module_of_the_course():
    graph = extract(MyModuleStatic).to_networkx()
    order = list(nx.topological_sort(graph))
    assert order.index("lv0") < order.index("lv1") < order.index("out")
    assert nx.ancestors(graph, "lv1") == {"x", "w0", "b0", "lv0"}
    assert graph.nodes["lv0"]["resolution"] == "prim_func"


def test_a_graph_is_frozen_and_travels():
    graph = small()
    with pytest.raises(dataclasses.FrozenInstanceError):
        graph.function = "other"
    assert pickle.loads(pickle.dumps(graph)) == graph
    read = extract(MyModuleStatic)
    assert pickle.loads(pickle.dumps(read)) == read


def test_names_of_kinds_and_resolutions_can_be_classes_in_a_page():
    words = [kind.value for kind in (*NodeKind, *Resolution)]
    assert len({*words, "output", "node"}) == len(words) + 2
    assert all(word.replace("_", "").isalpha() and word.islower() for word in words)


def test_the_outputs_have_an_id_of_their_own():
    assert OUTPUT == "return"
