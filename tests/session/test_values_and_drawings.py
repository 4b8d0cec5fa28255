# ruff: noqa: N805, N812, RET504, SIM108
# TVMScript is read by TVM, not run by Python: it has its own rules for names.
"""What runs show is asked for by code as well: values, pictures of them, memory, times."""

import re
from functools import partial

import numpy as np
import pytest
from tvm.script import ir as I
from tvm.script import relax as R

from irviz.course.digits import digits, mlp_params
from irviz.course.mlp import MyModule
from irviz.errors import InputError
from irviz.model.graph.graph import inlined_id
from irviz.runtime.run import measure
from irviz.session.session import Session
from irviz.view.run_result_html import TimingTable

pytestmark = pytest.mark.build

PARAMS, DIGITS = mlp_params(), digits()
X = np.array([-1, 1, 2, 3], np.float32)


@I.ir_module
class Branches:
    """A branch, a function that is called in it, a shape, and a tuple."""

    @R.function
    def twice(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = R.add(x, x)
        return y

    @R.function
    def main(x: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")):
        cls = Branches
        size = R.shape_of(x)
        if c:
            chosen = cls.twice(x)
        else:
            chosen = R.exp(x)
        both = (chosen, R.const([1.0, 2.0], "float32"))
        return (both, size)


def mlp():
    inputs = DIGITS.images[:3]
    return Session(MyModule, params=PARAMS, inputs=inputs, isolate=False)


def branches(c=True):
    return Session(Branches, inputs={"x": X, "c": np.array(c)}, isolate=False)


# --- values ------------------------------------------------------------------------------------


def test_a_trace_is_of_the_shown_stage_and_of_one_input():
    found = mlp().bind().trace(case=2)
    assert (found.function, found.case) == ("main", 2)
    assert {"x", "lv0", "lv1", "out"} <= found.visits.keys()
    np.testing.assert_array_equal(found["x"].value.arrays[0][0], DIGITS.images[2])
    assert found["lv1"].seconds > 0


def test_the_values_are_those_that_numpy_computes():
    session = mlp()
    (lv0,) = session.value("lv0", case=1)
    (lv1,) = session.value("lv1", case=1)
    wanted = DIGITS.images[1].reshape(1, -1) @ PARAMS["w0"].T + PARAMS["b0"]
    np.testing.assert_allclose(lv0, wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(lv1, np.maximum(lv0, 0))


def test_the_value_of_a_parameter_and_of_a_bound_weight_is_what_was_given():
    session = mlp().bind()
    np.testing.assert_array_equal(session.value("w0", stage="0")[0], PARAMS["w0"])
    weights = [name for name in session.trace().visits if "[" in name]
    assert len(weights) == 4
    shapes = {session.value(name)[0].shape for name in weights}
    assert shapes == {array.shape for array in PARAMS.values()}


def test_a_weight_is_known_even_where_a_trace_has_no_room_for_it():
    session = mlp().bind().with_inputs(np.zeros((1, 3), np.float32))
    name = next(node.id for node in session.graph().nodes if node.kind.value == "constant")
    with pytest.raises(ValueError, match="'x' has shape"):  # and it needs no run
        session.trace()
    assert session.value(name)[0].shape in {array.shape for array in PARAMS.values()}


def test_a_value_is_of_the_branch_that_was_taken_and_of_called_functions():
    call = next(node.id for node in branches().graph().nodes if node.callee == "twice")
    for name in (inlined_id(call, "y"), f"{call}/y"):
        (inner,) = branches().value(name)
        np.testing.assert_array_equal(inner, X + X)
    (chosen,) = branches(c=False).value("chosen")
    np.testing.assert_allclose(chosen, np.exp(X), rtol=1e-6)
    with pytest.raises(KeyError, match="a branch that was not taken"):
        branches(c=False).value(f"{call}/y")


def test_the_value_of_a_tuple_is_its_tensors_in_order():
    first, second = branches().value("both")
    np.testing.assert_array_equal(first, X + X)
    np.testing.assert_array_equal(second, [1, 2])


def test_a_function_without_parameters_has_values(modules):
    (ones,) = Session(modules.NoParameters, isolate=False).value("ones")
    np.testing.assert_array_equal(ones, np.ones((2, 2)))


def test_a_value_of_another_stage_leaves_the_shown_one_shown():
    session = mlp().bind()
    assert session.value("w0", stage="0")[0].shape == PARAMS["w0"].shape
    assert session.current_id == "1"


# --- pictures ----------------------------------------------------------------------------------


def words_in(figure):
    return re.findall(r'class="word"[^>]*>\s*<text[^>]*>([^<]*)', figure.svg)


@pytest.mark.parametrize("by", ["time", "size", "value"])
def test_a_stage_is_drawn_with_its_nodes_coloured(by):
    plain, coloured = mlp().draw(), mlp().draw_overlay(by)
    assert "tinted" not in plain.svg
    assert coloured.svg.count("tinted") > 3
    assert len(words_in(coloured)) >= 3


def test_the_colours_are_those_of_the_asked_input():
    session = mlp()
    largest = [f"{session.value('lv1', case=case)[0].max():.3g}" for case in range(3)]
    assert len(set(largest)) == 3
    for case in range(3):
        assert largest[case] in words_in(session.draw_overlay("value", case=case))
    assert largest[0] in words_in(session.draw_overlay("value"))


def test_differences_are_coloured_against_another_stage():
    figure = mlp().bind().draw_overlay("difference")
    assert "tinted" in figure.svg
    assert set(words_in(figure)) == {"0"}


def test_a_value_is_drawn_as_what_fits_it_best_or_as_what_is_asked_for():
    session = mlp()
    drawings = {kind: session.draw_value("x", kind).svg for kind in ("", "heat map", "histogram")}
    assert len({*drawings.values()}) >= 2
    assert all("<svg" in svg for svg in drawings.values())
    assert session.draw_value("x", theme="dark").svg != drawings[""]


def test_memory_and_destinations_are_drawn():
    session = mlp()
    assert session.memory_use().peak > 0
    assert "<svg" in session.draw_memory().svg
    plain, planned = (
        session.draw_destination_passing(),
        session.draw_destination_passing(planned=True),
    )
    assert "lv0" in plain.svg
    assert planned.svg != plain.svg
    assert session.draw_memory(stage="0", theme="dark").svg != session.draw_memory().svg


def test_stages_are_measured_in_turn(monkeypatch):
    monkeypatch.setattr("irviz.session.run_stages.measure", partial(measure, seconds=0.2))
    session = mlp().bind()
    times = session.measure()
    assert isinstance(times, TimingTable)
    assert [one.stage for one in times.measurement.timings] == ["0", "1"]
    assert times.ratio("0").median == 1
    only = session.measure("1")
    assert [one.stage for one in only.measurement.timings] == ["1"]


# --- what cannot be ----------------------------------------------------------------------------


def test_what_is_asked_for_wrongly_is_told_in_words():
    session = mlp()
    with pytest.raises(KeyError, match=r"'nowhere'.*not a node of 'main'"):
        session.value("nowhere")
    with pytest.raises(ValueError, match="there is no stage '7'; the stages are '0'"):
        session.first_difference("7")
    with pytest.raises(ValueError, match="there is no stage '7'"):
        session.trace("7")
    with pytest.raises(InputError, match="there is no case 3: give one of 0 to 2"):
        session.trace(case=3)
    with pytest.raises(ValueError, match="coloured by 'heat'; choose one of 'time', 'size'"):
        session.draw_overlay("heat")
    with pytest.raises(ValueError, match=r"'images' does not fit a value of shape .*: give"):
        session.draw_value("lv0", "images")
    with pytest.raises(ValueError, match="there is no stage '7'"):
        session.measure("7")
    with pytest.raises(ValueError, match="theme"):
        session.draw_value("lv0", theme="neon")


def test_a_value_that_is_no_tensor_is_not_drawn():
    with pytest.raises(ValueError, match="the value of 'size' is not a tensor"):
        branches().draw_value("size")


def test_a_prim_func_by_itself_has_no_trace_and_that_is_said(modules):
    session = Session(modules.lone_prim_func(), isolate=False)
    for ask in (session.trace, session.draw_overlay, lambda: session.value("Y")):
        with pytest.raises(InputError, match="'double' is a PrimFunc"):
            ask()


def test_a_stage_that_failed_has_the_values_of_the_module_it_kept():
    session = mlp().apply("MergeCompositeFunctions")
    assert session.current.error
    assert "lv0" in session.trace().visits
