"""Find the tandem repeats of a sequence in O(n log n) time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class TandemRepeat(NamedTuple):
    """A range in which each item equals the one `period` before it."""

    start: int
    period: int
    length: int


def tandem_repeats(codes: Sequence[int]) -> list[TandemRepeat]:
    """Return ranges of at least two periods, the longest first.

    Substrings of length 1, 2, 4, … are ranked by doubling (Karp, Miller and Rosenberg, STOC 1972).
    A distance is a period where consecutive substrings all recur at that distance. Every range of
    three periods or more is found; one of two periods may be missed next to shorter ones.
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
    found = [TandemRepeat(start, period, length) for (start, period), length in lengths.items()]
    return sorted(found, key=lambda run: (-run.length, run.period, run.start))


def _ranks(values: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def _gaps(ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the distance to the next occurrence of each rank, 0 if there is none."""
    order = np.argsort(ranks, kind="stable")
    distances = np.diff(order)
    distances[np.diff(ranks[order]) != 0] = 0
    gaps = np.zeros(len(ranks), dtype=np.int64)
    gaps[order[:-1]] = distances
    return gaps
