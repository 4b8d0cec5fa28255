"""The arguments of a check have several sizes, and values where bugs are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tvm import IRModule, relax, tirx

from irviz.runtime.call_inputs import CallInputs
from irviz.session.equivalence_samples import Sample, further_samples, usual_samples


def adding(*types: tuple[tuple[Any, ...], str]) -> IRModule:
    """Return a module that returns its parameters x0, x1, …"""
    builder = relax.BlockBuilder()
    params = [relax.Var(f"x{at}", relax.TensorType(*one)) for at, one in enumerate(types)]
    with builder.function("main", params):
        builder.emit_func_output(relax.Tuple(params))
    return builder.get()


def drawn(mod: IRModule, call: CallInputs, **options: Any) -> tuple[list[Sample], list[Sample]]:
    usual = usual_samples(mod, "main", call)
    return usual, list(further_samples(mod, "main", call, usual[0], **options))


def array(sample: Sample, at: int = 0) -> np.ndarray:
    return np.asarray(sample.cases[0][at])


def test_free_sizes_are_large_small_and_different_and_given_ones_stay() -> None:
    n, m = (tirx.Var(name, "int64") for name in "nm")
    mod = adding(((n, m), "float32"))
    sizes = [array(one).shape for one in usual_samples(mod, "main", CallInputs())]
    assert sizes == [(32, 32), (3, 3), (5, 7)]
    some = usual_samples(mod, "main", CallInputs(sizes={"n": 4}))
    assert [array(one).shape for one in some] == [(4, 32), (4, 3)]
    assert [one.words for one in some] == ["m = 32", "m = 3"]
    given = np.ones((2, 9), "float32")
    (alone,) = usual_samples(mod, "main", CallInputs({"x0": given}))
    assert array(alone) is given or np.array_equal(array(alone), given)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_floats_are_also_large_and_special(dtype: str) -> None:
    _, further = drawn(adding(((8, 8), dtype)), CallInputs())
    large, nan, infinite, small = further
    numbers = array(large).astype("float64")
    narrow = dtype.endswith("16")
    assert numbers.max() == (30 if narrow else 1e4) == -numbers.min()
    assert np.isnan(array(nan).astype("float64")).sum() == 8
    assert set(array(infinite)[np.isinf(array(infinite))].astype(float)) == {np.inf, -np.inf}
    zeros = array(small).astype("float64")
    assert np.signbit(zeros[zeros == 0]).any()
    assert ((zeros != 0) & (np.abs(zeros) < 1e-4)).sum() >= 2
    assert [one.words for one in further[1:]] == [
        "NaN in x0",
        "±inf in x0",
        "-0.0 and denormals in x0",
    ]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_whole_numbers_are_also_negative_zero_and_large(dtype: str) -> None:
    _, (large,) = drawn(adding(((8, 8), dtype)), CallInputs())
    numbers = array(large).astype("int64")
    most = min(1000, int(np.iinfo(dtype).max))
    assert {0, most} <= set(numbers.ravel().tolist())
    assert (numbers.min() < 0) == (dtype[0] == "i")


def test_special_values_are_in_one_input_at_a_time_and_never_in_given_ones() -> None:
    row = ((4, 4), "float32")
    given = np.ones((4, 4), "float32")
    _, further = drawn(
        adding(row, row, row), CallInputs({"x0": given, "x1": "random", "x2": "zeros"})
    )
    assert [one.words for one in further if one.is_special] == [
        "NaN in x1",
        "±inf in x1",
        "-0.0 and denormals in x1",
    ]
    assert all(np.array_equal(array(one), given) for one in further)
    assert all(not array(one, 2).any() for one in further)


def test_samples_are_the_same_each_time_and_narrow_ones_do_not_overflow() -> None:
    mod = adding(((8, 8), "float32"))
    first, second = (drawn(mod, CallInputs(), is_narrow=True)[1] for _ in range(2))
    for one, other in zip(first, second, strict=True):
        assert array(one).tobytes() == array(other).tobytes()
    assert np.abs(array(first[0])).max() == 30
