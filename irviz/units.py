"""Numbers as text, in the unit that makes them short, and what is long as its beginning."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

_UNITS = ("KiB", "MiB", "GiB", "TiB")


def format_bytes(count: float) -> str:
    """Return a number of bytes with up to three digits, in B, KiB, MiB, GiB or TiB.

    >>> format_bytes(512), format_bytes(401408)
    ('512 B', '392 KiB')
    """
    if count < 1024:
        return f"{count:g} B"
    power = min(max(int(math.log(count, 1024)), 1), len(_UNITS))
    count /= 1024**power
    if count >= 1023.5 and power < len(_UNITS):  # three digits would round it to 1024
        count, power = count / 1024, power + 1
    unit = _UNITS[power - 1]
    return f"{count:.0f} {unit}" if count >= 99.95 else f"{count:.3g} {unit}"


def format_duration(seconds: float) -> str:
    """Return a time with up to three digits, in s, ms, µs or ns.

    >>> [format_duration(seconds) for seconds in (85e-9, 1.2e-3, 123.4)]
    ['85 ns', '1.2 ms', '123 s']
    """
    if not seconds:
        return "0 s"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)):
        if seconds >= 0.9995 * size or unit == "ns":  # 999.5 would be written with four digits
            break
    value = seconds / size
    return f"{value:.0f} {unit}" if value >= 99.95 else f"{value:.3g} {unit}"


def first_names(names: Sequence[str], most: int) -> str:
    """Return the first names, and how many more there are.

    >>> first_names(["lv", "lv1", "lv2"], 1)
    'lv and 2 more'
    """
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def beginning(text: str, most: int) -> str:
    """Return a text, or of a long one so much that it has `most` characters with an ellipsis."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


# --- Format numbers for pictures: short, with a true minus sign, and distinct if they differ -----


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


_LONG_FLOAT = re.compile(r"\d+\.\d{9,}(?:e[+-]?\d+)?")


def short_floats(text: str) -> str:
    """Write long numbers in a text with the fewest digits that give the same float32 or float64."""
    import numpy as np

    def short(found: re.Match[str]) -> str:
        number = float(found[0])
        single = np.float32(number)
        return str(single) if float(single) == number else repr(number)

    return _LONG_FLOAT.sub(short, text)


def format_numbers(values: Sequence[float]) -> list[str]:
    """Return numbers with enough significant digits, at least 3, to tell different ones apart."""
    distinct = len(set(values))
    for tried in range(3, 18):
        texts = [format_number(value, tried) for value in values]
        if len(set(texts)) == distinct:
            return texts
    return [format_number(value, 17) for value in values]
