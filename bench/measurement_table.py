"""The table that measurements are printed as: medians with the smallest and the largest seen."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence

_UNITS = {"ms": (1e3, "6.1f"), "s": (1, "6.2f"), "x": (1, "6.2f"), "MB": (1, "6.1f")}
_UNITS["KB"] = _UNITS["MB"]
_missed: list[str] = []


def heading(aim: str = "aim") -> None:
    """Print the names of the columns."""
    print(f"{'what':58} {'median':>9} {'min':>9} {'max':>9}   {aim}")


def against(what: str, values: Sequence[float], unit: str = "ms", bar: float | None = None) -> None:
    """Print one measurement, what it may be at most, and whether it is more than that.

    Times are given in seconds, whichever unit they are printed in.
    """
    words = ""
    if bar is not None:
        factor, _ = _UNITS[unit]
        words = f"<= {bar * factor:g} {unit}{missed(what, statistics.median(values) > bar)}"
    print(f"{what:58} {_spread(values, unit)}   {words}".rstrip(), flush=True)


def missed(what: str, is_missed: object) -> str:
    """Return the word for an aim that is missed, which is counted, and "" for any other."""
    if not is_missed:
        return ""
    _missed.append(what)
    return "   MISSED"


def end() -> None:
    """End the process, with the exit code 1 if an aim was missed."""
    if _missed:
        print(f"missed: {'; '.join(_missed)}")
    raise SystemExit(bool(_missed))


def forget() -> None:
    """Forget what irviz keeps of modules and pictures, so that the next is made as the first is."""
    for name, module in list(sys.modules.items()):
        if name.startswith("irviz."):
            for each in list(vars(module).values()):
                if hasattr(each, "cache_clear"):
                    each.cache_clear()


def _spread(values: Sequence[float], unit: str) -> str:
    factor, form = _UNITS[unit]
    numbers = (statistics.median(values), min(values), max(values))
    return " ".join(f"{factor * number:{form}} {unit:2}" for number in numbers)
