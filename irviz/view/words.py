"""Numbers in words for pictures: short, with a true minus, and never two that look alike."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np

_EXPONENT = re.compile(r"e\+?(-?)0*([0-9]+)")


def number(value: float, digits: int = 4) -> str:
    """Return a number with so many digits that matter."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Inf" if value > 0 else "−Inf"
    whole = value == int(value) and abs(value) < 10 ** max(digits, 6)
    text = f"{value + 0.0:.0f}" if whole else f"{value:.{digits}g}"
    return _EXPONENT.sub(r"e\1\2", text).replace("-", "−")


def numbers(values: Sequence[float], digits: int = 3) -> list[str]:
    """Return numbers that differ in words that differ."""
    distinct = len(set(values))
    for tried in range(digits, 18):
        words = [number(value, tried) for value in values]
        if len(set(words)) == distinct:
            return words
    return [number(value, 17) for value in values]


def not_finite(values: np.ndarray) -> tuple[tuple[str, bool], ...]:
    """Return in words how many NaN and infinities there are, and whether these are NaN."""
    nans, infinite = int(np.isnan(values).sum()), np.isinf(values)
    infs, below = int(infinite.sum()), int((infinite & (values < 0)).sum())
    found = []
    if nans:
        found.append((f"{nans:,} NaN", True))
    if infs:
        found.append((f"{infs:,} Inf" + (f" ({below:,} negative)" if below else ""), False))
    return tuple(found)
