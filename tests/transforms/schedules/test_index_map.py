"""An index map is read from a text without running it, and written as a text that gives it."""

import pytest
import tvm_ffi
from tvm import tirx

from irviz.transforms.schedules.schedule_step import (
    IndexMapText,
    ScheduleTraceError,
    index_map_text,
)


def made(function, dtype="int32"):
    """Return TVM's index map of a function, as TVM makes it for `transform_layout`."""
    return tirx.IndexMap.from_func(function, index_dtype=dtype)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize(
    ("text", "function"),
    [
        ("lambda i, j: (j, i)", lambda i, j: (j, i)),
        ("lambda i: [i // 4, i % 4]", lambda i: [i // 4, i % 4]),
        ("lambda i, j: i * 128 + j - -2", lambda i, j: i * 128 + j - -2),
        ("lambda i, j: (i * 8 + j % 8,)", lambda i, j: (i * 8 + j % 8,)),
    ],
)
def test_a_text_is_the_function_that_it_says(text, function, dtype):
    read = made(IndexMapText(text).function(), dtype)
    assert tvm_ffi.structural_equal(read, made(function, dtype))
    written = index_map_text(read)
    assert tvm_ffi.structural_equal(made(written.function(), dtype), read)


def test_what_is_more_than_sums_and_products_of_indices_has_no_text():
    assert index_map_text(made(lambda i: [tirx.max(i, 3)])) is None
    assert index_map_text(made(lambda i: [i + tirx.Var("n", "int32")])) is None


@pytest.mark.parametrize(
    ("text", "words", "column"),
    [
        ("i", "this is not an index map: write one such as lambda i, j: (j, i)", 1),
        ("lambda i: (i, z)", "'z' is not one of its indices, which are ['i']", 15),
        ("lambda i: i * 1.5", "1.5 is not a whole number", 15),
        ("lambda i: i * True", "True is not a whole number", 15),
        ("lambda i: i / 2", "no operators but + - * // and %", 11),
        ("lambda i: i ** 9", "no operators but + - * // and %", 11),
        ("lambda i: open('x')", "\"open('x')\" is not allowed in an index map", 11),
        ("lambda i: i.dtype", "'i.dtype' is not allowed in an index map", 11),
        ("lambda *i: i", "an index map takes plain names", 1),
        ("lambda i=open('x'): i", "an index map takes plain names", 1),
        ("lambda i: (", "is not a Python expression", 1),
    ],
)
def test_any_other_text_is_refused_with_the_place(text, words, column):
    with pytest.raises(ScheduleTraceError) as refused:
        IndexMapText(text).function()
    assert words in str(refused.value)
    assert refused.value.column == column
