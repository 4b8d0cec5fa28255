"""Where a sequence repeats itself without a gap, found in n log n steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Run(NamedTuple):
    """A stretch that repeats itself: each item equals the one `period` before it."""

    start: int
    period: int
    length: int


def runs(codes: Sequence[int]) -> list[Run]:
    """Return the stretches of at least two periods, the longest first.

    Classes of equal substrings of length 1, 2, 4, … are made by doubling, as in the construction
    of suffix arrays by Karp, Miller and Rosenberg (STOC 1972). Where the next occurrence of the
    substring at each of many neighbouring places is equally far away, that distance is a period.
    A stretch of three periods or more is always found; one of two may hide behind shorter ones.
    """
    ranks = _ranks(np.asarray(codes, dtype=np.int64))
    width = 1
    lengths: dict[tuple[int, int], int] = {}
    while len(ranks) > 1:
        gaps = _gaps(ranks)
        ends = np.flatnonzero(np.append(np.diff(gaps) != 0, True)) + 1
        starts = np.append(0, ends[:-1])
        periods = gaps[starts]
        reach = ends - starts + periods + width - 1
        chosen = (periods > 0) & (reach >= 2 * periods)
        for start, period, length in zip(
            starts[chosen].tolist(), periods[chosen].tolist(), reach[chosen].tolist(), strict=True
        ):
            lengths[start, period] = max(length, lengths.get((start, period), 0))
        ranks = _ranks(ranks[:-width] * (int(ranks.max()) + 1) + ranks[width:])
        width *= 2
    found = [Run(start, period, length) for (start, period), length in lengths.items()]
    return sorted(found, key=lambda run: (-run.length, run.period, run.start))


def _ranks(values: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def _gaps(ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how far away each rank comes again, 0 where it does not."""
    order = np.argsort(ranks, kind="stable")
    distances = np.diff(order)
    distances[np.diff(ranks[order]) != 0] = 0
    gaps = np.zeros(len(ranks), dtype=np.int64)
    gaps[order[:-1]] = distances
    return gaps
