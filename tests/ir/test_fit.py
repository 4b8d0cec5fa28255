"""An array fits a parameter or is refused with what would have fitted."""

import numpy as np
import pytest
from tvm import ir, relax, tirx

from irviz.ir.fit import MisfitError, check_fit

n, m = tirx.Var("n", "int64"), tirx.Var("m", "int64")


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
    check_fit("x", array, type_, {})


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
            zeros(2),
            ir.PrimType("int64"),
            "'x' is of type int64, and only a tensor can be given for it",
        ),
    ],
)
def test_a_misfit_says_what_was_given_and_what_is_wanted(array, type_, words):
    with pytest.raises(MisfitError) as caught:
        check_fit("x", array, type_, {})
    assert str(caught.value) == words


def test_a_size_is_the_same_for_all_arrays():
    dims = {}
    check_fit("x", zeros(1, 784), relax.TensorType([1, m], "float32"), dims)
    check_fit("w", zeros(128, 784), relax.TensorType([n, m], "float32"), dims)
    assert dims == {"m": 784, "n": 128}
    with pytest.raises(MisfitError, match=r"wants \(n,\), and the others make m = 784, n = 128"):
        check_fit("b", zeros(10), relax.TensorType([n], "float32"), dims)
