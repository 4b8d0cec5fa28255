"""A value has its parameter's type, or is refused with the type that it needs."""

import numpy as np
import pytest
from tvm import ir, relax, tirx

from irviz.ir.parameter_values import (
    ShapeValue,
    TypeMismatchError,
    check_argument,
    check_tensor,
)

n, m = tirx.Var("n", "int64"), tirx.Var("m", "int64")
NUMBERS = ir.TupleType([ir.PrimType("int64")])
NUMBERS_TWICE = ir.TupleType([ir.PrimType("int64")] * 2)


def zeros(*shape, dtype="float32"):
    return np.zeros(shape, dtype)


@pytest.mark.parametrize(
    ("array", "type_"),
    [
        (zeros(1, 4), relax.TensorType([1, 4], "float32")),
        (zeros(), relax.TensorType([], "float32")),
        (zeros(2, dtype="bool"), relax.TensorType([2], "bool")),
        (zeros(2, 3), relax.TensorType(None, "float32", ndim=2)),
        (zeros(2, 3), relax.TensorType(None, "float32")),
        (zeros(2, dtype="int8"), relax.TensorType([2], None)),
        (zeros(3, 3), relax.TensorType([n, n], "float32")),
        (zeros(3, 5), relax.TensorType([n, n * 2 - 1], "float32")),
    ],
)
def test_an_array_fits_its_type(array, type_):
    check_tensor("x", array, type_, {})


@pytest.mark.parametrize(
    ("array", "type_", "words"),
    [
        (
            zeros(1, 4),
            relax.TensorType([1, 5], "float32"),
            "'x' has shape (1, 4), the function wants (1, 5)",
        ),
        (
            zeros(4),
            relax.TensorType([1, 4], "float32"),
            "'x' has shape (4,), the function wants (1, 4)",
        ),
        (
            zeros(1),
            relax.TensorType([1, 4], "float32"),
            "'x' has shape (1,), the function wants (1, 4)",
        ),
        (
            zeros(1, 4, 1),
            relax.TensorType([1, 4], "float32"),
            "'x' has shape (1, 4, 1), the function wants (1, 4)",
        ),
        (
            zeros(1, 4, dtype="float64"),
            relax.TensorType([1, 4], "float32"),
            "'x' has dtype float64, the function wants float32: give x.astype('float32')",
        ),
        (
            zeros(2, dtype=">f4"),
            relax.TensorType([2], "float32"),
            "'x' has dtype >f4, the function wants float32: give x.astype('float32')",
        ),
        (
            np.array([None]),
            relax.TensorType([1], "float4_e2m1fn"),
            "'x' has dtype object, the function wants float4_e2m1fn: "
            "give x.astype('float4_e2m1fn')",
        ),
        (
            zeros(2),
            relax.TensorType(None, "float32", ndim=2),
            "'x' has shape (2,), the function wants 2 dimensions",
        ),
        (
            zeros(2, 3),
            relax.TensorType([n, n], "float32"),
            "'x' has shape (2, 3), the function wants (n, n), and the others make n = 2",
        ),
        (
            zeros(3, 6),
            relax.TensorType([n, n * 2 - 1], "float32"),
            "'x' has shape (3, 6), the function wants (n, n * 2 - 1), and the others make n = 3",
        ),
        (
            zeros(6, 3),
            relax.TensorType([n * 2 - 1, n], "float32"),
            "'x' has shape (6, 3), the function wants (n * 2 - 1, n), and the others make n = 3",
        ),
        (
            zeros(2),
            ir.PrimType("int64"),
            "'x' is of type int64, and only a tensor can be given for it",
        ),
    ],
)
def test_a_misfit_says_what_was_given_and_what_is_wanted(array, type_, words):
    with pytest.raises(TypeMismatchError) as caught:
        check_tensor("x", array, type_, {})
    assert str(caught.value) == words


def test_a_size_is_the_same_for_all_arrays():
    dims = {}
    check_tensor("x", zeros(1, 784), relax.TensorType([1, m], "float32"), dims)
    check_tensor("w", zeros(128, 784), relax.TensorType([n, m], "float32"), dims)
    assert dims == {"m": 784, "n": 128}
    with pytest.raises(
        TypeMismatchError, match=r"wants \(n,\), and the others make m = 784, n = 128"
    ):
        check_tensor("b", zeros(10), relax.TensorType([n], "float32"), dims)


def test_an_expression_of_a_size_that_is_not_known_yet_may_be_anything():
    dims = {}
    check_tensor("x", zeros(5), relax.TensorType([n * 2], "float32"), dims)
    assert dims == {}


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        (zeros(2, 3), relax.TensorType([n, 3], "float32")),
        (ShapeValue((2, 3)), relax.ShapeType([n, 3])),
        (ShapeValue((2, 3)), relax.ShapeType(ndim=2)),
        (ShapeValue(()), relax.ShapeType()),
        (-5, ir.PrimType("int32")),
        (255, ir.PrimType("uint8")),
        (1, ir.PrimType("float32")),
        (float("nan"), ir.PrimType("float32")),
        (False, ir.PrimType("bool")),
        ((), ir.TupleType([])),
        ((zeros(4), (7,)), ir.TupleType([relax.TensorType([4], "float32"), NUMBERS])),
        (zeros(4), relax.AnyType()),
        (5, relax.AnyType()),
    ],
)
def test_a_value_of_any_sort_fits_its_type(value, type_):
    check_argument("x", value, type_, {})


@pytest.mark.parametrize(
    ("value", "type_", "words"),
    [
        (3, relax.TensorType([2], "float32"), "'x' is 3, the function wants Tensor[(2,)]: give an"),
        ((2, 3), relax.ShapeType([n, 3]), "'x' is (2, 3), the function wants Shape[(n, 3)]"),
        (
            ShapeValue((2, 4)),
            relax.ShapeType([n, 3]),
            "'x' has shape (2, 4), the function wants (n, 3)",
        ),
        (ShapeValue((2,)), relax.ShapeType(ndim=3), "'x' has 1 dimensions, the function wants 3"),
        (2**31, ir.PrimType("int32"), "the function wants int32: give a number from -2147483648"),
        (
            -1,
            ir.PrimType("uint8"),
            "'x' is -1, the function wants uint8: give a number from 0 to 255",
        ),
        (1.0, ir.PrimType("int64"), "'x' is 1.0, the function wants int64: give a whole number"),
        (zeros(2), ir.PrimType("float32"), "'x' is an array of shape (2,), the function wants"),
        (1, ir.PrimType("bool"), "'x' is 1, the function wants bool: give True or False"),
        (
            (1,),
            NUMBERS_TWICE,
            "'x' is a tuple of 1, the function wants Tuple[int64, int64]: give a",
        ),
        ((1, "a"), NUMBERS_TWICE, "'x[1]' is 'a', the function wants int64: give a whole number"),
        (
            zeros(2),
            relax.FuncType([], NUMBERS),
            "'x' is of type Function, and no value can be given",
        ),
    ],
)
def test_a_value_of_the_wrong_sort_is_told_what_would_be_right(value, type_, words):
    with pytest.raises(TypeMismatchError) as caught:
        check_argument("x", value, type_, {})
    assert words in str(caught.value)


def test_a_whole_number_is_a_size_by_its_name():
    dims = {}
    check_argument("n", 4, ir.PrimType("int64"), dims)
    check_tensor("y", zeros(4), relax.TensorType([n], "float32"), dims)
    with pytest.raises(
        TypeMismatchError, match="'n' is 5, the function wants int64: give 4, as the oth"
    ):
        check_argument("n", 5, ir.PrimType("int64"), dims)
