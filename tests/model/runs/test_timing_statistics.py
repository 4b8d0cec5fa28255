"""A median has an interval that holds the true one; a difference is clear, or it is noise."""

import itertools
import math
import random
import statistics

import pytest

from irviz.model.runs.timing_statistics import Measurement, Timing, median_interval


def outside(count, left_out):
    """Return how often the true median is outside, of all ways to fall below or above of it."""
    ways = list(itertools.product((False, True), repeat=count))
    return sum(sum(way) <= left_out or sum(way) >= count - left_out for way in ways) / len(ways)


@pytest.mark.parametrize("count", range(6, 15))
def test_the_interval_is_the_shortest_that_is_wrong_in_one_of_twenty_at_most(count):
    found = median_interval(range(count))
    assert found.low + found.high == count - 1
    assert outside(count, found.low) <= 0.05 < outside(count, found.low + 1)


@pytest.mark.parametrize(
    ("count", "low", "high"), [(6, 1, 6), (10, 2, 9), (20, 6, 15), (30, 10, 21), (50, 18, 33)]
)
def test_the_interval_is_that_of_the_tables(count, low, high):
    found = median_interval(range(1, count + 1))
    assert (found.low, found.high) == (low, high)


@pytest.mark.parametrize("count", range(1, 6))
def test_the_interval_of_fewer_than_six_numbers_is_all_of_them(count):
    found = median_interval(range(count))
    assert (found.low, found.high) == (0, count - 1)


@pytest.mark.parametrize("count", [6, 9, 20, 41])
def test_the_interval_holds_the_true_median_however_the_numbers_are_distributed(count):
    source, tries = random.Random(count), 3000
    found = [
        median_interval([source.lognormvariate(0, 1) for _ in range(count)]) for _ in range(tries)
    ]
    share = sum(one.low <= 1 <= one.high for one in found) / tries
    assert share > 0.95 - 3 * math.sqrt(0.05 * 0.95 / tries)
    assert share < 0.99


def test_the_order_of_the_numbers_does_not_matter():
    numbers = [random.Random(1).random() for _ in range(21)]
    assert median_interval(numbers) == median_interval(sorted(numbers))
    assert median_interval(numbers).median == statistics.median(numbers)


def test_many_numbers_have_a_narrow_interval():
    found = median_interval(range(5001))
    assert 2400 < found.low < found.median == 2500 < found.high < 2600


def test_no_numbers_have_no_median():
    with pytest.raises(ValueError, match="there are no numbers: give at least one"):
        median_interval([])


# --- stages beside each other --------------------------------------------------------------------


def measurement(**seconds):
    return Measurement(tuple(Timing(name, f"Pass {name}", tuple(s)) for name, s in seconds.items()))


def test_a_quicker_stage_is_clear_on_a_machine_that_slows_down():
    source = random.Random(2)
    machine = [1 + number / 2 + source.random() for number in range(20)]
    found = measurement(
        first=[1.3 * slow * source.uniform(0.9, 1.1) for slow in machine],
        quicker=[slow * source.uniform(0.9, 1.1) for slow in machine],
    )
    assert found.ratio("quicker").median == pytest.approx(1.3, rel=0.1)
    assert found.is_clear("quicker")
    first, quicker = (one.spread for one in found.timings)
    assert quicker.high > first.low  # which medians that were taken alone would not tell


def test_stages_that_take_the_same_are_told_apart_in_one_of_twenty_at_most():
    source, tries = random.Random(3), 2000

    def once():
        return [source.lognormvariate(0, 0.3) for _ in range(20)]

    clear = sum(measurement(a=once(), b=once()).is_clear("b") for _ in range(tries)) / tries
    assert clear < 0.05 + 3 * math.sqrt(0.05 * 0.95 / tries)


def test_a_stage_is_not_clearly_another_than_itself():
    found = measurement(first=range(1, 21))
    assert (found.ratio("first").median, found.is_clear("first")) == (1, False)


@pytest.mark.parametrize(("rounds", "clear"), [(1, False), (5, False), (6, True)])
def test_nothing_is_clear_after_fewer_than_six_rounds(rounds, clear):
    assert measurement(first=[2.0] * rounds, half=[1.0] * rounds).is_clear("half") is clear


def test_a_clock_that_saw_no_time_pass_divides_nothing():
    assert measurement(first=[1.0] * 6, none=[0.0] * 6).ratio("none").median == math.inf


def test_a_stage_that_was_not_measured_is_told_with_those_that_were():
    with pytest.raises(ValueError, match="stage '7' was not measured; measured were 'a', 'b'"):
        measurement(a=[1.0], b=[1.0]).ratio("7")


def test_all_stages_have_the_same_rounds():
    with pytest.raises(ValueError, match=r"different numbers of rounds: \{'a': 1, 'b': 2\}"):
        measurement(a=[1.0], b=[1.0, 2.0])
