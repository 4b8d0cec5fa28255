"""Nodes that a diff says correspond have the same value when both stages run."""

from dataclasses import replace

import pytest

from irviz.course.mlp import MODULES
from irviz.model.diff.diff_result import ChangeKind
from irviz.session.session import Session

pytestmark = pytest.mark.build


@pytest.fixture(params=["the lecture's", "random"])
def module(request, diff_by_values):
    is_random = request.param == "random"
    return diff_by_values.random_operators(11, 9) if is_random else MODULES["MyModuleHighLevel"]


def test_fused_nodes_have_the_values_of_their_partners(module, diff_by_values):
    session = diff_by_values.fused(Session(module, isolate=False))
    found = diff_by_values.agreement(session, "0", "4", diff_by_values.EXACT)
    assert found.expected > 2
    assert found[1:] == ([], [])


def test_operators_beside_inserted_casts_have_the_values_of_their_partners(module, diff_by_values):
    session = Session(module, isolate=False).apply("ToMixedPrecision")
    found = diff_by_values.agreement(session, "0", "1", diff_by_values.ROUNDED)
    assert found.expected > 6
    assert found[1:] == ([], [])
    (main,) = session.diff("0", "1").functions
    added = [node for one in main.nodes if one.change is ChangeKind.ADDED for node in one.after]
    assert {main.graphs[1][node].callee for node in added} == {"relax.astype"}
    after = main.graphs[1]
    casts = [node.id for node in after.nodes if node.callee == "relax.astype"]
    assert added == casts != []


def test_the_values_contradict_pairs_that_are_wrong(diff_by_values):
    session = Session(MODULES["MyModuleHighLevel"], isolate=False).apply("LegalizeOps")
    (main, *_) = session.diff("0", "1").functions
    shifted = zip(main.nodes, main.nodes[1:] + main.nodes[:1], strict=True)
    nodes = tuple(replace(one, before=other.before) for one, other in shifted)
    diff = replace(session.diff("0", "1"), functions=(replace(main, nodes=nodes),))
    found = diff_by_values.agreement(session, "0", "1", diff_by_values.EXACT, diff)
    assert len(found.wrong) == len(nodes)
    assert len(found.missing) == found.expected == 7
