"""Inputs become one list of arguments for each case, or are refused with what would be right."""

import re

import numpy as np
import pytest

from irviz.course.mlp import MyModule, MyModuleStatic
from irviz.ir.fit import MisfitError
from irviz.runtime.inputs import InputError, argument_lists

MAIN, SYMBOLIC = MyModuleStatic["main"], MyModule["main"]


def zeros(*shape, dtype="float32"):
    return np.zeros(shape, dtype)


WEIGHTS = {"w0": zeros(128, 784), "b0": zeros(128), "w1": zeros(10, 128), "b1": zeros(10)}


def shapes(cases):
    return [tuple(array.shape for array in case) for case in cases]


# --- cases -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "count"),
    [
        (zeros(1, 784), 1),
        (zeros(7, 784), 7),
        (zeros(7, 1, 784), 7),
        (zeros(1, 1, 784), 1),
    ],
)
def test_an_array_with_more_rows_or_one_more_axis_holds_a_case_a_row(x, count):
    for inputs in (x, {"x": x}):
        cases = argument_lists(MAIN, inputs, WEIGHTS)
        assert len(cases) == count
        assert set(shapes(cases)) == {((1, 784), (128, 784), (128,), (10, 128), (10,))}


def test_each_case_is_its_own_row_and_the_weights_are_shared():
    x = np.arange(2 * 784, dtype="float32").reshape(2, 784)
    first, second = argument_lists(MAIN, x, WEIGHTS)
    assert (first[0][0] == x[0]).all()
    assert (second[0][0] == x[1]).all()
    assert all(a is b is w for a, b, w in zip(first[1:], second[1:], WEIGHTS.values(), strict=True))


def test_arguments_are_in_the_order_of_the_parameters():
    backwards = {name: WEIGHTS[name] for name in reversed(WEIGHTS)}
    (case,) = argument_lists(MAIN, {**backwards, "x": zeros(1, 784)}, {})
    assert [array.shape for array in case] == [(1, 784), (128, 784), (128,), (10, 128), (10,)]


def test_inputs_come_before_params_of_the_same_name():
    other = zeros(10) + 1
    (case,) = argument_lists(MAIN, {"x": zeros(1, 784), "b1": other}, WEIGHTS)
    assert case[4] is other


def test_params_that_the_function_does_not_have_are_left_out():
    (case,) = argument_lists(MAIN, zeros(1, 784), {**WEIGHTS, "w7": zeros(3)})
    assert len(case) == 5


def test_inputs_with_one_case_go_with_each_of_the_others():
    weights = {name: array for name, array in WEIGHTS.items() if name != "w0"}
    cases = argument_lists(MAIN, {"x": zeros(3, 784), "w0": WEIGHTS["w0"]}, weights)
    assert len(cases) == 3
    assert all(case[1] is cases[0][1] for case in cases)


def test_a_symbolic_size_takes_the_size_it_is_given():
    weights = {"w0": zeros(8, 5), "b0": zeros(8), "w1": zeros(3, 8), "b1": zeros(3)}
    cases = argument_lists(SYMBOLIC, zeros(2, 5), weights)
    assert shapes(cases) == [((1, 5), (8, 5), (8,), (3, 8), (3,))] * 2


def test_a_size_that_varies_is_no_number_of_cases(modules):
    (case,) = argument_lists(modules.Sizes["main"], {"x": zeros(3, 2), "y": zeros(3)}, {})
    assert [array.shape for array in case] == [(3, 2), (3,)]
    cases = argument_lists(modules.Sizes["main"], {"x": zeros(4, 3, 2), "y": zeros(4, 3)}, {})
    assert shapes(cases) == [((3, 2), (3,))] * 4


def test_a_function_without_parameters_has_one_case(modules):
    nothing = modules.chain("x")["main"].with_attr("a", "b")
    assert argument_lists(nothing, zeros(2), {})[0][0].shape == (2,)


def test_lists_of_numbers_are_arrays_too(modules):
    (case,) = argument_lists(modules.Dtypes["main"], _dtypes(), {})
    assert [str(array.dtype) for array in case] == ["bool", "float16", "uint8", "float32"]


def _dtypes():
    return {
        "flags": [True, False],
        "half": np.array([1, 2], "float16"),
        "small": np.array([1, 2, 3], "uint8"),
        "scalar": np.float32(1),
    }


# --- made up -----------------------------------------------------------------------------------


def test_random_inputs_are_the_same_every_time():
    first, second = (argument_lists(MAIN, None, WEIGHTS)[0][0] for _ in range(2))
    assert first.tobytes() == second.tobytes()
    assert first.std() > 0
    assert (first.shape, first.dtype) == ((1, 784), "float32")


def test_without_params_all_is_made_up():
    (case,) = argument_lists(MAIN, None, {})
    assert [array.shape for array in case] == [(1, 784), (128, 784), (128,), (10, 128), (10,)]
    assert all(np.isfinite(array).all() for array in case)


def test_symbolic_sizes_are_taken_from_the_params():
    (case,) = argument_lists(SYMBOLIC, None, WEIGHTS)
    assert case[0].shape == (1, 784)


def test_every_dtype_has_values(modules):
    (case,) = argument_lists(modules.Dtypes["main"], None, {})
    assert [(str(a.dtype), a.shape) for a in case] == [
        ("bool", (2,)),
        ("float16", (2,)),
        ("uint8", (3,)),
        ("float32", ()),
    ]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Symbolic", "x: Tensor[(n, m), float16] has the symbolic dimension n, so its size is not"),
        ("RankOnly", "no value can be made up for x: Tensor[ndim=2]; give one in inputs"),
        ("SizeAsArgument", "no value can be made up for n: int64; give one in inputs"),
    ],
)
def test_what_cannot_be_made_up_is_asked_for(modules, name, words):
    with pytest.raises(InputError, match=re.escape(words)):
        argument_lists(getattr(modules, name)["main"], None, {})


# --- refused -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inputs", "params", "words"),
    [
        (
            {"x": zeros(1, 784)},
            {},
            "no value for w0: Tensor[(128, 784)], b0: Tensor[(128,)], w1: Tensor[(10, 128)], "
            "b1: Tensor[(10,)]: give 'w0', 'b0', 'w1', 'b1' in params or inputs",
        ),
        (
            {"x": zeros(1, 784), "y": zeros(1)},
            WEIGHTS,
            "the function has no parameter 'y'; its parameters are 'x', 'w0', 'b0', 'w1', 'b1'",
        ),
        (
            zeros(1, 784),
            {"w0": WEIGHTS["w0"]},
            "one array was given, but the parameters without a value are 'x', 'b0', 'w1', 'b1': "
            "give a dict with an array for each",
        ),
        (
            zeros(1, 784),
            {**WEIGHTS, "x": zeros(1, 784)},
            "one array was given, but the parameters without a value are none",
        ),
        (
            {"x": zeros(3, 784), "w0": zeros(2, 128, 784)},
            WEIGHTS,
            "the inputs have different numbers of cases: {'x': 3, 'w0': 2}",
        ),
        (zeros(0, 1, 784), WEIGHTS, "there is no case in 'x': give an array with at least one"),
        (
            {"x": zeros(2, 784), "w0": zeros(0, 128, 784)},
            WEIGHTS,
            "there is no case in 'w0'",
        ),
        ([[1], [1, 2]], WEIGHTS, "'x' is no array: "),
    ],
)
def test_what_is_missing_unknown_or_too_many_is_named(inputs, params, words):
    with pytest.raises(InputError, match=re.escape(words)):
        argument_lists(MAIN, inputs, params)


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (zeros(1, 700), "'x' has shape (1, 700), the function wants (1, 784)"),
        (zeros(5, 700), "'x' has shape (1, 700), the function wants (1, 784)"),
        (zeros(784), "'x' has shape (784,), the function wants (1, 784)"),
        (zeros(0, 784), "'x' has shape (0, 784), the function wants (1, 784)"),
        (zeros(2, 2, 784), "'x' has shape (2, 784), the function wants (1, 784)"),
        (zeros(2, 784, dtype="float64"), "'x' has dtype float64, the function wants float32"),
        ("abc", "'x' has dtype <U3, the function wants float32"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_would(x, words):
    with pytest.raises(MisfitError, match=re.escape(words)):
        argument_lists(MAIN, x, WEIGHTS)


def test_params_that_do_not_fit_are_refused_too():
    with pytest.raises(MisfitError, match=re.escape("'b1' has shape (9,), the function wants")):
        argument_lists(MAIN, zeros(1, 784), {**WEIGHTS, "b1": zeros(9)})
    with pytest.raises(MisfitError, match=r"and the others make k = 10, m = 784, n = 128"):
        argument_lists(SYMBOLIC, zeros(1, 784), {**WEIGHTS, "b1": zeros(9)})


def test_only_tensors_can_be_given(modules):
    given = {"x": zeros(4), "n": 3}
    with pytest.raises(MisfitError, match="'n' is of type int64, and only a tensor can be given"):
        argument_lists(modules.SizeAsArgument["main"], given, {})
