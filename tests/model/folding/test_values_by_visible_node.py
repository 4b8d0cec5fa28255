"""What is known of nodes is told where they are drawn: in a group, a copy, a called function."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from irviz.model.folding.expansion import Expansion
from irviz.model.folding.group_tree import container_tree
from irviz.model.folding.visible_graph import VisibleGraph, visible_graph
from irviz.model.graph.graph import Graph, NodeId, NodeKind, Resolution, inlined_id
from irviz.session.run_overlays import (
    by_visible_node,
    reduce_values,
    sum_values,
    visible_node,
)

CALL, COPIES = NodeId("call"), 6


@dataclass(frozen=True)
class Picture:
    """A function as it is drawn, with those whose calls are open."""

    visible: VisibleGraph
    inner: Mapping[NodeId, "Picture"] = field(default_factory=dict)


def drawn(graph: Graph, choices=None, inner=None):
    return Picture(visible_graph(container_tree(graph), choices), inner or {})


def blocks(graphs):
    """Return a function with two blocks of two steps each."""
    text = graphs.Text()
    x = text.param("x")
    with text.block():
        text.step("b", text.step("a", x, name="a"), name="b")
    with text.block():
        text.step("d", text.step("c", "b", name="c"), name="d")
    return text.graph()


def caller(graphs):
    """Return a function that calls `blocks`, and one that calls that one."""
    text = graphs.Text()
    made = text.step("blocks", text.param("y"), name="call", kind=NodeKind.CALL_FUNCTION)
    text.step("last", made, name="last")
    graph = text.graph()
    nodes = tuple(
        n._replace(callee="blocks", resolution=Resolution.FUNCTION) if n.id == CALL else n
        for n in graph.nodes
    )
    return Graph(graph.function, nodes, graph.edges, graph.regions, graph.outputs)


def layers(graphs):
    """Return six equal layers, each with a weight of its own."""
    text, layer = graphs.Text(), graphs.Layer(random.Random(3), 12, own=1)
    shared, carried = [text.param(), text.param()], [text.param()]
    for copy in range(COPIES):
        own = [text.param(f"weight{copy}")]
        made = layer.add(text, carried, shared, own, lambda step, copy=copy: f"s{step}c{copy}")
        carried = layer.next(made)
    return text.graph(*carried)


def closed(graphs, picture_of, graph, kind):
    """Return a picture of a graph with all containers of this kind closed."""
    ids = [one.id for one in graphs.below(container_tree(graph).root) if one.kind.value == kind]
    assert ids
    return picture_of(graph, Expansion(closed=frozenset(ids))), ids


def ones(graph):
    return {node.id: 1.0 for node in graph.nodes}


# --- where it is drawn -------------------------------------------------------------------------


def test_a_node_that_is_drawn_has_its_own(graphs):
    graph = blocks(graphs)
    values = {node.id: float(index) for index, node in enumerate(graph.nodes)}
    assert sum_values(drawn(graph), values) == values


def test_what_has_no_value_has_no_entry(graphs):
    assert sum_values(drawn(blocks(graphs)), {NodeId("b"): 2.0}) == {"b": 2.0}


def test_what_is_no_node_of_the_function_is_left_out(graphs):
    picture = drawn(blocks(graphs))
    asked = [NodeId("b"), NodeId("elsewhere"), inlined_id("elsewhere", "a")]
    assert list(by_visible_node(picture, asked)) == ["b"]
    assert visible_node(picture, NodeId("elsewhere")) is None


def test_a_group_has_what_it_holds(graphs):
    graph = blocks(graphs)
    picture, (first, second) = closed(graphs, drawn, graph, "dataflow")
    values = {NodeId(name): value for name, value in zip("xabcd", (9, 1, 2, 4, 3), strict=True)}
    assert sum_values(picture, values) == {"x": 9, first: 3, second: 7}
    assert reduce_values(picture, values, max) == {"x": 9, first: 2, second: 4}
    assert by_visible_node(picture, values)[NodeId(first)] == ["a", "b"]


# --- copies ------------------------------------------------------------------------------------


def test_a_closed_repeat_has_what_all_of_its_copies_hold(graphs):
    graph = layers(graphs)
    picture, (repeat,) = closed(graphs, drawn, graph, "repeat")
    node = picture.visible.graph[repeat]
    assert node.size >= COPIES * 12
    assert sum_values(picture, ones(graph))[node.id] == node.size


@pytest.mark.parametrize("copy", [0, 1, 4, COPIES - 1])
def test_an_open_repeat_has_what_the_copy_has_that_is_drawn(graphs, copy):
    graph = layers(graphs)
    (repeat,) = (one.id for one in graphs.below(container_tree(graph).root) if one.copies > 1)
    picture = drawn(graph, Expansion(opened=(repeat,), copies={repeat: copy}))
    values = {node.id: float(node.id[-1]) for node in graph.nodes if node.id[0] in "sw"}
    found = sum_values(picture, values)
    ids = {node.id for node in picture.visible.graph.nodes}
    assert set(found) == {one for one in ids if one[0] in "sw"}
    assert set(found.values()) == {float(copy)}


def test_a_node_of_another_copy_is_not_in_the_picture(graphs):
    graph = layers(graphs)
    (repeat,) = (one.id for one in graphs.below(container_tree(graph).root) if one.copies > 1)
    picture = drawn(graph, Expansion(opened=(repeat,), copies={repeat: 2}))
    assert visible_node(picture, NodeId("s3c1")) is None
    assert visible_node(picture, NodeId("s3c2")) == "s3c2"
    assert picture.visible.where(NodeId("s3c1")) == "s3c2", "though it is where that one is"


# --- called functions --------------------------------------------------------------------------


def test_a_closed_call_has_what_is_done_in_it(graphs):
    values = {
        CALL: 1.0,
        inlined_id(CALL, "a"): 2.0,
        inlined_id(CALL, "b"): 4.0,
        NodeId("last"): 8.0,
    }
    assert sum_values(drawn(caller(graphs)), values) == {CALL: 7.0, "last": 8.0}


def test_a_closed_calls_value_is_what_it_returns(graphs):
    values = {inlined_id(CALL, "a"): 9.0, CALL: 1.0}
    picture = drawn(caller(graphs))
    assert reduce_values(picture, values, max) == {CALL: 1.0}
    assert reduce_values(
        picture, {inlined_id(CALL, "a"): 9.0, inlined_id(CALL, "b"): 3.0}, max
    ) == {CALL: 9.0}


def test_an_open_call_shows_each_node_where_it_is(graphs):
    picture = drawn(caller(graphs), inner={CALL: drawn(blocks(graphs))})
    values = {CALL: 1.0, inlined_id(CALL, "a"): 2.0, inlined_id(CALL, "b"): 4.0}
    assert sum_values(picture, values) == values
    assert reduce_values(picture, values, max) == values


def test_a_group_in_an_open_call_has_what_it_holds(graphs):
    inner, (first, _) = closed(graphs, drawn, blocks(graphs), "dataflow")
    picture = drawn(caller(graphs), inner={CALL: inner})
    values = {inlined_id(CALL, "a"): 2.0, inlined_id(CALL, "b"): 4.0}
    assert sum_values(picture, values) == {inlined_id(CALL, first): 6.0}


def test_calls_in_calls_are_told_at_the_innermost_that_is_drawn(graphs):
    deep = inlined_id(CALL, inlined_id(CALL, "a"))
    twice = drawn(caller(graphs), inner={CALL: drawn(caller(graphs))})
    assert visible_node(twice, deep) == inlined_id(CALL, CALL)
    assert visible_node(drawn(caller(graphs)), deep) == CALL
    values = {deep: 5.0, inlined_id(CALL, CALL): 1.0, CALL: 3.0}
    assert reduce_values(drawn(caller(graphs)), values, max) == {CALL: 3.0}
    assert reduce_values(twice, values, sum) == {inlined_id(CALL, CALL): 1.0, CALL: 3.0}
    assert sum_values(drawn(caller(graphs)), values) == {CALL: 9.0}


@pytest.mark.parametrize("seed", range(12))
def test_whatever_is_open_nothing_is_told_twice(graphs, seed):
    rng = random.Random(seed)
    graph = graphs.nested(rng)
    of = container_tree(graph)
    ids = [one.id for one in graphs.below(of.root)]
    choices = Expansion(closed=frozenset(rng.sample(ids, len(ids) // 2)))
    picture = Picture(visible_graph(of, choices))
    found = by_visible_node(picture, [node.id for node in graph.nodes])
    told = [one for nodes in found.values() for one in nodes]
    assert len(told) == len(set(told))
    assert set(found) == {node.id for node in picture.visible.graph.nodes}
