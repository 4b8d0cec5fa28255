"""A tolerance follows from what rounding can do."""

from __future__ import annotations

import numpy as np
import pytest

from irviz.model.runs.array_diff import (
    Verdict,
    compare_arrays,
    rounding_error,
    rounding_tolerance,
    unit_roundoff,
)


@pytest.mark.parametrize(("dtype", "bits"), [("float16", 11), ("float32", 24), ("float64", 53)])
def test_the_unit_roundoff_is_half_of_the_last_bit_of_the_coarsest_dtype(
    dtype: str, bits: int
) -> None:
    dtypes = [np.dtype(one) for one in ("float64", "int32", dtype)]
    assert unit_roundoff(dtypes) == 2.0**-bits
    assert unit_roundoff([np.dtype("int64")]) == 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [10, 1000, 100_000])
def test_a_sum_in_another_order_is_within_the_tolerance_and_a_wrong_one_is_not(
    dtype: str, count: int
) -> None:
    numbers = np.random.default_rng(count).standard_normal((64, count)).astype(dtype)
    forwards, backwards = (
        np.add.accumulate(one, axis=1)[:, -1] for one in (numbers, numbers[:, ::-1])
    )
    error = rounding_error(count, unit_roundoff([forwards.dtype]))
    limits = rounding_tolerance(forwards, error)
    assert compare_arrays(backwards, forwards, limits).share <= 1
    wrong = forwards * (1 + 100 * error)
    assert compare_arrays(wrong.astype(dtype), forwards, limits).verdict is Verdict.DIFFERENT


def test_numbers_that_change_much_with_rounded_inputs_may_differ_by_as_much() -> None:
    reference = np.ones(4)
    noise = np.array([0.0, 0.0, 0.0, 0.1])
    limits = rounding_tolerance(reference, 1e-16, noise)
    unstable, stable = reference.copy(), reference.copy()
    unstable[3] += 0.2
    stable[0] += 0.2
    assert compare_arrays(unstable, reference, limits).verdict is Verdict.CLOSE
    assert compare_arrays(stable, reference, limits).verdict is Verdict.DIFFERENT


def test_whole_numbers_are_equal_or_not() -> None:
    numbers = np.arange(4)
    assert compare_arrays(numbers + 1, numbers, rounding_tolerance(numbers, 0.1)).past == 4
