"""A trace says what a run did at each node: values, times, and the first that is not finite."""

import pickle

import numpy as np
import pytest

from irviz.model.graph.graph import NodeId, inlined_id
from irviz.model.runs.array_diff import summarise
from irviz.model.runs.execution_trace import NodeValue, NodeVisit, Trace


def value(*arrays, text=""):
    taken = tuple(np.asarray(array) for array in arrays)
    return NodeValue(tuple(map(summarise, taken)), taken, text)


def trace(seconds=4.0, **visits):
    return Trace("main", {NodeId(name): one for name, one in visits.items()}, seconds, 3.0, 1.0)


# --- values ------------------------------------------------------------------------------------


def test_a_value_has_the_bytes_of_all_its_tensors():
    assert value(np.zeros((2, 3), np.float32), np.zeros(5, np.int8)).nbytes == 29
    assert value(text="shape (2, 3)").nbytes == 0


def test_the_largest_number_of_a_value_is_that_of_all_its_tensors():
    assert value([1.0, -7.0], [3.0]).largest == 7
    assert value([np.nan], [-np.inf, 2.0]).largest == 2
    assert value([np.nan]).largest is None
    assert value(np.zeros(0)).largest is None
    assert value(text="3").largest is None


def test_one_tensor_that_is_not_finite_makes_a_value_so():
    assert value([1.0], [2.0]).is_finite
    assert value(np.zeros(0)).is_finite
    assert value(text="3").is_finite
    assert not value([1.0], [np.nan]).is_finite
    assert not value([np.inf], [1.0]).is_finite


def test_values_are_the_same_bit_by_bit():
    assert value([1.0, np.nan]).is_same(value([1.0, np.nan]))
    assert not value([0.0]).is_same(value([-0.0]))
    assert not value([1.0]).is_same(value(np.array([1.0], np.float32)))
    assert not value([1.0, 2.0]).is_same(value([[1.0, 2.0]]))
    assert not value([1.0]).is_same(value([1.0], [1.0]))
    assert value(text="(2, 3)").is_same(value(text="(2, 3)"))
    assert not value(text="(2, 3)").is_same(value(text="(2, 4)"))


def test_a_value_that_was_not_kept_is_compared_by_its_digest():
    whole = value([1.0, 2.0])
    assert NodeValue(whole.summaries, (None,)).is_same(whole)


# --- traces ------------------------------------------------------------------------------------


def test_a_node_is_found_by_its_id():
    visit = NodeVisit(value([1.0]), 0.5, 2)
    assert trace(lv0=visit)["lv0"] is visit


def test_a_node_without_a_value_is_named_with_the_reasons_there_can_be():
    with pytest.raises(KeyError, match=r"no value of 'lv9' .* of 'main'.* branch that was not"):
        trace(lv0=NodeVisit(value([1.0])))["lv9"]


def test_a_share_is_a_part_of_the_call():
    one = trace(
        x=NodeVisit(value([1.0])),
        lv0=NodeVisit(value([1.0]), 1.0),
        lv1=NodeVisit(value([1.0]), 0.0),
    )
    assert one.share("lv0") == 0.25
    assert one.share("lv1") == 0
    assert one.share("x") is None
    with pytest.raises(KeyError):
        one.share("lv9")


def test_the_time_of_a_call_is_that_of_the_nodes_in_what_it_calls_too():
    call, callee = NodeId("lv1"), NodeId("y")
    inner = inlined_id(call, callee)
    deeper, other = inlined_id(inner, callee), NodeId("lv10")
    visits = {one: NodeVisit(value([1.0]), 1.0) for one in (call, inner, deeper, other)}
    one = Trace("main", visits, 4.0, 3.0, 1.0)
    assert [one.taken(node) for node in (call, inner, deeper, other)] == [3, 2, 1, 1]
    assert one.share(call) == 0.75
    assert trace(x=NodeVisit(value([1.0]))).taken("x") is None


def test_a_call_that_took_no_time_has_no_shares():
    assert trace(seconds=0.0, lv0=NodeVisit(value([1.0]), 0.0)).share("lv0") is None


def test_the_first_value_that_is_not_finite_is_the_first_that_was_made():
    bad, worse, good = value([np.inf]), value([np.nan]), value([1.0])
    assert trace(b=NodeVisit(good), z=NodeVisit(bad), a=NodeVisit(worse)).first_not_finite == "z"
    assert trace(b=NodeVisit(good)).first_not_finite is None
    assert trace().first_not_finite is None


def test_a_trace_says_how_much_it_holds():
    one = trace(lv0=NodeVisit(value([1.0])), lv1=NodeVisit(value([1.0])))
    assert repr(one) == "<Trace of 'main', input 0: 2 values>"


def test_a_trace_comes_whole_from_another_process():
    one = trace(lv0=NodeVisit(value([1.0, np.nan], np.array([True])), 0.5))
    there = pickle.loads(pickle.dumps(one))
    assert list(there.visits) == ["lv0"]
    assert there["lv0"].value.is_same(one["lv0"].value)
    assert there["lv0"].value.arrays[0].tobytes() == one["lv0"].value.arrays[0].tobytes()
    assert there.first_not_finite == "lv0"
