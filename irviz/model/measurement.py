"""How long stages take beside each other, and whether a difference is more than noise."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Spread:
    """The median of some numbers, and an interval that holds the true one in 19 of 20 cases.

    The interval is that of order statistics, which supposes nothing of how the numbers are
    distributed (W. J. Conover, Practical Nonparametric Statistics, 1999, section 3.2). Of fewer
    than six numbers it is all of them.
    """

    median: float
    low: float
    high: float


def spread(numbers: Sequence[float]) -> Spread:
    """Return the median and its interval; raise ValueError when there are no numbers."""
    if not numbers:
        raise ValueError("there are no numbers: give at least one")
    ordered, count = sorted(numbers), len(numbers)
    left_out, tail = 0, 0.5**count  # of all numbers, and the chance that the median is below them
    while True:
        more = tail + math.comb(count, left_out + 1) * 0.5**count
        if 2 * more > 1 - _CONFIDENCE:
            break
        left_out, tail = left_out + 1, more
    return Spread(statistics.median(ordered), ordered[left_out], ordered[count - 1 - left_out])


@dataclass(frozen=True)
class Timing:
    """How long a stage took: `seconds` a call, one number for each round."""

    stage: str
    label: str
    seconds: tuple[float, ...]

    @cached_property
    def spread(self) -> Spread:
        """The median seconds of a call, and its interval."""
        return spread(self.seconds)


@dataclass(frozen=True)
class Measurement:
    """Stages that were measured in turn, round after round; ratios are to the first of them."""

    timings: tuple[Timing, ...]

    def ratio(self, stage: str) -> Spread:
        """Return how many times as fast as the first a stage is: above 1 is faster.

        The ratio is taken round by round, because what slows one slows the other there.
        """
        timing = next(one for one in self.timings if one.stage == stage)
        pairs = zip(self.timings[0].seconds, timing.seconds, strict=True)
        return spread([first / now for first, now in pairs])

    def is_clear(self, stage: str) -> bool:
        """Tell whether a stage differs from the first by more than the noise of the machine."""
        ratio = self.ratio(stage)
        return len(self.timings[0].seconds) >= _LEAST and not ratio.low <= 1 <= ratio.high


_LEAST = 6
"""How many rounds it takes for the interval of a median."""
