"""Align two lists: which items correspond, in order."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

_Opcode = tuple[str, int, int, int, int]


def aligned(mine: Sequence[object], theirs: Sequence[object]) -> Iterator[_Opcode]:
    """Yield the opcodes that turn one list of keys into the other, as `SequenceMatcher` does.

    Keys that occur once on each side are matched first, as many as keep their order. So the lists
    between them are short; on those, `SequenceMatcher` may take quadratic time.
    """
    counts = Counter(mine), Counter(theirs)
    place = {key: index for index, key in enumerate(mine) if counts[0][key] == 1}
    pairs = [
        (place[key], index)
        for index, key in enumerate(theirs)
        if key in place and counts[1][key] == 1
    ]
    kept = longest_increasing([at for at, _ in pairs])
    start, other = 0, 0
    for one, two in [*(pairs[index] for index in sorted(kept)), (len(mine), len(theirs))]:
        found = SequenceMatcher(None, mine[start:one], theirs[other:two]).get_opcodes()
        for tag, a, b, c, d in found:
            yield tag, start + a, start + b, other + c, other + d
        if one < len(mine):
            yield "equal", one, one + 1, two, two + 1
        start, other = one + 1, two + 1


# --- longest increasing ------------------------------------------------------------------------
#
# Longest increasing subsequences, which tell what kept its order.


def longest_increasing(numbers: Sequence[int]) -> frozenset[int]:
    """Return the indices of a longest increasing subsequence."""
    tails: list[int] = []
    ends: list[int] = []
    previous: list[int] = []
    for index, number in enumerate(numbers):
        at = bisect_left(tails, number)
        previous.append(ends[at - 1] if at else -1)
        tails[at : at + 1], ends[at : at + 1] = [number], [index]
    kept = []
    at = ends[-1] if ends else -1
    while at >= 0:
        kept.append(at)
        at = previous[at]
    return frozenset(kept)
