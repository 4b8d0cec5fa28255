"""Sizes with names: which there are, what is made of them, and what follows from that."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tvm import ir, relax, tirx

from irviz.ir.sizes import evaluated, is_whole, names_of, shape_of, sizes_in, solved

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
    assert evaluated(dim, {"n": 7, "m": 3}) == value


@pytest.mark.parametrize("dim", [n, n * m, n // (m - 3), n << (m - 3), tirx.truncdiv(n, m - 3)])
def test_what_is_not_known_or_divided_by_nothing_has_no_value(dim):
    assert evaluated(dim, {"m": 3}) is None


def test_what_is_divided_by_nothing_has_no_value():
    for dim in (n // (m - 3), n % (m - 3), tirx.truncdiv(n, m - 3)):
        assert evaluated(dim, {"n": 7, "m": 3}) is None


def test_values_do_not_overflow():
    assert evaluated(n * n, {"n": 10**18}) == 10**36
    assert evaluated(n << 1, {"n": 10**30}) is None


@given(
    st.sampled_from([n * 3, n + 5, n * n, n * m, (n + m) // 2, n * 2 + m, n // 3, tirx.max(n, m)]),
    st.integers(1, 10**6),
    st.integers(1, 50),
)
def test_a_size_that_is_found_makes_it_so_and_is_the_smallest(dim, number, other):
    size = evaluated(dim, {"n": number, "m": other})
    name, found = solved(dim, size, {"m": other})
    assert name == "n"
    assert 0 < found <= number
    assert evaluated(dim, {"n": found, "m": other}) == size
    assert evaluated(dim, {"n": found - 1, "m": other}) != size or found == 1


def test_nothing_is_found_where_nothing_or_too_much_would_do():
    assert solved(n * 2, 7, {}) is None
    assert solved(n % 4, 4, {}) is None
    assert solved(n * m, 12, {}) is None
    assert solved(n * 2, 6, {"n": 3}) is None
    assert solved(n, 0, {}) == ("n", 0)


def test_types_say_their_sizes():
    inner = ir.TupleType([relax.ShapeType([m]), ir.PrimType("int64")])
    type_ = ir.TupleType([relax.TensorType([n, 2], "float32"), inner])
    assert [str(dim) for dim in sizes_in(type_)] == ["n", "T.int64(2)", "m"]
    assert shape_of(relax.TensorType(None, "float32", ndim=2)) is None
    assert shape_of(relax.AnyType()) is None
    assert names_of(n * m + n) == {"n", "m"}
    assert [is_whole(ir.PrimType(dtype)) for dtype in ("uint8", "bool", "float32")] == [
        *(True, False, False)
    ]
