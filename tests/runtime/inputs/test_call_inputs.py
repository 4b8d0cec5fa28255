"""Inputs become one list of arguments for each case, or are refused with what would be right."""

import re

import numpy as np
import pytest
import tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import ir, relax, tirx

from irviz.course.mlp import MyModule, MyModuleStatic
from irviz.errors import InputError
from irviz.ir.parameter_values import ShapeValue, TypeMismatchError
from irviz.ir.symbolic_shapes import symbolic_sizes
from irviz.runtime.call_inputs import plan_inputs

MAIN, SYMBOLIC = MyModuleStatic["main"], MyModule["main"]


def argument_lists(function, inputs, params, **options):
    return plan_inputs(function, inputs, params, **options).argument_lists()


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


def test_a_row_of_numbers_holds_a_case_each_of_a_tensor_without_sizes(modules):
    given = {**_dtypes(), "scalar": np.arange(3, dtype="float32")}
    cases = argument_lists(modules.Dtypes["main"], given, {})
    assert [(type(case[3]), case[3].shape, float(case[3])) for case in cases] == [
        (np.ndarray, (), number) for number in (0, 1, 2)
    ]


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
        ("RankOnly", "no value can be created for x: Tensor[ndim=2]; give one in inputs"),
    ],
)
def test_what_cannot_be_made_up_is_asked_for(modules, name, words):
    with pytest.raises(InputError, match=re.escape(words)):
        argument_lists(getattr(modules, name)["main"], None, {})


def test_more_dimensions_than_an_array_can_have_are_an_input_error():
    x = relax.Var("x", relax.TensorType([1] * 65, "float32"))
    function = relax.Function([x], x)
    words = "x has 65 dimensions, and arrays of NumPy have at most 64: no value can be created"
    with pytest.raises(InputError, match=words):
        argument_lists(function, None, {})


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
        ([[1], [1, 2]], WEIGHTS, "'x' is not an array: "),
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
        (np.array(["abc"]), "'x' has dtype <U3, the function wants float32"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_would(x, words):
    with pytest.raises(TypeMismatchError, match=re.escape(words)):
        argument_lists(MAIN, x, WEIGHTS)


def test_params_that_do_not_fit_are_refused_too():
    with pytest.raises(
        TypeMismatchError, match=re.escape("'b1' has shape (9,), the function wants")
    ):
        argument_lists(MAIN, zeros(1, 784), {**WEIGHTS, "b1": zeros(9)})
    with pytest.raises(TypeMismatchError, match=r"and the others make k = 10, m = 784, n = 128"):
        argument_lists(SYMBOLIC, zeros(1, 784), {**WEIGHTS, "b1": zeros(9)})


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ("abc", "'abc' is neither an array nor a keyword: give 'random', 'zeros', or arrays"),
        (
            {"x": "zero"},
            "'x' is 'zero', which is neither an array nor a keyword: give 'random'",
        ),
        ([[None]], "'x' is not an array of numbers but of Python objects: give numpy.asarray(x"),
    ],
)
def test_what_is_neither_array_nor_word_is_refused(inputs, words):
    with pytest.raises(InputError, match=re.escape(words)):
        argument_lists(MAIN, inputs, WEIGHTS)


@pytest.mark.parametrize(
    ("x", "dtype"), [([[0.5] * 784], "float64"), ([[1] * 784], "int64"), ([[True] * 784], "bool")]
)
def test_numbers_of_another_kind_are_not_converted_in_secret(x, dtype):
    with pytest.raises(TypeMismatchError, match=f"dtype {dtype}, .* give x.astype\\('float32'\\)"):
        argument_lists(MAIN, x, WEIGHTS)


@pytest.mark.parametrize(
    "odd",
    [
        lambda x: x.astype(">f4"),
        np.asfortranarray,
        lambda x: np.repeat(x, 2, axis=1)[:, ::2],
        lambda x: x[:, ::-1].copy()[:, ::-1],
    ],
)
def test_arrays_in_another_order_of_bytes_or_axes_are_the_same_numbers(odd):
    x = np.arange(3 * 784, dtype="float32").reshape(3, 784)
    for case, row in zip(argument_lists(MAIN, odd(x), WEIGHTS), x, strict=True):
        assert case[0].tobytes() == row.tobytes()
        assert case[0].flags.c_contiguous


def test_tensors_of_tvm_are_arrays_too():
    (case,) = argument_lists(MAIN, tvm.runtime.tensor(zeros(1, 784)), WEIGHTS)
    assert case[0].shape == (1, 784)


def test_an_array_of_no_size_is_given_where_the_size_may_vary(modules):
    inputs = {"x": zeros(0, 2), "y": zeros(0)}
    (case,) = argument_lists(modules.Sizes["main"], inputs, {})
    assert [array.shape for array in case] == [(0, 2), (0,)]


# --- words, seeds and sizes --------------------------------------------------------------------


def test_a_word_stands_for_all_inputs_or_for_one():
    everything = argument_lists(MAIN, "random", {})[0]
    assert [a.tobytes() for a in everything] == [
        a.tobytes() for a in argument_lists(MAIN, None, {})[0]
    ]
    assert not any(array.any() for array in argument_lists(MAIN, "zeros", {})[0])
    x, w0, b0, *_ = argument_lists(MAIN, {**WEIGHTS, "x": "random", "b0": "zeros"}, {})[0]
    assert (x == everything[0]).all()
    assert w0 is WEIGHTS["w0"]
    assert b0.tolist() == [0] * 128


def test_the_params_stay_with_a_word_for_the_inputs():
    (case,) = argument_lists(MAIN, "zeros", {**WEIGHTS, "b1": zeros(10) + 1})
    assert case[4].tolist() == [1] * 10


def test_what_is_made_up_goes_with_each_case_of_the_others():
    cases = argument_lists(MAIN, {**WEIGHTS, "x": zeros(3, 784), "w0": "random"}, {})
    assert len(cases) == 3
    assert cases[0][1] is cases[2][1]


def test_another_seed_gives_other_numbers_and_names_differ_too():
    first, again, other = (argument_lists(MAIN, None, {}, seed=n)[0] for n in (0, 0, 7))
    assert first[1].tobytes() == again[1].tobytes()
    assert (first[1] != other[1]).mean() > 0.99
    _, w0, _, w1, _ = argument_lists(SYMBOLIC, None, {})[0]
    assert w0.shape == w1.shape
    assert (w0 != w1).all()


def test_a_parameter_keeps_its_random_numbers_when_others_come_and_go():
    fewer = argument_lists(MAIN, {**WEIGHTS, "w1": "random"}, {"x": zeros(1, 784)})[0]
    assert fewer[3].tobytes() == argument_lists(MAIN, None, {})[0][3].tobytes()


@pytest.mark.parametrize("seed", [-1, 0.5, None, True, "1"])
def test_a_seed_that_is_none_is_refused(seed):
    with pytest.raises(InputError, match=f"the seed is {seed!r}: give an integer of 0 or more"):
        argument_lists(MAIN, None, {}, seed=seed)


def test_integers_are_small(modules):
    small = argument_lists(modules.Dtypes["main"], None, {}, seed=3)[0][2]
    assert small.max() < 10


def test_sizes_that_nothing_tells_are_said_or_taken_as_one_that_suits(modules):
    assert symbolic_sizes(SYMBOLIC) == ("m", "n", "k")
    assert shapes(argument_lists(SYMBOLIC, None, {})) == [((1, 8), (8, 8), (8,), (8, 8), (8,))]
    said = argument_lists(SYMBOLIC, None, {}, sizes={"n": 3, "m": 5})
    assert shapes(said) == [((1, 5), (3, 5), (3,), (8, 3), (8,))]
    (case,) = argument_lists(modules.Symbolic["main"], None, {}, sizes={"n": 3})
    assert (case[0].shape, case[1]) == ((3, 8), ShapeValue((3,)))


def test_sizes_come_from_the_arrays_before_all():
    (case,) = argument_lists(SYMBOLIC, {**WEIGHTS, "x": "random"}, {}, sizes={})
    assert case[0].shape == (1, 784)
    words = "the size of 'm' is 4, but the given values make it 784: leave it out"
    with pytest.raises(InputError, match=words):
        argument_lists(SYMBOLIC, None, WEIGHTS, sizes={"m": 4})
    argument_lists(SYMBOLIC, None, WEIGHTS, sizes={"m": 784})


def test_sizes_that_a_pass_made_known_are_left_out():
    assert shapes(argument_lists(MAIN, zeros(1, 784), WEIGHTS, sizes={"n": 3}))[0][2] == (128,)


@pytest.mark.parametrize("size", [0, -3, 2.0, "4", None, True])
def test_a_size_that_is_none_is_refused(size):
    with pytest.raises(
        InputError, match=f"the size of 'n' is {size!r}: give an integer of 1 or more"
    ):
        argument_lists(SYMBOLIC, None, {}, sizes={"n": size})


@pytest.mark.parametrize("word", ["random", "zeros"])
def test_what_is_too_large_is_refused_before_it_is_made(word):
    sizes = "with n = 1,000,000,000,000, m = 8, k = 8"
    words = f"32,000,000,000,000 {sizes}, which is more than 2,147,483,648"
    with pytest.raises(InputError, match=words):
        argument_lists(SYMBOLIC, word, {}, sizes={"n": 10**12})
    with pytest.raises(InputError, match="which is more than"):
        argument_lists(SYMBOLIC, word, {}, sizes={"n": 10**30, "m": 10**30})


# --- sizes in expressions ----------------------------------------------------------------------

n, m = tirx.Var("n", "int64"), tirx.Var("m", "int64")


def function(**types):
    """Return a function of parameters of these types, which returns the first."""
    params = [relax.Var(name, type_) for name, type_ in types.items()]
    return relax.Function(params, relax.SeqExpr([], params[0]), params[0].ty)


def tensor(*shape, dtype="float32"):
    return relax.TensorType(list(shape), dtype)


@pytest.mark.parametrize(
    ("dim", "given", "size"),
    [
        (n * 2, 6, 3),
        (n + 1, 6, 5),
        (7 - n, 6, 1),
        (n // 4, 6, 24),
        ((n + 3) // 4, 6, 21),
        (n * n, 49, 7),
        (n % 5, 3, 3),
        (tirx.max(n, 6), 6, 1),
        (n << 1, 6, 3),
    ],
)
def test_a_size_follows_from_an_expression_of_it(dim, given, size):
    of = function(x=tensor(dim), y=tensor(n), z=tensor(n * m, m))
    (case,) = argument_lists(of, {"x": zeros(given), "y": "random", "z": "random"}, {})
    assert [array.shape for array in case] == [(given,), (size,), (size * 8, 8)]


def test_sizes_follow_one_from_the_other():
    of = function(x=tensor(n * m), y=tensor(m + 1), z=tensor(n))
    (case,) = argument_lists(of, {"x": zeros(15), "y": zeros(4), "z": "zeros"}, {})
    assert case[2].shape == (5,)


def test_a_size_is_large_enough_for_what_is_made_of_it():
    of = function(x=tensor(n // 32, n - 20), y=tensor(n), z=tensor(m))
    (case,) = argument_lists(of, None, {})
    assert [array.shape for array in case] == [(1, 12), (32,), (32,)]


def test_sizes_grow_no_larger_than_what_is_given_leaves_room_for():
    of = function(x=tensor(n * m), y=tensor(m // 16), z=tensor(n, m))
    given = {"x": zeros(64), "y": "zeros", "z": "zeros"}
    assert argument_lists(of, given, {})[0][2].shape == (4, 16)
    of = function(x=tensor(n * m), y=tensor(n // 99), z=tensor(n, m))
    with pytest.raises(InputError, match=r"the size 0 where it says n // 99, with n = 8"):
        argument_lists(of, {"x": zeros(64), "y": "zeros", "z": "zeros"}, {})


@pytest.mark.parametrize(
    ("inputs", "sizes", "words"),
    [
        (
            {"x": zeros(7), "y": "random"},
            {},
            "'x' has shape (7,), the function wants (n * 2,), which no n makes",
        ),
        (
            {"x": zeros(6), "y": zeros(4)},
            {},
            "'x' has shape (6,), the function wants (n * 2,), and the others make n = 4",
        ),
        (
            {"x": zeros(6), "y": "zeros"},
            {"n": 4},
            "'x' has shape (6,), the function wants (n * 2,), and the others make n = 4",
        ),
    ],
)
def test_an_array_that_no_size_fits_is_refused(inputs, sizes, words):
    of = function(x=tensor(n * 2), y=tensor(n))
    with pytest.raises(TypeMismatchError, match=re.escape(words)):
        argument_lists(of, inputs, {}, sizes=sizes)


def test_a_size_that_leaves_nothing_is_refused():
    of = function(x=tensor(n // 4), y=tensor(n))
    words = "x: Tensor[(n // 4,)] has the size 0 where it says n // 4, with n = 3: give other sizes"
    with pytest.raises(InputError, match=re.escape(words)):
        argument_lists(of, None, {}, sizes={"n": 3})
    below = function(x=tensor(n - 4), y=tensor(n))
    with pytest.raises(InputError, match=re.escape("the size -1 where it says n - 4")):
        argument_lists(below, None, {}, sizes={"n": 3})


def test_what_values_tell_is_not_asked_for():
    of = function(x=tensor(n * 2), y=tensor(n, m), s=relax.ShapeType([m]), k=ir.PrimType("int64"))
    assert symbolic_sizes(of) == ("n", "m", "k")
    assert symbolic_sizes(of, ["x"]) == ("m", "k")
    assert symbolic_sizes(of, ["y"]) == ("k",)
    assert symbolic_sizes(of, ["s", "k"]) == ("n",)
    assert symbolic_sizes(MAIN) == ()


# --- what is no tensor -------------------------------------------------------------------------

MANY = function(
    x=tensor(n),
    s=relax.ShapeType([n, 3]),
    k=ir.PrimType("int64"),
    a=ir.PrimType("float32"),
    b=ir.PrimType("bool"),
    t=ir.TupleType([tensor(2, n), ir.TupleType([tensor(3, dtype="int8"), relax.ShapeType([m])])]),
)


def test_shapes_numbers_and_tuples_are_made_up():
    x, s, k, a, b, (t, (u, v)) = argument_lists(MANY, None, {}, sizes={"k": 5})[0]
    assert (x.shape, s, k, v) == ((8,), ShapeValue((8, 3)), 5, ShapeValue((8,)))
    assert (type(k), type(a), type(b)) == (int, float, bool)
    assert (t.shape, u.shape, str(u.dtype)) == ((2, 8), (3,), "int8")
    _, s, k, a, b, (t, _) = argument_lists(MANY, "zeros", {})[0]
    assert (s, k, a, b, t.any()) == (ShapeValue((8, 3)), 8, 0.0, False, False)


@pytest.mark.parametrize("shape", [(4, 3), [4, 3], np.array([4, 3]), ShapeValue((4, 3))])
def test_shapes_numbers_and_tuples_are_given(shape):
    given = {"x": zeros(4), "s": shape, "k": np.int64(-2), "a": 1, "b": np.True_}
    given["t"] = [zeros(2, 4), (np.zeros(3, "int8"), [7])]
    for _ in range(2):
        (case,) = argument_lists(MANY, given, {})
        assert case[1:5] == [ShapeValue((4, 3)), -2, 1, True]
        assert [type(value) for value in case[2:5]] == [int, int, bool]
        assert case[5][1][1] == ShapeValue((7,))
        given = dict(zip(given, case, strict=True))  # what came out can be given again


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("s", 4, "'s' is 4, the function wants Shape[(n, 3)]: give the sizes, as in (3, 4)"),
        ("s", (4, -3), "'s' is (4, -3), the function wants Shape[(n, 3)]: give the sizes"),
        ("s", (4, 3.0), "'s' is (4, 3.0), the function wants Shape[(n, 3)]: give the sizes"),
        ("s", (5, 3), "'s' has shape (5, 3), the function wants (n, 3), and the others make n = 4"),
        ("s", (4, 3, 1), "'s' has shape (4, 3, 1), the function wants (n, 3)"),
        ("k", 1.5, "'k' is 1.5, the function wants int64: give a whole number"),
        ("k", True, "'k' is True, the function wants int64: give a whole number"),
        ("k", 2**63, "'k' is 9223372036854775808, the function wants int64: give a number from"),
        ("k", [1, 2], "'k' is [1, 2], the function wants int64: give a whole number"),
        ("k", "one", "'k' is 'one', which is neither an array nor a keyword"),
        ("a", False, "'a' is False, the function wants float32: give a number"),
        ("b", 1, "'b' is 1, the function wants bool: give True or False"),
        (
            "t",
            zeros(2, 4),
            "'t' is an array of shape (2, 4), the function wants Tuple[Tensor[(2, n",
        ),
        ("t", [zeros(2, 4)], "'t' is a tuple of 1, the function wants Tuple["),
        ("t", [zeros(2, 5), (zeros(3), [7])], "'t[0]' has shape (2, 5), the function wants (2, n)"),
        (
            "t",
            [zeros(2, 4), (zeros(3), [7])],
            "'t[1][0]' has dtype float32, the function wants int8",
        ),
        ("x", 5.0, "'x' has dtype float64"),
    ],
)
def test_what_is_given_for_no_tensor_is_checked_too(name, value, words):
    given = {"x": zeros(4), "s": (4, 3), "k": 1, "a": 1.5, "b": True}
    given["t"] = (zeros(2, 4), (np.zeros(3, "int8"), (7,)))
    with pytest.raises((InputError, TypeMismatchError), match=re.escape(words)):
        argument_lists(MANY, {**given, name: value}, {})


@pytest.mark.parametrize(
    "type_",
    [
        relax.AnyType(),
        relax.ShapeType(ndim=2),
        relax.TensorType(None, "float32", ndim=2),
        relax.FuncType([], tensor(2)),
        ir.TupleType([tensor(2), relax.AnyType()]),
        tensor(2, dtype="int4"),
    ],
)
def test_what_has_no_known_form_cannot_be_made_up(type_):
    with pytest.raises(InputError, match=r"no value can be created for x.*; give one in inputs"):
        argument_lists(function(x=type_), None, {})


def test_a_function_cannot_be_given():
    with pytest.raises(
        TypeMismatchError, match="'x' is of type Function, and no value can be given"
    ):
        argument_lists(function(x=relax.FuncType([], tensor(2))), {"x": zeros(2)}, {})


def test_parameters_of_one_name_are_told_apart():
    params = [relax.Var("x", tensor(size)) for size in (2, 3)]
    of = relax.Function(params, relax.SeqExpr([], params[0]), params[0].ty)
    (case,) = argument_lists(of, {"x#2": zeros(3), "x": zeros(2)}, {})
    assert [array.shape for array in case] == [(2,), (3,)]


def test_a_plan_says_what_will_be_given_and_makes_nothing():
    words = {
        "x": zeros(3, 4),
        "s": (4, 3),
        "k": "random",
        "a": "zeros",
        "b": "random",
        "t": "zeros",
    }
    assert plan_inputs(MANY, words, {}, seed=2, sizes={"k": 5}).lines() == (
        "x: Tensor[(4,)] as given, 3 cases",
        "s: Shape[(4, 3)] as given",
        "k: int64 5",
        "a: float32 zeros",
        "b: bool random, seed 2",
        "t: Tuple[Tensor[(2, 4)], Tuple[Tensor[(3,), int8], Shape[(8,)]]] zeros",
    )
    assert plan_inputs(MAIN, "random", WEIGHTS).lines() == ("x: Tensor[(1, 784)] random, seed 0",)


# --- everything that is made up runs -----------------------------------------------------------

SIZES = st.sampled_from([1, 2, 3, n, m, n * 2, m + 1, n // 4, n * m])
DTYPES = ["bool", "bfloat16", "float8_e4m3fn"]
DTYPES += ["float16", "float32", "float64", "int8", "int32", "int64", "uint8", "uint64"]
TENSORS = st.builds(tensor, SIZES, SIZES, dtype=st.sampled_from(DTYPES)) | st.builds(
    tensor, dtype=st.sampled_from(DTYPES)
)
LEAVES = (
    TENSORS
    | st.builds(lambda *dims: relax.ShapeType([*dims]), SIZES, SIZES)
    | st.sampled_from([ir.PrimType("int64"), ir.PrimType("float32"), ir.PrimType("bool")])
)
TYPES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3).map(ir.TupleType))
SIGNATURES = st.lists(TYPES, max_size=4).map(
    # a size that stands in expressions alone is nothing that TVM could read from a value
    lambda types: function(**{f"p{i}": t for i, t in enumerate([*types, tensor(n, m)])})
)


@given(
    SIGNATURES,
    st.sampled_from(["random", "zeros"]),
    st.integers(0, 99),
    st.dictionaries(st.sampled_from("nmq"), st.integers(4, 9)),
)
def test_what_is_made_up_passes_the_check_and_stays_the_same(of, word, seed, sizes):
    (made,) = argument_lists(of, word, {}, seed=seed, sizes=sizes)
    names = [param.name for param in of.params]
    given = dict(zip(names, made, strict=True))
    for one, other in zip(made, argument_lists(of, given, {})[0], strict=True):
        assert one is other or not isinstance(one, np.ndarray)
    for name in names:
        (again,) = argument_lists(of, {**given, name: word}, {}, seed=seed, sizes=sizes)
        assert repr(again) == repr(made)


@pytest.mark.worker
@settings(max_examples=12)
@given(SIGNATURES, st.sampled_from(["random", "zeros"]))
def test_what_is_made_up_runs(of, word):
    module = ir.IRModule({ir.GlobalVar("main"): of.with_attr("global_symbol", "main")})
    machine = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
    (made,) = argument_lists(of, word, {})
    returned = machine["main"](*map(as_tvm, made))
    if isinstance(made[0], np.ndarray):
        assert returned.numpy().tobytes() == made[0].tobytes()


def as_tvm(argument):
    if isinstance(argument, tuple):
        return tuple(map(as_tvm, argument))
    if isinstance(argument, ShapeValue):
        return tvm.runtime.ShapeTuple(argument.dims)
    return tvm.runtime.tensor(argument) if isinstance(argument, np.ndarray) else argument
