"""Format numbers for pictures: short, with a true minus sign, and distinct if they differ."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

_EXPONENT = re.compile(r"e\+?(-?)0*([0-9]+)")


def format_number(value: float, digits: int = 4) -> str:
    """Return a number with this many significant digits."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Inf" if value > 0 else "−Inf"
    is_short_integer = value == int(value) and abs(value) < 10 ** max(digits, 6)
    text = f"{value + 0.0:.0f}" if is_short_integer else f"{value:.{digits}g}"
    return _EXPONENT.sub(r"e\1\2", text).replace("-", "−")


def format_numbers(values: Sequence[float]) -> list[str]:
    """Return numbers with enough significant digits, at least 3, to tell different ones apart."""
    distinct = len(set(values))
    for tried in range(3, 18):
        texts = [format_number(value, tried) for value in values]
        if len(set(texts)) == distinct:
            return texts
    return [format_number(value, 17) for value in values]
