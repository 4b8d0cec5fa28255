"""The table that measurements are printed as: medians with the smallest and the largest seen."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

_UNITS = {"ms": (1e3, "6.1f"), "s": (1, "6.2f"), "x": (1, "6.2f"), "MB": (1, "6.1f")}
_UNITS["KB"] = _UNITS["MB"]


def heading(aim: str = "aim") -> None:
    """Print the names of the columns."""
    print(f"{'what':58} {'median':>9} {'min':>9} {'max':>9}   {aim}")


def line(what: str, seconds: Sequence[float], aim: str = "") -> None:
    """Print one measurement in milliseconds."""
    print(f"{what:58} {_spread(seconds, 'ms')}   {aim}")


def against(what: str, values: Sequence[float], unit: str, bar: float | None = None) -> None:
    """Print one measurement, what it may be at most, and whether it is more than that.

    Times are given in seconds, whichever unit they are printed in.
    """
    words = ""
    if bar is not None:
        factor, _ = _UNITS[unit]
        words = f"<= {bar * factor:g} {unit}"
        words += "" if statistics.median(values) <= bar else "   MISSED"
    print(f"{what:58} {_spread(values, unit)}   {words}".rstrip(), flush=True)


def _spread(values: Sequence[float], unit: str) -> str:
    factor, form = _UNITS[unit]
    numbers = (statistics.median(values), min(values), max(values))
    return " ".join(f"{factor * number:{form}} {unit:2}" for number in numbers)
