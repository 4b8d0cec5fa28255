"""Titles of consecutive layers: names, number of copies, and class."""

from __future__ import annotations

import re
from collections.abc import Sequence

_NUMBERED = re.compile(r"(.*?)(\d+)")
_MAX_NAMES = 4


def layer_titles(names: Sequence[str], layers: Sequence[str], copies: int = 1) -> tuple[str, str]:
    """Return the title and the full name of consecutive layers.

    Args:
        names: For each, the name within the enclosing layer, and the class.
        layers: Their full names.
        copies: The number of copies, if they are equal.
    """
    kinds = {name.partition(" · ")[2] for name in names}
    kind = kinds.pop() if len(kinds) == 1 else ""
    short = _span([name.partition(" · ")[0] for name in names])
    title = f"{short} ×{copies}" if copies > 1 else short
    return (f"{title} · {kind}" if kind else title), _span(layers)


def _span(names: Sequence[str]) -> str:
    """Return names as one: `layers.0–47`, or `query | key | value`."""
    found = [_NUMBERED.fullmatch(name) for name in names]
    numbers = [int(one[2]) for one in found if one is not None]
    stems = {one[1] for one in found if one is not None}
    if len(numbers) == len(names) and len(stems) == 1:
        first = numbers[0]
        if numbers == list(range(first, first + len(numbers))):
            return f"{stems.pop()}{first}–{numbers[-1]}"
    if len(set(names)) == 1:
        return names[0]
    shown = names if len(names) <= _MAX_NAMES else (*names[: _MAX_NAMES - 2], "…", names[-1])
    return " | ".join(shown)
