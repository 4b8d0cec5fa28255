"""Longest increasing subsequences, which tell what kept its order."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence


def longest_increasing(numbers: Sequence[int]) -> frozenset[int]:
    """Return the indices of a longest increasing subsequence."""
    tails: list[int] = []
    ends: list[int] = []
    previous: list[int] = []
    for index, number in enumerate(numbers):
        at = bisect_left(tails, number)
        previous.append(ends[at - 1] if at else -1)
        tails[at : at + 1], ends[at : at + 1] = [number], [index]
    kept = []
    at = ends[-1] if ends else -1
    while at >= 0:
        kept.append(at)
        at = previous[at]
    return frozenset(kept)
