"""A summary says what is in an array, whatever is in it, and its digest is that of its bytes."""

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from irviz.model.runs.array_diff import summarise
from irviz.model.runs.execution_trace import NodeValue

LARGEST = float(np.finfo(np.float64).max)
NARROW = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float4_e2m1fn", "int4"]


def facts(array):
    one = summarise(array)
    return one.minimum, one.maximum, one.mean, one.std, one.nans, one.infs


# --- what is computed --------------------------------------------------------------------------


def test_the_numbers_are_those_of_the_array():
    array = np.array([[1.0, 2.0], [3.0, 6.0]], dtype=np.float32)
    one = summarise(array)
    assert (one.shape, one.dtype) == ((2, 2), "float32")
    assert facts(array) == (1, 6, 3, math.sqrt(3.5), 0, 0)
    assert one.is_finite
    assert one.largest == 6


def test_of_a_large_array_some_numbers_are_taken_but_none_that_is_not_finite_is_missed():
    array = np.zeros(1001, np.float32)
    array[[1, 3]] = -4, 7
    one = summarise(array, 100)
    assert (one.minimum, one.maximum, one.step, one.zeros) == (-4, 7, 11, 1)
    array[[5, 9]] = np.nan, np.inf
    assert (summarise(array, 100).nans, summarise(array, 100).infs) == (1, 1)
    assert not NodeValue((one,)).is_same(NodeValue((one,)))  # more is not known


def test_nans_and_infinities_are_counted_and_left_out():
    array = np.array([np.nan, np.inf, -np.inf, np.nan, 1, 3], dtype=np.float32)
    assert facts(array) == (1, 3, 2, 1, 2, 2)
    assert not summarise(array).is_finite
    assert sum(summarise(array).counts) == 2


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_where_nothing_is_finite_there_is_no_range(value):
    one = summarise(np.full((2, 3), value))
    assert facts(np.full((2, 3), value))[:4] == (None, None, None, None)
    assert one.nans + one.infs == 6
    assert (one.counts, one.edges, one.largest, one.is_finite) == ((), (), None, False)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 4, 2)])
def test_an_empty_array_has_a_shape_and_nothing_else(shape):
    one = summarise(np.zeros(shape, np.float32))
    assert (one.shape, one.nbytes, one.counts, one.largest) == (shape, 0, (), None)
    assert one.is_finite


@pytest.mark.parametrize("scalar", [np.array(2.5), np.float32(2.5), np.array(2.5, np.float16)])
def test_a_scalar_is_one_number(scalar):
    assert summarise(scalar).shape == ()
    assert facts(scalar) == (2.5, 2.5, 2.5, 0, 0, 0)
    assert sum(summarise(scalar).counts) == 1


@pytest.mark.parametrize(
    ("array", "low", "high", "mean"),
    [
        (np.array([True, False, True, True]), 0, 1, 0.75),
        (np.array([-128, 127], np.int8), -128, 127, -0.5),
        (np.array([65504, -65504], np.float16), -65504, 65504, 0),
        (np.array([2**64 - 1, 2**64 - 1], np.uint64), 2.0**64, 2.0**64, 2.0**64),
        (np.array([-(2**63), 0], np.int64), -(2.0**63), 0, -(2.0**62)),
        (np.full(4_000, 255, np.uint8), 255, 255, 255),
    ],
)
def test_narrow_and_whole_numbers_do_not_run_over(array, low, high, mean):
    assert facts(array)[:3] == (low, high, mean)


@pytest.mark.parametrize("dtype", NARROW)
def test_the_dtypes_of_small_models_are_numbers(dtype):
    array = np.array([1, 2, 2, 4]).astype(getattr(ml_dtypes, dtype))
    one = summarise(array)
    assert (one.dtype, one.nbytes) == (dtype, array.nbytes)
    assert one.minimum == 1
    assert sum(one.counts) == 4


def test_a_nan_of_a_narrow_dtype_is_counted():
    array = np.array([np.nan, np.inf, 1]).astype(ml_dtypes.bfloat16)
    assert facts(array) == (1, 1, 1, 0, 1, 1)


@pytest.mark.parametrize(
    ("bits", "dtype"), [(0x7D01, np.float16), (0x7FA00000, np.float32), (0x7FA0, "bfloat16")]
)
def test_a_signalling_nan_is_a_nan_and_no_warning(bits, dtype):
    dtype = np.dtype(getattr(ml_dtypes, dtype) if isinstance(dtype, str) else dtype)
    array = np.array([bits], f"uint{8 * dtype.itemsize}").view(dtype)
    assert summarise(array).nans == 1


def test_a_constant_has_exactly_its_mean_and_no_deviation():
    array = np.full(1000, 0.1)
    assert facts(array)[:4] == (0.1, 0.1, 0.1, 0)


@pytest.mark.parametrize(
    ("array", "mean", "std"),
    [
        (np.array([1.7e308, -1.7e308]), 0, 1.7e308),
        (np.array([LARGEST, LARGEST]), LARGEST, 0),
        (np.array([LARGEST, -LARGEST]), 0, LARGEST),
        (np.array([1e200, 3e200]), 2e200, 1e200),
        (np.array([1e-200, 3e-200]), 2e-200, 1e-200),
        (np.array([1e-310, 3e-310]), 2e-310, 1e-310),
    ],
)
def test_numbers_at_the_end_of_the_range_have_mean_and_deviation(array, mean, std):
    one = summarise(array)
    assert one.mean == pytest.approx(mean, rel=1e-9)
    assert one.std == pytest.approx(std, rel=1e-9, abs=0)
    assert sum(one.counts) == 2


@given(
    arrays.arrays(
        st.sampled_from([np.float16, np.float32, np.float64, np.int8, np.uint64, np.bool_]),
        arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5),
    )
)
@example(np.array([LARGEST, -LARGEST] * 3))
@example(np.array([LARGEST] * 5 + [np.nextafter(LARGEST, 0)]))
@example(np.array([0.2697867137638703, -0.2697867137638703] * 34))
@example(np.array([5e-324, 0.0]))
@example(np.array([1.0, np.nextafter(1.0, 2.0)]))
@example(np.array([-1e-323, 1e300]))
def test_whatever_is_in_an_array_its_summary_holds_together(array):
    one = summarise(array)
    finite = int(np.isfinite(array).sum())
    assert sum(one.counts) == finite == array.size - one.nans - one.infs
    assert one.nbytes == array.nbytes
    if finite:
        assert -LARGEST <= one.minimum <= one.mean <= one.maximum <= LARGEST
        assert 0 <= one.std <= one.largest
        assert len(one.edges) == len(one.counts) + 1
        assert one.edges[0] <= one.minimum
        assert one.maximum <= one.edges[-1]
        assert all(a < b for a, b in zip(one.edges, one.edges[1:], strict=False))


def test_the_histogram_counts_between_its_edges():
    one = summarise(np.array([0.0, 0.0, 1.0, 24.0]))
    assert one.edges == tuple(range(25))
    assert (one.counts[0], one.counts[1], one.counts[-1], sum(one.counts)) == (2, 1, 1, 4)


@pytest.mark.parametrize(
    "array",
    [
        np.array([1j]),
        np.array([object()]),
        np.array(["a"]),
        np.array(["2020-01-01"], "datetime64[D]"),
        np.zeros(2, "V3"),
        np.zeros(2, [("a", "f4")]),
    ],
)
def test_what_is_no_real_number_is_refused(array):
    with pytest.raises(ValueError, match="has no summary: give one of real numbers or bools"):
        summarise(array)


# --- bytes and digests -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("array", "nbytes"),
    [
        (np.zeros((3, 5), np.float32), 60),
        (np.zeros((3, 5), np.float16), 30),
        (np.zeros((3, 5), np.bool_), 15),
        (np.zeros(7, np.int64), 56),
        (np.array(1, np.int8), 1),
        (np.zeros((4, 6))[::2, ::3], 32),
        (np.broadcast_to(np.float32(1), (4, 5)), 80),
        (np.zeros(3, ml_dtypes.bfloat16), 6),
    ],
)
def test_bytes_are_those_of_the_elements_however_they_are_stored(array, nbytes):
    assert summarise(array).nbytes == nbytes


@pytest.mark.parametrize(
    ("array", "digest"),
    [
        (np.arange(6, dtype=np.float32).reshape(2, 3), "d5e4bc4b1c2f67097ac0a7fa724e44f4"),
        (np.array(True), "8eae43e5675cd875540f3ca9f8244304"),
        (np.zeros((0, 3), np.int8), "06bd9c27fb7d0191cb4f1bf3b7e8febe"),
        (np.arange(3).astype(ml_dtypes.bfloat16), "e6c81acf83a7d87412d9ecaeef30ec23"),
    ],
)
def test_a_digest_stays_what_it_is_from_one_process_to_another(array, digest):
    assert summarise(array).digest.hex() == digest


def test_a_digest_is_equal_for_equal_values_however_they_are_stored():
    array = np.arange(24.0).reshape(4, 6)
    views = [array[::2, ::-3], array.T, np.asfortranarray(array), np.broadcast_to(array[0], (3, 6))]
    for view in views:
        assert summarise(view) == summarise(view.copy(order="C"))


def test_what_a_summary_describes_is_not_changed():
    array = np.array([3.0, np.nan, -1.0])
    array.setflags(write=False)
    before = array.tobytes()
    summarise(array)
    assert array.tobytes() == before


def test_a_digest_differs_where_bytes_shape_or_dtype_differ():
    array = np.arange(6, dtype=np.float32)
    others = [
        array.reshape(2, 3),
        array.reshape(1, 6),
        array.view(np.int32),
        array.astype(np.float64),
        np.array([0, 1, 2, 3, 4, 6], np.float32),
        np.array([-0.0, 1, 2, 3, 4, 5], np.float32),
        np.zeros(0, np.float32),
        np.zeros((0, 6), np.float32),
    ]
    digests = [summarise(one).digest for one in (array, *others)]
    assert len(set(digests)) == len(digests)


def test_the_mean_is_that_of_all_numbers_where_only_some_are_taken_for_the_rest():
    array = np.arange(1000, dtype=np.float32) % 2  # each second one is 0
    summary = summarise(array, most=500)
    assert summary.step == 2
    assert summary.mean == 0.5
    assert summary.std == 0.0
