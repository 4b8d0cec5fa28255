"""The oracle notices every way in which a graph could be wrong."""

import dataclasses

import pytest

from irviz.ir.function_graph import extract
from irviz.ir.relax_calls import NAMED_CALLS, SPREAD
from irviz.model.graph.graph import Edge, NodeKind, RegionKind


def replaced(values, index, **changes):
    return (*values[:index], values[index]._replace(**changes), *values[index + 1 :])


def node_at(graph, node_id, **changes):
    return {"nodes": replaced(graph.nodes, graph.index[node_id], **changes)}


WRONG = {
    "an edge is missing": lambda g: {"edges": g.edges[1:]},
    "an edge is there twice": lambda g: {"edges": (*g.edges, g.edges[0])},
    "an edge comes from nowhere": lambda g: {"edges": (*g.edges, Edge("c", "after", (7,)))},
    "an edge has another position": lambda g: {"edges": replaced(g.edges, 0, position=(7,))},
    "an edge has a longer position": lambda g: {"edges": replaced(g.edges, 0, position=(0, 0))},
    "an edge comes from another node": lambda g: {"edges": replaced(g.edges, 0, source="c")},
    "an edge goes to another node": lambda g: {"edges": replaced(g.edges, 0, target="after")},
    "a node is missing": lambda g: {"nodes": g.nodes[:-1]},
    "a node is there twice": lambda g: {"nodes": (*g.nodes, g.nodes[-1])},
    "nodes are in another order": lambda g: {"nodes": (*g.nodes[:-2], g.nodes[-1], g.nodes[-2])},
    "a node has another kind": lambda g: node_at(g, "after", kind=NodeKind.VALUE),
    "a node has another name": lambda g: node_at(g, "after", name="before"),
    "a node stands outside": lambda g: node_at(g, "a", region=None),
    "a node stands in the other branch": lambda g: node_at(g, "a", region=g["b"].region),
    "a node has an effect": lambda g: node_at(g, "chosen", is_pure=False),
    "a literal is missing": lambda g: node_at(g, "scaled", literals=()),
    "an output is missing": lambda g: {"outputs": g.outputs[:-1]},
    "outputs are in another order": lambda g: {"outputs": g.outputs[::-1]},
    "a constant is missing": lambda g: {
        "nodes": tuple(n for n in g.nodes if n.kind is not NodeKind.CONSTANT)
    },
    "a branch belongs to another node": lambda g: {
        "regions": tuple(r._replace(owner=r.owner and "after") for r in g.regions)
    },
    "the branches are exchanged": lambda g: {
        "regions": tuple(
            r._replace(name={"then": "else", "else": "then"}.get(r.name, r.name)) for r in g.regions
        )
    },
    "a block is no dataflow block": lambda g: {
        "regions": tuple(r._replace(kind=RegionKind.DATAFLOW_BLOCK) for r in g.regions)
    },
}


def test_the_other_reading_agrees_to_begin_with(oracle, constructs):
    mod = constructs.construct("something of all")
    oracle.check(mod, "main", extract(mod))


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_noticed(oracle, constructs, wrong):
    mod = constructs.construct("something of all")
    graph = extract(mod)
    changed = dataclasses.replace(graph, **WRONG[wrong](graph))
    with pytest.raises((AssertionError, ValueError, KeyError)):
        oracle.check(mod, "main", changed)


def test_every_operator_that_calls_its_first_argument_is_in_the_table(oracle):
    """An operator that a new TVM registers, or that the table lacks, makes this fail."""
    assert oracle.named_calls() == NAMED_CALLS
    assert set(NAMED_CALLS) - set(SPREAD) == set(filter(oracle.is_tupled, NAMED_CALLS))
    assert len(NAMED_CALLS) >= 12
