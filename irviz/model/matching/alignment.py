"""The alignment of two versions: which keyed elements correspond, and what shows it.

Nodes, functions, blocks, rows, lines and passes are aligned alike; the keys are ids, names or
numbers, and the elements of a version are given in their order where that counts.
"""

from __future__ import annotations

from bisect import bisect, bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import Enum
from functools import cached_property
from itertools import groupby
from typing import Generic, TypeVar

from irviz.model.graph.graph import grouped

Key = TypeVar("Key", bound=Hashable)
Evidence = TypeVar("Evidence")


@dataclass(frozen=True)
class Stretch(Generic[Key]):
    """Consecutive elements: `is_common` if each element before corresponds to the one after."""

    before: Sequence[Key]
    after: Sequence[Key]
    is_common: bool


@dataclass(frozen=True)
class Alignment(Generic[Key, Evidence]):
    """Which elements before correspond to which after, many to many.

    Attributes:
        pairs: What shows that an element before corresponds to one after, by the two.
    """

    pairs: Mapping[tuple[Key, Key], Evidence]

    @cached_property
    def there(self) -> Mapping[Key, Sequence[Key]]:
        """What each element before became."""
        return grouped(self.pairs)

    @cached_property
    def back(self) -> Mapping[Key, Sequence[Key]]:
        """What each element after was."""
        return grouped((after, before) for before, after in self.pairs)

    @cached_property
    def partners(self) -> Mapping[Key, Key]:
        """What each element before became, if the alignment is one to one."""
        return dict(self.pairs.keys())

    def compose(
        self, later: Alignment[Key, Evidence], both: Callable[[Evidence, Evidence], Evidence]
    ) -> Alignment[Key, Evidence]:
        """Return the alignment over two steps; `both` returns what shows a pair of both."""
        found: dict[tuple[Key, Key], Evidence] = {}
        for (before, middle), evidence in self.pairs.items():
            for after in later.there.get(middle, ()):
                shown = both(evidence, later.pairs[middle, after])
                found.setdefault((before, after), shown)
        return Alignment(found)

    def components(self, after: Sequence[Key]) -> Iterator[tuple[Collection[Key], Collection[Key]]]:
        """Yield the elements that are connected by pairs, in the order of the version after."""
        seen: set[Key] = set()
        for key in after:
            if key in seen or key not in self.back:
                continue
            mine: dict[Key, None] = {}
            theirs: dict[Key, None] = {key: None}
            waiting = [key]
            while waiting:
                for one in self.back[waiting.pop()]:
                    if one not in mine:
                        mine[one] = None
                        new = [two for two in self.there[one] if two not in theirs]
                        theirs.update(dict.fromkeys(new))
                        waiting += new
            seen.update(theirs)
            yield mine.keys(), theirs.keys()

    def union(
        self, before: Sequence[Key], after: Sequence[Key], may_move: Collection[Key] = ()
    ) -> Iterator[Stretch[Key]]:
        """Yield both versions in one order; as many pairs as keep their order are together.

        The alignment must be one to one. Elements that correspond in another order are apart, those
        before that `may_move` rather than others.
        """
        place = {key: at for at, key in enumerate(after)}
        pairs = [
            (at, place[two])
            for at, one in enumerate(before)
            for two in self.there.get(one, ())
            if two in place
        ]
        anchors = enumerate(_in_order(pairs, before, may_move))
        end = other_end = 0
        for _, run in groupby(anchors, lambda each: (each[1][0] - each[0], each[1][1] - each[0])):
            (_, (start, other)), *more = run
            if (start, other) != (end, other_end):
                yield Stretch(before[end:start], after[other_end:other], False)
            end, other_end = start + len(more) + 1, other + len(more) + 1
            yield Stretch(before[start:end], after[other:other_end], True)
        if (end, other_end) != (len(before), len(after)):
            yield Stretch(before[end:], after[other_end:], False)


def _in_order(
    pairs: Sequence[tuple[int, int]], before: Sequence[Hashable], may_move: Collection[Hashable]
) -> list[tuple[int, int]]:
    """Return as many pairs of places as keep their order; those that may move must fit in."""
    firm = _increasing([pair for pair in pairs if before[pair[0]] not in may_move])
    mine, theirs = [one for one, _ in firm], [two for _, two in firm]
    between: dict[int, list[tuple[int, int]]] = {}
    for one, two in pairs:
        gap = bisect(mine, one)
        if before[one] in may_move and gap == bisect(theirs, two):
            between.setdefault(gap, []).append((one, two))
    return sorted([*firm, *(pair for each in between.values() for pair in _increasing(each))])


def _increasing(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    kept = longest_increasing([two for _, two in pairs])
    return [pair for at, pair in enumerate(pairs) if at in kept]


def align_lists(
    before: Sequence[Hashable], after: Sequence[Hashable], *, replaced: bool = False
) -> Alignment[int, bool]:
    """Align the places of two lists, one to one; the evidence is whether the same is there.

    What occurs once in each list corresponds wherever it is. The rest corresponds between two such
    places, in order, as `SequenceMatcher` finds it: that may take time quadratic in the length of
    its lists, and these are short. Of long lists it leaves out what occurs often; what is left over
    on both sides corresponds one after the other, so nothing equal is without a partner.

    Args:
        replaced: Whether what is left between two stretches in common corresponds too, if it is
            equally many on both sides.
    """
    counts = Counter(before), Counter(after)
    place = {key: at for at, key in enumerate(before) if counts[0][key] == 1}
    unique = [
        (place[key], at) for at, key in enumerate(after) if key in place and counts[1][key] == 1
    ]
    found = dict.fromkeys(unique, True)
    start = other = 0
    kept = longest_increasing([one for one, _ in unique])
    for one, two in [*(unique[at] for at in sorted(kept)), (len(before), len(after))]:
        matcher = SequenceMatcher(None, before[start:one], after[other:two])
        for mine, theirs, size in matcher.get_matching_blocks():
            for at in range(size):
                found[start + mine + at, other + theirs + at] = True
        start, other = one + 1, two + 1
    found |= dict.fromkeys(_left_over(before, after, found), True)
    same = Alignment(found)
    if not replaced:
        return same
    for stretch in same.union(range(len(before)), range(len(after))):
        gone = [at for at in stretch.before if at not in same.there]
        new = [at for at in stretch.after if at not in same.back]
        if len(gone) == len(new):
            found |= dict.fromkeys(zip(gone, new, strict=True), False)
    return Alignment(found)


def _left_over(
    before: Sequence[Hashable], after: Sequence[Hashable], found: Collection[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """Yield the equal places that have no partner yet, the first with the first."""
    left, free = (
        grouped((key, at) for at, key in enumerate(keys) if at not in taken)
        for keys, taken in ((before, {one for one, _ in found}), (after, {two for _, two in found}))
    )
    for key, places in left.items():
        yield from zip(places, free.get(key, ()), strict=False)


def longest_increasing(numbers: Sequence[int]) -> frozenset[int]:
    """Return the indices of a longest increasing subsequence, which tell what kept its order."""
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


class MatchedBy(Enum):
    """How two nodes or functions were matched; the value completes "matched by"."""

    KNOWN = "variable or tensor"
    NAME = "name"
    POSITION = "position"
    STRUCTURE = "structure"
    OPERATION = "operation on the same values"
    USE = "use"
    CONTENTS = "contents of the called function"
    PLACE = "place between matched nodes"
    STAGES = "stages between"
