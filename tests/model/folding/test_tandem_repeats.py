"""Stretches that repeat themselves are found: against a search through all of them."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irviz.model.folding.repeats import tandem_repeats


def all_runs(codes):
    """Return every stretch of three periods or more that cannot be longer, by start and period."""
    found = {}
    for period in range(1, len(codes) // 3 + 1):
        start = 0
        while start + period < len(codes):
            stop = start
            while stop + period < len(codes) and codes[stop] == codes[stop + period]:
                stop += 1
            length = stop + period - start
            if length >= 3 * period and is_primitive(codes[start : start + period]):
                found[start, period] = length
            start = stop + 1
    return found


def is_primitive(word):
    parts = (size for size in range(1, len(word)) if len(word) % size == 0)
    return not any(word == word[:size] * (len(word) // size) for size in parts)


def is_periodic(codes, run):
    stretch = codes[run.start : run.start + run.length]
    return len(stretch) == run.length and stretch[: -run.period] == stretch[run.period :]


def check(codes):
    found = tandem_repeats(codes)
    assert all(run.length >= 2 * run.period > 0 and is_periodic(codes, run) for run in found)
    assert [run.length for run in found] == sorted((run.length for run in found), reverse=True)
    lengths = {(run.start, run.period): run.length for run in found}
    assert len(lengths) == len(found)
    assert all_runs(codes).items() <= lengths.items()


@st.composite
def sequences(draw):
    """Draw a sequence of few letters, with repeats of words in it."""
    letters = st.integers(0, draw(st.integers(0, 2)))
    codes = draw(st.lists(letters, max_size=12))
    for _ in range(draw(st.integers(0, 3))):
        word = draw(st.lists(letters, min_size=1, max_size=12))
        codes += word * draw(st.integers(1, 5)) + draw(st.lists(letters, max_size=4))
    return codes


@given(sequences())
def test_every_stretch_of_three_periods_is_found_and_no_other_is(codes):
    check(codes)


@pytest.mark.parametrize("codes", [[], [1], [1, 1], [1, 2], [1, 1, 1], [-(2**62), 2**62] * 3])
def test_the_shortest_sequences(codes):
    check(codes)


def test_nothing_but_three_periods_whose_beginnings_are_nearly_alike():
    for size in range(2, 24):
        for ones in range(1, size):
            word = [int(index * ones % size < ones) for index in range(size)]
            check(word * 3)


def test_a_long_repeat_among_other_things():
    rng = random.Random(0)
    word, before, after = ([rng.randrange(50) for _ in range(n)] for n in (37, 100, 30))
    found = tandem_repeats(before + word * 80 + after)
    assert (found[0].period, found[0].length // 37) == (37, 80)
    assert 100 - 37 < found[0].start <= 100


def test_all_items_the_same():
    assert tandem_repeats([7] * 1000)[0] == (0, 1, 1000)
