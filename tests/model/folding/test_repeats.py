"""Copies of a layer are found as copies, and what differs from them is not taken for one."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irviz.model.folding.group_tree import container_tree
from irviz.model.graph.graph import NodeKind

SEEDS = st.integers(0, 2**32)


def planted(graphs, rng, *, words=6, copies=None, **more):
    """Return a layer, how many copies of it there are, their graph and the first one's start."""
    carried = rng.randint(1, 2)
    length = rng.randint(6, 24)
    layer = graphs.Layer(rng, length, carried, rng.randint(0, 2), rng.randint(0, 3), words)
    copies = copies or rng.randint(3, 10)
    graph, start = graphs.stack(rng, layer, copies, **more)
    return layer, copies, graph, start


@given(seed=SEEDS)
def test_copies_of_a_repeat_do_the_same_with_the_same(graphs, seed):
    rng = random.Random(seed)
    make = rng.choice((graphs.nested, lambda rng: graphs.soup(rng, rng.randint(61, 200))))
    graph = make(rng)
    for one in graphs.repeats(container_tree(graph)):
        assert one.held * one.copies == one.stop - one.start
        assert graphs.difference(graph, one.start, one.stop, one.copies) == ""


@given(seed=SEEDS)
def test_a_stack_of_layers_is_one_repeat(graphs, seed):
    rng = random.Random(seed)
    name = rng.choice((None, lambda copy, index: f"layer{copy}.{index}"))
    layer, copies, graph, start = planted(
        graphs,
        rng,
        name=name,
        preamble=rng.randint(0, 6),
        epilogue=rng.randint(0, 6),
        is_kept=rng.random() < 0.3,
    )
    length = len(layer.operations)
    if len(graph.nodes) <= 60 or graphs.difference(graph, start, start + copies * length, copies):
        return  # shown as it is written; or a layer uses what is carried in a way of its own
    of = container_tree(graph)
    found = [one for one in of.root.children if not isinstance(one, int) and one.copies > 1]
    whole = [one for one in found if one.copies >= copies and one.held == length]
    assert len(whole) == 1, found
    if whole[0].start != start:  # where as few values go over, counting its own parameters
        live = of.bound.live
        assert live[whole[0].start + length] <= live[start + length] or whole[0].copies > copies


def test_a_stack_in_a_stack_is_a_repeat_in_a_repeat(graphs):
    text = graphs.Text()
    here = text.param()
    for _ in range(6):
        here = text.step("begin", here, text.param())
        for _ in range(6):
            left = text.step("left", here, text.param())
            here = text.step("add", left, text.step("right", here, text.constant()))
        here = text.step("end", here, text.step("more", here))
    (outer,) = graphs.repeats(container_tree(text.graph()))[:1]
    assert (outer.copies, outer.held) == (6, 21)
    (inner,) = [one for one in outer.children if not isinstance(one, int)]
    assert (inner.copies, inner.held) == (6, 3)


class Odd:
    """A stack of ten layers of six operations; one may be told to be different."""

    copies = 10

    def __init__(self, graphs, odd=None, at=4):
        text, self.odd, self.at = graphs.Text(), odd, at
        shared, other = text.param("shared"), text.param("other")
        here = before = text.param("x")
        last = text.param("w", "W")
        for copy in range(self.copies):
            own = last if self.is_("shared own", copy) else text.param(f"w{copy}", "W")
            if self.is_("constant", copy):
                own = text.constant(f"w{copy}", "W")
            if self.is_("other type of parameter", copy):
                own = text.param(f"v{copy}", "V")
            last = own
            norm = text.step("norm", here, other if self.is_("other shared", copy) else shared)
            left = text.step("silu" if self.is_("other operation", copy) else "relu", norm)
            type_ = "U" if self.is_("other type", copy) else "T"
            right = text.step("matmul", norm, own, type_=type_)
            product = text.step(
                "multiply", *((right, left) if self.is_("swapped", copy) else (left, right))
            )
            scaled = text.step("scale", norm if self.is_("other wiring", copy) else product)
            more = [scaled] if self.is_("more operands", copy) else []
            kind = NodeKind.TUPLE if self.is_("other kind", copy) else NodeKind.OPERATOR
            carried = before if self.is_("two layers back", copy) else here
            before = here
            here = text.step("add", carried, scaled, *more, kind=kind)
        self.graph = text.graph(here)

    def is_(self, odd, copy):
        return self.odd == odd and self.at == copy


ODD = """shared own, constant, other type of parameter, other shared, other operation, other type,
swapped, other wiring, more operands, other kind, two layers back"""


def stretches(graphs, graph):
    return [(one.start, one.stop, one.copies) for one in graphs.repeats(container_tree(graph))]


def test_ten_equal_layers_are_one_repeat(graphs):
    assert stretches(graphs, Odd(graphs).graph) == [(0, 60, 10)]


@pytest.mark.parametrize("at", [1, 4, 9])
@pytest.mark.parametrize("odd", [word.strip() for word in ODD.split(",")])
def test_a_layer_that_differs_in_any_way_parts_the_repeat(graphs, odd, at):
    graph = Odd(graphs, odd, at).graph
    assert graphs.difference(graph, 0, 60, 10)
    found = stretches(graphs, graph)
    assert sum(copies for _, _, copies in found) >= 7
    assert all(not graphs.difference(graph, *one) for one in found)
    assert all(copies < 10 for _, _, copies in found)


@pytest.mark.parametrize("sorts", [2, 3])
def test_layers_of_some_sorts_in_turn_are_a_repeat_of_as_many_layers(graphs, sorts):
    text = graphs.Text()
    masks, here = [text.param() for _ in range(sorts)], text.param()
    for copy in range(12):
        one, two = text.step("norm", here), text.step("silu", here)
        for word in ("a", "b", "c", "d"):
            two = text.step(word, two, one)
        here = text.step("attention", two, masks[copy % sorts], text.param())
    assert stretches(graphs, text.graph())[0] == (0, 84, 12 // sorts)


@pytest.mark.parametrize("odd", [0, 5, 11, None])
def test_a_block_of_a_branch_that_ends_elsewhere_parts_the_repeat(graphs, odd):
    text = graphs.Text()
    condition, here = text.param(), text.param()

    def then(copy):
        with text.block():
            made = text.step("first", here)
            made = made if copy == odd else text.step("second", made)
        return text.step("third", text.step("second", made) if copy == odd else made)

    def other():
        return text.step("other", here)

    for copy in range(12):
        chosen = graphs.branches(text, condition, lambda copy=copy: then(copy), other)
        here = text.step("join", chosen, here, text.constant())
    graph = text.graph()
    found = stretches(graphs, graph)
    assert sum(copies for _, _, copies in found) == (12 if odd is None else 11)
    assert all(not graphs.difference(graph, *one) for one in found)


@pytest.mark.parametrize("odd", [0, 5, 11, None])
def test_the_other_branch_parts_the_repeat(graphs, odd):
    text = graphs.Text()
    condition, here = text.param(), text.param()

    def dead():
        text.step("unused", here)
        return here

    def empty():
        return here

    for copy in range(12):
        both = (empty, dead) if copy == odd else (dead, empty)
        here = text.step("join", graphs.branches(text, condition, *both), text.param())
        here = text.step("double", here, here)
        here = text.step("half", here, text.param())
    graph = text.graph()
    found = stretches(graphs, graph)
    assert sum(copies for _, _, copies in found) == (12 if odd is None else 11)
    assert all(not graphs.difference(graph, *one) for one in found)
