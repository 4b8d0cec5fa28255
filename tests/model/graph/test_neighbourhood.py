"""A part of a graph: what networkx says is near a node or between two, and no other edge."""

import random
from collections import Counter

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from irviz.model.folding.group_tree import container_tree
from irviz.model.folding.visible_graph import visible_graph
from irviz.model.graph.graph import AFTER, BEFORE, NodeKind, neighbourhood, nodes_between, subgraph

SEEDS = st.integers(0, 2**32)


def drawn(graphs, seed):
    rng = random.Random(seed)
    graph = graphs.soup(rng, rng.randint(2, 120))
    return rng, graph, [node.id for node in graph.nodes]


@given(seed=SEEDS, steps=st.integers(0, 5))
def test_what_is_near_is_at_most_so_many_uses_away(graphs, seed, steps):
    rng, graph, ids = drawn(graphs, seed)
    node_id = rng.choice(ids)
    near = nx.ego_graph(graph.to_networkx().to_undirected(), node_id, radius=steps)
    assert neighbourhood(graph, node_id, steps) == set(near)


@given(seed=SEEDS)
def test_what_is_between_is_on_a_path(graphs, seed):
    rng, graph, ids = drawn(graphs, seed)
    start, end = rng.choice(ids), rng.choice(ids)
    whole = graph.to_networkx()
    if not nx.has_path(whole, start, end):
        start, end = end, start
    after = nx.descendants(whole, start) | {start}
    before = nx.ancestors(whole, end) | {end}
    wanted = after & before if nx.has_path(whole, start, end) else set()
    assert nodes_between(graph, start, end) == nodes_between(graph, end, start) == wanted


@given(seed=SEEDS)
def test_a_part_has_the_edges_among_its_nodes_and_counts_the_others(graphs, seed):
    rng, graph, ids = drawn(graphs, seed)
    kept = frozenset(rng.sample(ids, rng.randint(1, len(ids))))
    found = subgraph(graph, kept)
    inner = [edge for edge in graph.edges if {edge.source, edge.target} <= kept]
    into = [edge for edge in graph.edges if edge.source not in kept and edge.target in kept]
    out = [edge for edge in graph.edges if edge.source in kept and edge.target not in kept]
    assert [edge for edge in found.edges if {edge.source, edge.target} <= kept] == inner
    assert {e.target: e.uses for e in found.edges if e.source == BEFORE} == Counter(
        edge.target for edge in into
    )
    assert {e.source: e.uses for e in found.edges if e.target == AFTER} == Counter(
        edge.source for edge in out
    )
    sizes = {node.id: node.size for node in found.nodes if node.id not in kept}
    wanted = {BEFORE: len({e.source for e in into}), AFTER: len({e.target for e in out})}
    assert sizes == {one: size for one, size in wanted.items() if size}
    assert [node for node in found.nodes if node.id in kept] == [graph[i] for i in ids if i in kept]
    assert found.outputs == tuple(one for one in graph.outputs if one in kept)


@given(seed=SEEDS)
def test_every_part_can_be_drawn(graphs, seed):
    rng, graph, ids = drawn(graphs, seed)
    kept = neighbourhood(graph, rng.choice(ids), rng.randint(0, 3))
    picture = visible_graph(container_tree(subgraph(graph, kept)))
    assert {picture.where(one) for one in kept} <= {node.id for node in picture.graph.nodes}


def test_a_parameter_of_an_inner_function_that_nothing_uses_can_be_looked_at(graphs):
    text = graphs.Text()
    outer = text.param("outer")
    graphs.function(text, lambda a, _: text.step("add", a, outer), "f", 2)
    graph = text.graph()
    (unused,) = [
        node.id
        for node in graph.nodes
        if node.kind is NodeKind.PARAM and node.id not in graph.leaving
    ]
    picture = visible_graph(container_tree(subgraph(graph, neighbourhood(graph, unused, 1)))).graph
    assert [node.id for node in picture.nodes] == [unused]


def test_a_function_that_calls_itself_has_all_of_it_between(graphs):
    text = graphs.Text()
    x = text.param("x")
    first = text.step("first", x, ((1,), "last"), name="loop")
    last = text.step("second", first, name="last")
    graph = text.graph(last)
    assert nodes_between(graph, "loop", "last") == {"loop", "last"}
    assert nodes_between(graph, "x", "last") == {"x", "loop", "last"}
    assert nodes_between(graph, "x", "x") == {"x"}
