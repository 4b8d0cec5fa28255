"""What can be opened and closed: every step is in one place, and each place keeps its id."""

import random
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from irviz.limits import MAX_CHILDREN
from irviz.model.folding.group_tree import Container, container_tree
from irviz.model.graph.graph import INPUT_KINDS, Graph, NodeKind, RegionKind

SEEDS = st.integers(0, 2**32)


def some_graph(graphs, seed):
    rng = random.Random(seed)
    make = (graphs.nested, graphs.wide, lambda rng: graphs.soup(rng, rng.randint(1, 200)))
    return rng.choice(make)(rng)


def check(graphs, graph):
    """Check that containers are stretches in stretches, and that each step is in one place."""
    of = container_tree(graph)
    found = list(graphs.below(of.root))
    ids = [one.id for one in found]
    assert len({*ids, *graph.index, of.root.id}) == len(ids) + len(graph.nodes) + 1
    assert (of.root.start, of.root.stop) == (0, len(graphs.bound(graph)))
    for one in (of.root, *found):
        assert one is of.root or 0 < len(one.children) <= MAX_CHILDREN
        at = one.start
        for child in one.children:
            start, stop = (
                (child.start, child.stop) if isinstance(child, Container) else (child, child + 1)
            )
            assert start == at
            at = stop
        assert at == one.start + one.held
        assert one.held * one.copies == one.stop - one.start
        assert (one.copies > 1) == (one.kind is RegionKind.REPEAT)
    assert len(of.root.children) <= MAX_CHILDREN
    return of


def shape(container):
    """Return everything of a container and what is in it."""
    if not isinstance(container, Container):
        return container
    facts = (container.id, container.kind, container.name, container.start, container.stop)
    return *facts, container.copies, container.owner, *map(shape, container.children)


@given(seed=SEEDS)
def test_every_step_is_in_one_place(graphs, seed):
    check(graphs, some_graph(graphs, seed))


@given(seed=SEEDS)
def test_the_same_graph_has_the_same_tree(graphs, seed):
    graph = some_graph(graphs, seed)
    assert shape(container_tree(graph).root) == shape(container_tree(replace(graph)).root)


@given(seed=SEEDS)
def test_every_region_with_a_frame_is_a_container(graphs, seed):
    graph = graphs.soup(random.Random(seed), 45)
    of = check(graphs, graph)
    regions = [
        (one.kind, one.owner) for one in graphs.below(of.root) if one.kind is not RegionKind.REPEAT
    ]
    if len(regions) == len(list(graphs.below(of.root))):
        held = {
            region for node in graphs.bound(graph) for region in graphs.framed(graph, node.region)
        }
        wanted = [(graph.regions[one].kind, graph.regions[one].owner) for one in sorted(held)]
        assert sorted(regions, key=str) == sorted(wanted, key=str)


@given(seed=SEEDS)
def test_more_at_the_end_leaves_the_ids_of_what_is_before(graphs, seed):
    text = graphs.Text()
    here = text.param()
    rng = random.Random(seed)
    for _ in range(rng.randint(4, 8)):
        for word in "abcdefghijklmno"[: rng.randint(3, 15)]:
            here = text.step(word, here, text.param())
        with text.block():
            here = text.step("inner", here)
    first = text.graph()
    before = {one.id for one in graphs.below(container_tree(first).root)}
    for index in range(5):
        here = text.step(f"other{index}", here)
    # repeats are looked for in graphs of more than 60 nodes only
    assume(len(first.nodes) > 60 or len(text.graph().nodes) <= 60)
    assert before <= {one.id for one in graphs.below(container_tree(text.graph()).root)}


@given(seed=SEEDS)
def test_names_have_no_part_in_what_is_found(graphs, seed):
    graph = some_graph(graphs, seed)
    other = {node.id: f"n{len(graph.nodes) - index}" for index, node in enumerate(graph.nodes)}
    renamed = Graph(
        "other",
        tuple(node._replace(id=other[node.id], name="same") for node in graph.nodes),
        tuple(e._replace(source=other[e.source], target=other[e.target]) for e in graph.edges),
        tuple(r._replace(owner=r.owner and other[r.owner]) for r in graph.regions),
        tuple(other[one] for one in graph.outputs),
    )

    def places(found):
        return [(one.start, one.stop, one.kind, one.copies) for one in graphs.below(found.root)]

    assert places(container_tree(renamed)) == places(container_tree(graph))


def test_ids_stay_apart_from_names_that_look_like_them(graphs):
    text = graphs.Text()
    here = text.param("repeat10:v0")
    for copy in range(10):
        for index in range(8):
            here = text.step(f"op{index}", here, name=f"v{copy * 8 + index}")
    of = check(graphs, text.graph())
    assert [one.copies for one in graphs.repeats(of)] == [10]


@pytest.mark.parametrize("length", [0, 1, 120, 121, 2000, 17000])
def test_a_flat_graph_of_different_operations_is_divided(graphs, length):
    text = graphs.Text()
    here = text.param()
    for index in range(length):
        here = text.step(f"op{index}", here)
    of = check(graphs, text.graph())
    assert {one.kind for one in graphs.below(of.root)} <= {RegionKind.PART}
    assert bool(list(graphs.below(of.root))) == (length > MAX_CHILDREN)


def test_many_times_the_same_operation_is_one_repeat(graphs):
    text = graphs.Text()
    here = text.param()
    for _ in range(17000):
        here = text.step("op", here)
    of = check(graphs, text.graph())
    assert [(one.copies, one.held) for one in graphs.below(of.root)] == [(17000, 1)]


def test_a_small_graph_is_left_as_it_is_written(graphs):
    text = graphs.Text()
    here = text.param()
    for _ in range(59):
        here = text.step("op", here)
    assert list(graphs.below(container_tree(text.graph()).root)) == []


def test_branches_in_branches(graphs):
    text = graphs.Text()
    condition, x = text.param(), text.param()

    def deep(level):
        here = text.step(f"op{level}", x)
        if level == 40:
            return here
        return graphs.branches(text, condition, lambda: deep(level + 1), lambda: here)

    deep(0)
    of = check(graphs, text.graph())
    names = [one.name for one in graphs.below(of.root)]
    assert names == ["then"] * 40


def test_blocks_between_impure_calls_are_part_of_a_layer(graphs):
    text = graphs.Text()
    here = text.param()
    for _ in range(8):
        with text.block():
            for word in ("norm", "matmul", "relu", "add"):
                here = text.step(word, here, text.param())
        text.step("print", here, kind=NodeKind.CALL_PACKED)
    of = check(graphs, text.graph())
    (repeat,) = graphs.repeats(of)
    assert (repeat.copies, repeat.held) == (8, 5)
    assert [getattr(child, "kind", child) for child in repeat.children] == [
        RegionKind.DATAFLOW_BLOCK,
        4,
    ]


def test_live_counts_what_goes_over(graphs):
    text = graphs.Text()
    x, w = text.param(), text.param()
    a = text.step("a", x, w)
    b = text.step("b", a)
    c = text.step("c", b, w)
    graph = text.graph(c, a)
    of = container_tree(graph).bound
    assert of.graph.nodes[0].kind in INPUT_KINDS
    assert list(of.live[:4]) == [0, 2, 3, 2]  # nothing; a and w; a, b and w; a and c
