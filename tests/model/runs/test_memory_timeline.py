"""What memory a run holds is told by plain values, and storages have places that do not meet."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irviz.model.graph.graph import NodeId
from irviz.model.runs.memory_timeline import (
    Allocation,
    MemoryStep,
    MemoryUse,
    Storage,
    storage_offsets,
)
from irviz.units import format_bytes

STEPS = (
    MemoryStep("linear", NodeId("a")),
    MemoryStep("relu", NodeId("b")),
    MemoryStep("linear", NodeId("c")),
)
STORAGES = (Storage("one", 8, 0, 2), Storage("two", 16, 1, 3))
BUFFERS = (
    Allocation("a", NodeId("a"), 8, 0, 2, 0),
    Allocation("b", NodeId("b"), 12, 1, 2, 1),
    Allocation("c", NodeId("c"), 16, 2, 3, 1),
)
USE = MemoryUse("main", STEPS, (8, 24, 16), STORAGES, BUFFERS, 36, given=100)


@st.composite
def storages(draw):
    start = draw(st.integers(0, 12))
    return Storage("s", draw(st.integers(0, 40)), start, start + draw(st.integers(0, 8)))


def test_the_peak_is_the_most_that_is_held_at_once_and_the_first_step_with_it():
    assert (USE.peak, USE.peak_step) == (24, 1)
    twice = MemoryUse("main", STEPS, (24, 8, 24), STORAGES, BUFFERS, 36)
    assert twice.peak_step == 0


def test_a_function_that_runs_nothing_has_no_peak():
    empty = MemoryUse("main", (), (), (), (), 0)
    assert (empty.peak, empty.peak_step) == (0, None)


def test_the_buffers_of_a_step_are_those_held_while_it_runs():
    assert [[one.name for one in USE.at(step)] for step in range(3)] == [["a"], ["a", "b"], ["c"]]


@pytest.mark.parametrize("step", [-1, 3])
def test_a_step_that_is_not_there_is_refused(step):
    with pytest.raises(IndexError, match=f"no step {step}: 3 are counted from 0"):
        USE.at(step)


def test_its_repr_says_the_peak():
    assert repr(USE) == "<MemoryUse of 'main': peak 24 B in 3 steps, 3 buffers in 2 storages>"


@given(st.lists(storages(), max_size=14))
def test_no_two_storages_that_are_held_together_meet(drawn):
    found = storage_offsets(drawn)
    assert all(place >= 0 for place in found)
    for (one, low), (other, high) in itertools.combinations(zip(drawn, found, strict=True), 2):
        if one.start < other.stop and other.start < one.stop:
            assert low + one.nbytes <= high or high + other.nbytes <= low


def test_a_storage_takes_the_lowest_gap_that_it_fits_in():
    made = [Storage("a", 8, 0, 2), Storage("b", 8, 0, 9), Storage("c", 4, 2, 9)]
    wide = Storage("d", 9, 2, 9)
    assert storage_offsets([*made, wide]) == (0, 8, 0, 16)


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (401408, "392 KiB"),
        (1024**2 - 1, "1 MiB"),
        (5 * 1024**3, "5 GiB"),
        (3 * 1024**4, "3 TiB"),
        (5000 * 1024**4, "5000 TiB"),
    ],
)
def test_sizes_are_said_in_the_unit_that_suits_them(count, words):
    assert format_bytes(count) == words
