"""How long stages take beside each other, and whether a difference is more than noise."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

_ONE_IN = 20
"""In one of so many cases, at most, the true median is outside of the interval."""
_LEAST = 6
"""How many numbers it takes for that."""


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
    left_out = 0  # so many of the lowest and of the highest numbers
    below = 1  # of the 2**count ways that numbers fall about the median, those with it outside
    while True:
        more = below + math.comb(count, left_out + 1)
        if 2 * more * _ONE_IN > 2**count:
            break
        left_out, below = left_out + 1, more
    return Spread(statistics.median(ordered), ordered[left_out], ordered[count - 1 - left_out])


HERE = "this machine"
"""The clock of what runs on this machine."""


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
    """Stages that were measured in turn, round after round; ratios are to the first of them.

    `clock` says whose clock it was: "this machine", or the address of another.
    """

    timings: tuple[Timing, ...]
    clock: str = HERE

    def __post_init__(self) -> None:
        """Raise ValueError when the stages were not measured in the same rounds."""
        rounds = {timing.stage: len(timing.seconds) for timing in self.timings}
        if len(set(rounds.values())) > 1:
            raise ValueError(f"the stages have different numbers of rounds: {rounds}")

    def ratio(self, stage: str) -> Spread:
        """Return how many times as fast as the first a stage is: above 1 is faster.

        The ratio is taken round by round, because what slows one slows the other there. Raises
        ValueError for a stage that was not measured.
        """
        timing = next((one for one in self.timings if one.stage == stage), None)
        if timing is None:
            listed = ", ".join(repr(one.stage) for one in self.timings) or "none"
            raise ValueError(f"stage {stage!r} was not measured; measured were {listed}")
        pairs = zip(self.timings[0].seconds, timing.seconds, strict=True)
        return spread([first / now if now else math.inf for first, now in pairs])

    def is_clear(self, stage: str) -> bool:
        """Tell whether a stage differs from the first by more than the noise of the machine.

        Fewer than six rounds are never clear; of stages that take the same, one in twenty is.
        """
        ratio = self.ratio(stage)
        return len(self.timings[0].seconds) >= _LEAST and not ratio.low <= 1 <= ratio.high
