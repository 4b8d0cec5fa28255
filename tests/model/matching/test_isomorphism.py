"""Functions that are the same but for names are recognised, and others are not."""

import contextlib

import pytest

from irviz.model.graph.graph import RegionKind
from irviz.model.matching.node_matching import isomorphism


@pytest.mark.parametrize("region", [(RegionKind.BRANCH, "then"), (RegionKind.FUNCTION, "inner")])
def test_a_step_in_a_branch_or_function_is_not_the_same_outside_of_it(graphs, region):
    def graph(*, is_inside):
        text = graphs.Text()
        x = text.param("x")
        with text.inside(*region) if is_inside else contextlib.nullcontext():
            text.step("print", x)
        return text.graph(x)

    for is_inside in (False, True):
        same = [graph(is_inside=is_inside) for _ in range(2)]
        assert isomorphism(*same) == {node.id: node.id for node in same[0].nodes}
    assert isomorphism(graph(is_inside=True), graph(is_inside=False)) is None
