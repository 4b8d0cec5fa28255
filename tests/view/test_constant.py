"""A constant is described by its values in a few words."""

import numpy as np

from irviz.view.constant import summary


def test_a_small_constant_is_written_out():
    assert summary(np.array([[1.0, 2.5]], "float32")) == (("values", "[[1. , 2.5]]"),)
    assert summary(np.zeros((0,), "float32")) == (("values", "[]"),)


def test_a_large_one_has_its_range_mean_and_share_of_zeros():
    facts = dict(summary(np.array([0.0] * 5 + [1.0] * 5, "float32")))
    assert facts == {"values": "0 to 1", "mean ± std": "0.5 ± 0.5", "zeros": "50%"}


def test_what_is_no_number_is_counted_and_left_out():
    values = np.ones(10, "float16")
    values[:3] = np.nan, np.inf, -np.inf
    facts = dict(summary(values))
    assert facts["not finite"] == "3 of 10"
    assert facts["values"] == "1 to 1"
    assert dict(summary(np.full(10, np.nan))) == {"not finite": "10 of 10"}


def test_integers_and_truths_are_numbers():
    assert dict(summary(np.arange(20)))["values"] == "0 to 19"
    assert dict(summary(np.ones(20, bool)))["zeros"] == "0%"


def test_of_a_huge_one_only_some_are_looked_at_and_it_says_so():
    facts = dict(summary(np.ones(8_000_001, "int8")))
    assert facts["looked at"] == "one of 3, of 8,000,001"
    assert facts["values"] == "1 to 1"
