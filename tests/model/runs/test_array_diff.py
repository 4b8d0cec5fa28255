"""Two arrays are measured number by number, as an obvious count would."""

import math
import tracemalloc
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from irviz.model.runs.array_diff import (
    Tolerance,
    Verdict,
    compare_arrays,
    default_tolerance,
    is_numeric,
)

inf, nan = math.inf, math.nan
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = [np.dtype("float16"), np.dtype("float32"), np.dtype("float64"), BFLOAT16]
SPECIAL = [0.0, -0.0, inf, -inf, nan, 1.0, -1.0, 5e-324, 1e-45, 6e-8, 1e-40, 65504.0, 3e38, -1e308]


@st.composite
def pairs(draw):
    """Return two arrays of one dtype: numbers of all kinds, many of them alike."""
    dtype = draw(st.sampled_from(FLOATS))
    numbers = st.one_of(st.sampled_from(SPECIAL), st.floats(-4, 4), st.floats())
    one = draw(st.lists(numbers, max_size=6))
    other = [draw(st.one_of(st.just(x), numbers)) for x in one]
    with np.errstate(all="ignore"):
        return np.array(one).astype(dtype), np.array(other).astype(dtype)


def delta(a, b):
    """Return |a - b| as a reader would reckon it."""
    a, b = float(a), float(b)
    if a == b or (a != a and b != b):
        return 0
    if not (math.isfinite(a) and math.isfinite(b)):
        return inf
    return abs(Fraction(a) - Fraction(b))


@given(pair=pairs())
def test_every_measure_is_that_of_a_count_one_by_one(pair):
    array, reference = pair
    limits = Tolerance(0.25, 0.5)
    found = compare_arrays(array, reference, limits)
    deltas = [delta(a, b) for a, b in zip(array, reference, strict=True)]
    off = [(d, float(b)) for d, b in zip(deltas, reference, strict=True) if d]
    past = [d for d, b in off if d == inf or _as_float(d) > 0.5 + 0.25 * abs(b)]  # in float64
    largest = max(deltas, default=0)
    ratios = [inf if inf in (d, abs(b)) or b != b else d / abs(Fraction(b)) for d, b in off if b]
    nothing = None if off else 0
    assert (found.size, found.differing) == (array.size, len(off))
    assert found.past == len(past)
    assert found.max_abs == _as_float(largest)
    assert found.worst == (_first(deltas, found.max_abs) if off else None)
    ratio = _as_float(max(ratios, default=nothing))
    assert found.max_relative == (ratio and pytest.approx(ratio, rel=1e-12))
    assert found.is_equal == (array.tobytes() == reference.tobytes())


def _as_float(number):
    try:
        return None if number is None else float(number)
    except OverflowError:  # as it is in float64
        return inf


def _first(deltas, largest):
    return next(at for at, one in enumerate(deltas) if _as_float(one) == largest)


def steps(a, b, most):
    """Count the floats from one to the other by going there, None where that is too far."""
    count = 0
    with np.errstate(all="ignore"):
        while a != b:
            if count == most:
                return None
            a, count = np.nextafter(a, b), count + 1
    return count


@given(
    dtype=st.sampled_from(FLOATS),
    start=st.one_of(st.sampled_from(SPECIAL), st.floats(allow_nan=False)),
    walk=st.integers(0, 40),
    aim=st.sampled_from([inf, -inf, 0.0]),
)
def test_steps_are_those_to_the_next_float_across_zero_and_up_to_infinity(dtype, start, walk, aim):
    with np.errstate(all="ignore"):
        first, aim = np.array([start]).astype(dtype), np.array([aim]).astype(dtype)
        other = first.copy()
        for _ in range(walk):
            other = np.nextafter(other, aim)
    counted = steps(first[0], other[0], 40) if not np.isnan(first[0]) else 0
    assert compare_arrays(first, other).max_ulp == counted
    assert compare_arrays(other, first).max_ulp == counted


@pytest.mark.parametrize(
    ("dtype", "array", "reference", "expected"),
    [
        ("float32", [0.0], [-0.0], 0),
        ("float32", [nan], [nan], 0),
        ("float32", [1e-45], [-1e-45], 2),
        ("float32", [inf], [3.4028235e38], 1),
        ("float32", [inf], [-inf], 2 * 0x7F800000),
        ("float64", [inf], [-inf], 2 * 0x7FF0000000000000),
        ("float64", [5e-324], [0.0], 1),
        ("float16", [1.0], [2.0], 1024),
        (BFLOAT16, [1.0], [2.0], 128),
        ("float32", [nan], [1.0], None),
        ("float32", [nan, 1.0], [1.0, 2.0], 1 << 23),
        ("int32", [1], [2], None),
        ("bool", [True], [True], None),
    ],
)
def test_steps_are_exact_where_there_are_any(dtype, array, reference, expected):
    found = compare_arrays(np.array(array, dtype), np.array(reference, dtype))
    assert found.max_ulp == expected


def test_another_dtype_or_another_order_of_bytes_has_no_steps():
    one = np.array([1.0], "float32")
    assert compare_arrays(one, one.astype("float64")).max_ulp is None
    swapped = one.astype(">f4")
    assert compare_arrays(swapped, swapped).max_ulp is None
    assert compare_arrays(swapped, one).verdict is Verdict.CLOSE


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_large_whole_numbers_that_differ_by_one_do_differ(dtype):
    large = np.iinfo(dtype).max
    found = compare_arrays(np.array([large], dtype), np.array([large - 1], dtype))
    assert (found.differing, found.max_abs) == (1, 1)
    ends = np.iinfo(dtype)
    found = compare_arrays(np.array([ends.min], dtype), np.array([ends.max], dtype))
    assert found.max_abs == pytest.approx(2.0**64)


@pytest.mark.parametrize(
    ("dtypes", "limit"),
    [
        (["float32"], 1e-4),
        (["float64"], 1e-4),
        (["int8"], 1e-4),
        (["bool"], 1e-4),
        ([], 1e-4),
        (["float16"], 8 * 2**-10),
        ([BFLOAT16], 8 * 2**-7),
        (["float32", "float16"], 8 * 2**-10),
        ([ml_dtypes.float8_e5m2], 2.0),
        ([ml_dtypes.int4], 1e-4),
    ],
)
def test_coarse_dtypes_have_a_wider_tolerance(dtypes, limit):
    assert default_tolerance(*map(np.dtype, dtypes)) == Tolerance(limit, limit)


def test_the_tolerance_of_the_dtypes_is_taken_by_default():
    near = np.array([1.0 + 2**-9])
    assert (
        compare_arrays(near.astype("float16"), np.array([1.0], "float16")).verdict is Verdict.CLOSE
    )
    assert compare_arrays(near.astype("float32"), np.array([1.0], "float32")).past == 1


def test_numbers_are_what_numpy_and_its_extensions_count_as_such():
    for dtype in ("float16", "int64", "uint8", "bool", BFLOAT16, ml_dtypes.int4):
        assert is_numeric(np.dtype(dtype))
    for dtype in ("U3", "S3", "O", "complex64", "M8[s]", "V4", [("a", "f4")]):
        assert not is_numeric(np.dtype(dtype))


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (2, 3), (300, 300, 2)])
def test_arrays_of_every_shape_are_measured_whole(shape):
    array = np.zeros(shape, "float32")
    assert compare_arrays(array, array.copy()).verdict is Verdict.EQUAL
    if array.size:
        other = array.copy()
        other.reshape(-1)[-1] = 2
        found = compare_arrays(array, other)
        assert (found.worst, found.max_abs, found.differing) == (array.size - 1, 2, 1)


def test_what_is_not_contiguous_is_measured_in_the_order_of_its_indices():
    array = np.arange(12.0).reshape(3, 4).T
    other = array.copy()
    other[1, 2] += 5
    assert compare_arrays(array, other).worst == 1 * 3 + 2


def test_other_shapes_are_an_error_that_names_both():
    with pytest.raises(ValueError, match=r"shapes \(2,\) and \(3,\) .* of the same shape"):
        compare_arrays(np.zeros(2), np.zeros(3))


def test_large_arrays_are_not_copied():
    array = np.zeros(1 << 22, "float32")
    other = array + np.float32(1e-6)
    tracemalloc.start()
    found = compare_arrays(array, other)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.differing == array.size
    assert most < array.nbytes / 2


@settings(max_examples=50)
@given(array=hnp.arrays("float32", st.integers(0, 9), elements=st.floats(width=32)))
def test_an_array_is_equal_to_itself(array):
    found = compare_arrays(array, array.copy())
    assert (found.verdict, found.differing, found.max_ulp) == (Verdict.EQUAL, 0, 0)


NUMERIC = ["bool", "int8", "uint8", "int16", "uint32", "int64", "uint64", *FLOATS]
NUMERIC += [ml_dtypes.int4, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]


@pytest.mark.parametrize("dtype", [np.dtype(one) for one in NUMERIC], ids=str)
def test_the_same_bits_are_equal_in_every_dtype_and_others_are_not(dtype):
    array = np.array([0, 1, 1, 0, 1]).astype(dtype)
    assert compare_arrays(array, array.copy()).verdict is Verdict.EQUAL
    other = array.copy()
    other[3] = 1
    assert compare_arrays(array, other).verdict is not Verdict.EQUAL
