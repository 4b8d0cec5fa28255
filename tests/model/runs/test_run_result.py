"""Two runs compare as a reader of numbers would compare them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from irviz.model.runs.array_diff import scaled_tolerance
from irviz.model.runs.execution_trace import Trace
from irviz.model.runs.run_result import (
    OriginVerdict,
    RunResult,
    Tolerance,
    Verdict,
    compare_runs,
)

inf, nan = math.inf, math.nan


def run(*outputs, seconds=1.0, labels=None, dtype="float32"):
    arrays = tuple(np.asarray(output, dtype) for output in outputs)
    return RunResult(arrays, seconds, labels)


def scaled(result, reference):
    return [scaled_tolerance(*pair) for pair in zip(result.outputs, reference.outputs, strict=True)]


def scores(*classes, count=10):
    rows = np.zeros((len(classes), 1, count), "float32")
    rows[np.arange(len(classes)), 0, list(classes)] = 1
    return rows


@pytest.mark.parametrize(
    ("numbers", "reference", "verdict", "difference"),
    [
        ([1.0, 2.0], [1.0, 2.0], Verdict.EQUAL, 0),
        ([1.0, 2.00001], [1.0, 2.0], Verdict.CLOSE, 1e-5),
        ([1.0, 3.0], [1.0, 2.0], Verdict.DIFFERENT, 1),
        ([0.0], [-0.0], Verdict.CLOSE, 0),
        ([nan, inf, -inf], [nan, inf, -inf], Verdict.EQUAL, 0),
        ([nan, 1.00001], [nan, 1.0], Verdict.CLOSE, 1e-5),
        ([nan], [1.0], Verdict.DIFFERENT, inf),
        ([1.0], [nan], Verdict.DIFFERENT, inf),
        ([inf], [1.0], Verdict.DIFFERENT, inf),
        ([inf], [-inf], Verdict.DIFFERENT, inf),
        ([nan], [inf], Verdict.DIFFERENT, inf),
        ([3e38], [-3e38], Verdict.DIFFERENT, 6e38),
        ([], [], Verdict.EQUAL, 0),
    ],
)
def test_numbers_are_equal_close_or_different(numbers, reference, verdict, difference):
    found = compare_runs(run(numbers), run(reference))
    assert found.verdict is verdict
    assert found.max_abs_diff == pytest.approx(difference, rel=0.05)
    assert found.reason == ""


def test_float16_and_float64_may_lie_far_apart():
    for dtype, number in (("float16", 60000), ("float64", 1.7e308)):
        found = compare_runs(run([number], dtype=dtype), run([-number], dtype=dtype))
        assert found.verdict is Verdict.DIFFERENT


def test_tolerance_is_measured_from_the_reference():
    limits = Tolerance(relative=0.5, absolute=0.0)
    assert compare_runs(run([1.0]), run([2.0]), limits).verdict is Verdict.CLOSE
    assert compare_runs(run([2.0]), run([1.0]), limits).verdict is Verdict.DIFFERENT
    near = Tolerance(relative=0.0, absolute=1.0)
    assert compare_runs(run([2.0]), run([1.0]), near).verdict is Verdict.CLOSE
    assert compare_runs(run([2.1]), run([1.0]), near).verdict is Verdict.DIFFERENT


def test_the_default_tolerance_is_a_ten_thousandth():
    assert compare_runs(run([1.0001]), run([1.0])).verdict is Verdict.CLOSE
    assert compare_runs(run([1.0003]), run([1.0])).verdict is Verdict.DIFFERENT
    assert compare_runs(run([0.00005]), run([0.0])).verdict is Verdict.CLOSE


def test_one_output_out_of_two_decides():
    found = compare_runs(run([1.0], [5.0]), run([1.0], [7.0]))
    assert (found.verdict, found.max_abs_diff) == (Verdict.DIFFERENT, 2)
    assert compare_runs(run([1.0], [5.0]), run([1.0], [5.0])).verdict is Verdict.EQUAL


def test_equal_numbers_of_another_dtype_are_not_the_same_bytes():
    assert compare_runs(run([1, 2], dtype="int64"), run([1, 2])).verdict is Verdict.CLOSE
    zeros = compare_runs(run([0, 0], dtype="int32"), run([0, 0]))
    assert (zeros.verdict, zeros.max_abs_diff) == (Verdict.CLOSE, 0)
    truth = compare_runs(run([True], dtype="bool"), run([False], dtype="bool"))
    assert (truth.verdict, truth.max_abs_diff) == (Verdict.DIFFERENT, 1)
    counts = compare_runs(run([1], dtype="uint8"), run([2], dtype="uint8"))
    assert (counts.verdict, counts.max_abs_diff) == (Verdict.DIFFERENT, 1)


@pytest.mark.parametrize(
    ("result", "reference", "reason"),
    [
        (
            run([[1.0, 2.0]]),
            run([[1.0]]),
            "the outputs have shapes [(1, 2)], the reference has [(1, 1)]",
        ),
        (
            run([1.0], [2.0]),
            run([1.0]),
            "the outputs have shapes [(1,), (1,)], the reference has [(1,)]",
        ),
    ],
)
def test_outputs_of_other_shapes_cannot_be_compared(result, reference, reason):
    found = compare_runs(result, reference)
    assert found.verdict is Verdict.INCOMPARABLE
    assert math.isnan(found.max_abs_diff)
    assert found.reason == reason
    assert found.same_classes is None


def test_strings_cannot_be_compared():
    found = compare_runs(run(["a"], dtype="U1"), run(["b"], dtype="U1"))
    assert found.verdict is Verdict.INCOMPARABLE
    assert found.reason == "an output is of dtype <U1, and only numbers are compared"


def test_time_is_how_many_times_as_fast_as_the_reference():
    assert compare_runs(run([1.0], seconds=1.0), run([1.0], seconds=3.0)).time_ratio == 3
    assert math.isnan(compare_runs(run([1.0], seconds=0.0), run([1.0])).time_ratio)


def test_classes_are_the_largest_scores_of_rows():
    result = run(scores(3, 0, 9))
    assert result.classes.tolist() == [3, 0, 9]
    assert result.cases == 3
    assert compare_runs(result, run(scores(3, 1, 9))).same_classes == 2


@pytest.mark.parametrize("shape", [(3,), (3, 4), (3, 2, 4), (3, 1, 1), (3, 1, 4, 4)])
def test_what_is_no_row_of_scores_has_no_classes(shape):
    result = run(np.zeros(shape), labels=np.zeros(3, "int64"))
    assert result.classes is None
    assert result.correct is None
    assert compare_runs(result, result).same_classes is None


def test_right_classes_are_counted_where_the_labels_are_known():
    labels = np.array([3, 1, 9])
    assert run(scores(3, 0, 9), labels=labels).correct == 2
    assert run(scores(3, 0, 9)).correct is None


def test_a_run_without_outputs_compares_too():
    nothing = RunResult((), 1.0)
    assert (nothing.cases, nothing.classes) == (0, None)
    assert compare_runs(nothing, nothing).verdict is Verdict.EQUAL


ARRAYS = hnp.arrays(
    st.sampled_from(["float32", "float16", "int32", "uint8", "bool"]),
    hnp.array_shapes(max_dims=3, max_side=3),
)


@given(array=ARRAYS)
def test_a_run_is_equal_to_itself_whatever_it_holds(array):
    found = compare_runs(RunResult((array,), 1.0), RunResult((array.copy(),), 1.0))
    assert (found.verdict, found.max_abs_diff, found.cases) == (Verdict.EQUAL, 0, len(array))


@given(data=st.data(), array=ARRAYS)
def test_different_means_past_the_tolerance_somewhere(data, array):
    other = data.draw(hnp.arrays(array.dtype, array.shape))
    found = compare_runs(RunResult((other,), 1.0), RunResult((array,), 1.0))
    a, b = other.astype("float64"), array.astype("float64")
    with np.errstate(invalid="ignore"):
        is_same = (a == b) | (np.isnan(a) & np.isnan(b))
        is_near = is_same | (np.abs(a - b) <= 1e-4 + 1e-4 * np.abs(b)) & np.isfinite(b)
    if found.verdict is Verdict.DIFFERENT:
        assert not is_same.all()
        assert found.max_abs_diff > 0
    else:
        assert is_near.all() or array.dtype == "float16"  # which has a wider tolerance


def test_the_largest_difference_is_told_in_proportion_and_in_steps_and_where_it_is():
    step = np.float32(2**-22)
    found = compare_runs(run([[1.0], [2.0], [4.0]]), run([[1.0], [2 - step], [3.0]]))
    assert found.max_relative == pytest.approx(1 / 3)
    assert found.max_ulp == 2**22
    assert found.worst_case == 2
    assert (found.past, found.numbers) == (1, 3)


def test_the_worst_case_is_of_the_output_that_differs_most():
    one, other = np.zeros((3, 2)), np.zeros((3, 4, 5))
    one[0, 1], other[2, 3, 4] = 1, 2
    assert compare_runs(run(one, other), run(one * 0, other * 0)).worst_case == 2
    assert compare_runs(run(one * 2.5, other), run(one * 0, other * 0)).worst_case == 0
    assert compare_runs(run(one), run(one)).worst_case is None


def test_what_differs_from_zero_has_no_relative_difference():
    assert compare_runs(run([1.0, 2.0]), run([0.0, 1.0])).max_relative == 1
    assert compare_runs(run([1.0, 2.0]), run([0.0, 2.0])).max_relative is None
    assert compare_runs(run([0.0, 2.0]), run([0.0, 2.0])).max_relative == 0


def test_outputs_of_other_dtypes_are_compared_as_numbers_and_that_is_said():
    found = compare_runs(run([1.5], dtype="float16"), run([1.5]))
    assert (found.verdict, found.max_abs_diff, found.max_ulp) == (Verdict.CLOSE, 0, None)
    assert found.reason == "output 0 is float16, the reference's is float32: compared as numbers"


def test_whole_numbers_have_no_steps():
    assert compare_runs(run([1], dtype="int32"), run([2], dtype="int32")).max_ulp is None


def test_a_run_keeps_what_one_case_did():
    trace = Trace("main", {}, 1.0, 1.0, 0.0)
    assert RunResult((), 1.0, trace=trace).trace is trace
    assert RunResult((), 1.0).trace is None


@pytest.mark.parametrize(
    ("numbers", "factor", "verdict"),
    [
        (1e-7, 1.5, Verdict.DIFFERENT),
        (1e-7, 1 + 1e-6, Verdict.CLOSE),
        (1.0, 1.5, Verdict.DIFFERENT),
        (100.0, 1 + 1e-6, Verdict.CLOSE),
        (0.0, 1.0, Verdict.EQUAL),
    ],
)
def test_small_numbers_are_not_close_to_others_if_the_tolerance_is_scaled(numbers, factor, verdict):
    one, other = (RunResult((np.full((1, 3), n),), 1.0) for n in (numbers * factor, numbers))
    assert compare_runs(one, other, scaled(one, other)).verdict is verdict
    if verdict is Verdict.DIFFERENT and numbers < 1:
        assert compare_runs(one, other).verdict is Verdict.CLOSE


def test_numbers_near_zero_among_large_ones_may_be_further_apart_if_the_tolerance_is_scaled():
    one, other = run([[50.0, 2e-4]]), run([[50.0, 0.0]])
    assert compare_runs(one, other).verdict is Verdict.DIFFERENT
    assert compare_runs(one, other, scaled(one, other)).verdict is Verdict.CLOSE
    masked = run([[1.0, -3e38]]), run([[1.1, -3e38]])
    assert compare_runs(*masked, scaled(*masked)).verdict is Verdict.DIFFERENT


def test_a_result_that_cannot_be_set_beside_its_origin_names_it_and_says_why():
    found = compare_runs(run([1.0]), run([1.0, 2.0]))
    words = str(OriginVerdict("Net", found))
    assert found.reason
    assert "Net" in words
    assert found.reason in words
