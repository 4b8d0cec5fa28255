"""A script gives the module the same arguments that it failed with."""

import numpy as np
import pytest
import tvm
from numpy.typing import NDArray

from irviz.runtime.call_inputs import generator_for, random_array
from irviz.session.reduce_module import input_expression
from irviz.transforms.export_python import PythonScript

DTYPES = ["float16", "float32", "float64", "int8", "int32", "int64", "uint8", "bool"]
SHAPES = [(), (3,), (40,), (6, 7), (9, 1)]


def given(value: NDArray[np.generic]) -> tuple[NDArray[np.generic], PythonScript]:
    """Return what a script gives for a value, and the script with the arrays it needs."""
    script = PythonScript()
    expression = input_expression("x", value, script)
    return eval(expression, {"np": np, "tvm": tvm, "arrays": script.arrays}).numpy(), script


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_script_gives_the_very_numbers_and_draws_many_random_ones_again(
    dtype: str, shape: tuple[int, ...]
) -> None:
    drawn = random_array(shape, dtype, generator_for("x", 0))
    for value in (drawn, np.ones_like(drawn), drawn[::-1].copy() if shape else drawn):
        found, script = given(value)
        assert (found.dtype, found.shape) == (value.dtype, value.shape)
        assert found.tobytes() == value.tobytes()
        is_drawn_again = value.tobytes() == drawn.tobytes() and value.size > 4
        assert (not script.arrays) == is_drawn_again
