"""Times of stages that were measured in turn: medians, and whether a difference is clear."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

_ONE_IN = 20
"""The true median is outside the interval in at most one case of this many."""
_MIN_ROUNDS = 6
"""With fewer numbers no interval is that certain."""


@dataclass(frozen=True)
class MedianInterval:
    """The median of a sample, and a 95 % confidence interval for the true median.

    The interval comes from order statistics, which assume nothing about the distribution
    (W. J. Conover, Practical Nonparametric Statistics, 1999, section 3.2). For fewer than six
    numbers it is the range of all of them.
    """

    median: float
    low: float
    high: float


def median_interval(numbers: Sequence[float]) -> MedianInterval:
    """Return the median and its interval; raise ValueError for an empty sample."""
    if not numbers:
        raise ValueError("there are no numbers: give at least one")
    ordered, count = sorted(numbers), len(numbers)
    left_out = 0  # the lowest and the highest numbers that are outside the interval
    below = 1 + count  # of the 2**count sides that numbers can be on, those with the median outside
    while 2 * below * _ONE_IN <= 2**count:
        left_out += 1
        below += math.comb(count, left_out + 1)
    return MedianInterval(
        statistics.median(ordered), ordered[left_out], ordered[count - 1 - left_out]
    )


THIS_MACHINE = "this machine"
"""The clock of runs on this machine."""


@dataclass(frozen=True)
class Timing:
    """The seconds of a call of a stage, one number for each round."""

    stage: str
    label: str
    seconds: tuple[float, ...]

    @cached_property
    def spread(self) -> MedianInterval:
        """The median seconds of a call, with its interval."""
        return median_interval(self.seconds)


@dataclass(frozen=True)
class Measurement:
    """Times of stages that were measured in turn, round after round.

    Ratios are relative to the first stage. `clock` is the machine whose clock it was:
    `THIS_MACHINE`, or an address.
    """

    timings: tuple[Timing, ...]
    clock: str = THIS_MACHINE

    def __post_init__(self) -> None:
        rounds = {timing.stage: len(timing.seconds) for timing in self.timings}
        if len(set(rounds.values())) > 1:
            raise ValueError(f"the stages have different numbers of rounds: {rounds}")

    def ratio(self, stage: str) -> MedianInterval:
        """Return how many times as fast as the first a stage is: above 1 is faster.

        It is the median of the ratios of each round: a disturbance slows all stages of a round.
        Raises ValueError for a stage that was not measured.
        """
        timing = next((one for one in self.timings if one.stage == stage), None)
        if timing is None:
            listed = ", ".join(repr(one.stage) for one in self.timings) or "none"
            raise ValueError(f"stage {stage!r} was not measured; measured were {listed}")
        pairs = zip(self.timings[0].seconds, timing.seconds, strict=True)
        return median_interval([first / now if now else math.inf for first, now in pairs])

    def is_clear(self, stage: str) -> bool:
        """Return whether a stage differs from the first by more than the noise of the machine.

        It is never clear after fewer than six rounds. For stages that take the same time it is
        wrong in one of 20 cases.
        """
        ratio = self.ratio(stage)
        return self.has_enough_rounds and not ratio.low <= 1 <= ratio.high

    @property
    def has_enough_rounds(self) -> bool:
        """Whether the stages were measured often enough to be told from the noise at all."""
        return len(self.timings[0].seconds) >= _MIN_ROUNDS
