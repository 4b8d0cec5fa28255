"""Symbolic sizes are listed, evaluated and solved for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tvm import ir, relax, tirx

from irviz.ir.symbolic_shapes import (
    dim_names,
    evaluate_dim,
    is_integer,
    parameter_dims,
    solve_dim,
    type_dims,
)

n, m = tirx.Var("n", "int64"), tirx.Var("m", "int64")


@pytest.mark.parametrize(
    ("dim", "value"),
    [
        (tirx.IntImm("int64", 5), 5),
        (n, 7),
        (n * 2 - m, 11),
        (n // 4 + n % 4, 4),
        (tirx.max(n, m) - tirx.min(n, m), 4),
        (tirx.ceildiv(n, m), 3),
        (tirx.truncdiv(n, m), 2),
        (tirx.if_then_else(n > 4, m, n), 3),
        (n << 1, 14),
        (n * n * n * n, 7**4),
    ],
)
def test_an_expression_has_a_value_when_its_sizes_have(dim, value):
    assert evaluate_dim(dim, {"n": 7, "m": 3}) == value


@pytest.mark.parametrize("dim", [n, n * m, n // (m - 3), n << (m - 3), tirx.truncdiv(n, m - 3)])
def test_what_is_not_known_or_divided_by_nothing_has_no_value(dim):
    assert evaluate_dim(dim, {"m": 3}) is None


def test_what_is_divided_by_nothing_has_no_value():
    for dim in (n // (m - 3), n % (m - 3), tirx.truncdiv(n, m - 3)):
        assert evaluate_dim(dim, {"n": 7, "m": 3}) is None


def test_values_do_not_overflow():
    assert evaluate_dim(n * n, {"n": 10**18}) == 10**36
    assert evaluate_dim(n << 1, {"n": 10**30}) is None


@given(
    st.sampled_from([n * 3, n + 5, n * n, n * m, (n + m) // 2, n * 2 + m, n // 3, tirx.max(n, m)]),
    st.integers(1, 10**6),
    st.integers(1, 50),
)
def test_a_size_that_is_found_makes_it_so_and_is_the_smallest(dim, number, other):
    size = evaluate_dim(dim, {"n": number, "m": other})
    name, found = solve_dim(dim, size, {"m": other})
    assert name == "n"
    assert 0 < found <= number
    assert evaluate_dim(dim, {"n": found, "m": other}) == size
    assert evaluate_dim(dim, {"n": found - 1, "m": other}) != size or found == 1


def test_nothing_is_found_where_nothing_or_too_much_would_do():
    assert solve_dim(n * 2, 7, {}) is None
    assert solve_dim(n % 4, 4, {}) is None
    assert solve_dim(n * m, 12, {}) is None
    assert solve_dim(n * 2, 6, {"n": 3}) is None
    assert solve_dim(n, 0, {}) == ("n", 0)


def test_types_say_their_sizes():
    inner = ir.TupleType([relax.ShapeType([m]), ir.PrimType("int64")])
    type_ = ir.TupleType([relax.TensorType([n, 2], "float32"), inner])
    assert [str(dim) for dim in parameter_dims("x", type_)] == ["n", "T.int64(2)", "m"]
    assert type_dims(relax.TensorType(None, "float32", ndim=2)) is None
    assert type_dims(relax.AnyType()) is None
    assert dim_names(n * m + n) == {"n", "m"}
    assert [is_integer(ir.PrimType(dtype)) for dtype in ("uint8", "bool", "float32")] == [
        *(True, False, False)
    ]
