"""Two runs differ first at the first node whose own operation made a difference."""

import dataclasses

import numpy as np
import pytest

from irviz.model.graph.graph import Edge, Graph, Node, NodeKind
from irviz.model.runs.array_diff import Tolerance, Verdict, summarise
from irviz.model.runs.execution_trace import (
    NodeDifference,
    NodeValue,
    NodeVisit,
    Trace,
    first_divergence,
    node_differences,
)
from irviz.view.run_result_html import (
    difference_amount,
    difference_summary,
    divergence_summary,
    node_path,
)

# x -> a -> b -> c (returned), x -> side -> c, and a constant k that b uses
USES = {"a": "x", "b": "ak", "side": "x", "c": ("b", "side")}


def graph(outputs=("c",), uses=USES):
    nodes = [Node("x", NodeKind.PARAM, "x", "T"), Node("k", NodeKind.CONSTANT, "", "T")]
    nodes += [Node(one, NodeKind.CALL_TIR, one, "T", f"{one}0") for one in uses]
    edges = [
        Edge(source, one, (at,))
        for one, sources in uses.items()
        for at, source in enumerate(sources)
    ]
    return Graph("main", tuple(nodes), tuple(edges), (), outputs)


def value(*arrays, is_kept=True):
    arrays = tuple(np.asarray(array, "float32") for array in arrays)
    kept = tuple(array if is_kept else None for array in arrays)
    return NodeValue(tuple(map(summarise, arrays)), kept)


EQUAL = dict.fromkeys(("x", "k", "a", "side", "b", "c"), 1.0)


def trace(is_kept=True, **numbers):
    values = {**EQUAL, **numbers}
    visits = {
        one: NodeVisit(number if isinstance(number, NodeValue) else value(number, is_kept=is_kept))
        for one, number in values.items()
        if number is not None
    }
    return Trace("main", visits, 1.0, 1.0, 0.0)


def found(is_kept=True, pairs=None, **numbers):
    pairs = {one: one for one in EQUAL} if pairs is None else pairs
    return node_differences(trace(is_kept, **numbers), trace(is_kept), pairs)


def parted(drawn=None, pairs=None, **numbers):
    return first_divergence(trace(**numbers), drawn or graph(), found(pairs=pairs, **numbers))


def test_the_first_node_is_found_whose_operands_are_the_same():
    place = parted(b=3.0, c=4.0)
    assert (place.node, place.reference) == ("b", "b")
    assert place.difference.max_abs == 2
    assert place.upstream == ("x", "k", "a", "side")
    assert (place.drift, place.between, place.absorbed) == (0, (), ())
    assert place.reaches_output
    assert not place.is_input


def test_runs_without_a_difference_do_not_part():
    assert parted() is None
    assert parted(a=1.00001, b=1.00002) is None


def test_what_is_within_tolerance_is_told_as_drift():
    place = parted(a=1.00001, b=3.0, c=3.0)
    assert place.node == "b"
    assert place.drift == pytest.approx(1e-5, rel=0.02)


def test_a_difference_that_reaches_the_result_goes_before_one_that_is_absorbed():
    place = parted(side=2.0, b=3.0, c=4.0, drawn=graph(uses={**USES, "c": "b"}))
    assert (place.node, place.absorbed) == ("b", ("side",))
    place = parted(side=2.0)
    assert (place.node, place.reaches_output) == ("side", False)


def test_other_inputs_are_told_as_such():
    for one in ("x", "k"):
        place = parted(**{one: 2.0, "a": 2.0 if one == "x" else 1.0, "b": 3.0, "c": 4.0})
        assert (place.node, place.is_input) == (one, True)
    assert "; x before it differed without an effect" in said(x=2.0, b=3.0, c=3.0)


def test_a_node_without_a_partner_is_seen_through():
    pairs = {one: one for one in EQUAL if one != "a"}
    place = parted(pairs=pairs, a=7.0, b=3.0, c=4.0)
    assert (place.node, place.between) == ("b", ("a",))
    place = parted(pairs=pairs, x=2.0, a=7.0, b=3.0, c=4.0)
    assert place.node == "x"


def test_a_branch_that_was_not_taken_says_nothing():
    place = parted(side=None, c=4.0)
    assert (place.node, place.between) == ("c", ("side",))


def test_nodes_that_are_not_in_the_graph_are_left_out():
    outer = graph()
    values = {**EQUAL, "inner": 1.0}
    assert (
        first_divergence(
            trace(inner=2.0, c=2.0),
            outer,
            node_differences(
                trace(inner=2.0, c=2.0), trace(inner=1.0), dict(zip(values, values, strict=True))
            ),
        ).node
        == "c"
    )


def test_partners_have_other_names():
    names = {one: f"{one}1" for one in EQUAL}
    other = trace()
    renamed = dataclasses.replace(
        other, visits={names[one]: visit for one, visit in other.visits.items()}
    )
    place = first_divergence(trace(b=2.0), graph(), node_differences(trace(b=2.0), renamed, names))
    assert (place.node, place.reference) == ("b", "b1")


def test_numbers_past_the_tolerance_are_counted():
    one, other = value([1, 2, 3, 4.5]), value([1, 2, 3.00001, 4])
    told = node_differences(trace(a=one), trace(a=other), {"a": "a"})["a"]
    assert (told.verdict, told.past, told.numbers) == (Verdict.DIFFERENT, 1, 4)
    assert (told.max_abs, told.max_ulp) == (0.5, 1 << 20)
    wide = node_differences(trace(a=one), trace(a=other), {"a": "a"}, tolerance=Tolerance(1, 1))[
        "a"
    ]
    assert (wide.verdict, wide.is_same, wide.is_different) == (Verdict.CLOSE, True, False)


def test_of_what_was_not_kept_the_digests_tell_equal_or_not():
    told = found(is_kept=False, b=2.0)
    assert told["a"].verdict is Verdict.EQUAL
    assert told["b"].verdict is None
    assert (told["b"].is_same, told["b"].is_different) == (False, False)
    assert np.isnan(told["b"].max_abs)


def test_what_was_not_kept_is_fetched_only_where_it_is_needed():
    asked = []
    one, other = trace(False, b=2.5), trace(False)

    def fetch(which, node_id):
        asked.append((which is one, node_id))
        return [np.float32(2.5 if which is one else 1.0)]

    told = node_differences(one, other, {node_id: node_id for node_id in EQUAL}, fetch=fetch)
    assert asked == [(True, "b"), (False, "b")]
    assert (told["b"].verdict, told["b"].max_abs) == (Verdict.DIFFERENT, 1.5)


def test_tuples_are_compared_tensor_by_tensor():
    one, other = value(1.0, [2.0, 3.0]), value(1.0, [2.0, 4.0])
    told = node_differences(trace(a=one), trace(a=other), {"a": "a"})["a"]
    assert (told.max_abs, told.past, told.numbers) == (1, 1, 3)


def test_other_shapes_cannot_be_compared_and_are_seen_through():
    told = node_differences(trace(a=value([1, 2])), trace(), {"a": "a"})["a"]
    assert told.verdict is Verdict.INCOMPARABLE
    assert told.reason == "it has the shapes [(2,)] here and [()] there"
    assert parted(a=value([1, 2]), b=2.0, c=2.0).between == ("a",)


def test_what_is_text_is_equal_or_different():
    told = node_differences(
        trace(a=NodeValue(text="(1, 2)")), trace(a=NodeValue(text="(1, 3)")), {"a": "a"}
    )
    assert told["a"].verdict is Verdict.DIFFERENT
    assert difference_amount(told["a"]) == "it is '(1, 2)' here and '(1, 3)' there"


def test_another_dtype_is_compared_as_numbers():
    half = NodeValue((summarise(np.float16(1.5)),), (np.float16(1.5),))
    told = node_differences(trace(a=half), trace(a=1.5), {"a": "a"})["a"]
    assert (told.verdict, told.max_abs, told.max_ulp) == (Verdict.CLOSE, 0, None)
    assert told.reason == "it is float16 here and float32 there"


def test_only_what_both_runs_reached_is_compared():
    assert found(side=None).keys() == EQUAL.keys() - {"side"}
    assert node_differences(trace(), trace(side=None), {"side": "side", "a": "b"}).keys() == {"a"}


def said(drawn=None, pairs=None, **numbers):
    return divergence_summary(parted(drawn, pairs, **numbers), "2", "0", drawn or graph())


def test_the_place_is_put_in_words():
    assert said(b=value([1.0])) == "stages 2 and 0 do not diverge: no value is known to differ"
    many = np.ones(12800)
    many[:3] = 1.5
    one, other = trace(b=value(many)), trace(b=value(np.ones(12800)))
    place = first_divergence(
        one, graph(), node_differences(one, other, {key: key for key in EQUAL})
    )
    assert divergence_summary(place, "2", "0", graph()) == (
        "stages 2 and 0 differ first at b (b0): max |Δ| 0.5, 3 of 12,800 numbers; everything "
        "before is equal; the results do not show it"
    )
    assert said(b=3.0, c=3.0) == (
        "stages 2 and 0 differ first at b (b0): max |Δ| 2, 1 of 1 numbers; "
        "everything before is equal"
    )
    assert said(a=1.00001, b=3.0, c=3.0).endswith(
        "everything before is within tolerance, max |Δ| 1e-05"
    )
    assert said(x=3.0, a=2.0, b=2.0, c=2.0) == (
        "stages 2 and 0 have different inputs: x: max |Δ| 2, 1 of 1 numbers"
    )
    pairs = {one: one for one in EQUAL if one != "a"}
    assert "; the cause may be a before it; " in said(pairs=pairs, b=3.0, c=4.0)
    drawn = graph(uses={**USES, "c": "b"})
    assert "; side before it differed without an effect" in said(drawn, side=2.0, b=3.0, c=4.0)


def test_ids_are_read_as_paths():
    assert node_path("lv\ue000/y") == "lv/y"


@pytest.mark.parametrize(
    ("difference", "line"),
    [
        (NodeDifference("p", Verdict.EQUAL, 0.0), "equal to p in stage 0"),
        (
            NodeDifference("p", Verdict.CLOSE, 9.5e-07, max_ulp=1200),
            "within tolerance of p in stage 0, max |Δ| 9.5e-07, 1,200 ULP",
        ),
        (
            NodeDifference("p", Verdict.DIFFERENT, 0.5, 3, 12800),
            "different from p in stage 0: max |Δ| 0.5, 3 of 12,800 numbers",
        ),
        (
            NodeDifference("p", Verdict.INCOMPARABLE, reason="why"),
            "not comparable with p in stage 0: why",
        ),
        (NodeDifference("p", None), "not equal to p in stage 0: its numbers were not kept"),
    ],
)
def test_a_node_is_set_beside_its_partner_in_words(difference, line):
    assert difference_summary(difference, "0") == line
