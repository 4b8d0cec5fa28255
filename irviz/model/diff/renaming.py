"""Names of two functions that stand for the same symbolic sizes."""

from __future__ import annotations

import re
from collections.abc import Iterable

_TOKEN = re.compile(r"""[^\W\d]\w*|'[^']*'|"[^"]*"|\d+|\S""")


class Renaming:
    """A one-to-one relation of symbolic sizes before and after, learned from texts.

    Only the given names are symbols; every other word has to be the same on both sides.
    """

    def __init__(self, before: Iterable[str], after: Iterable[str]) -> None:
        self._symbols = frozenset(before), frozenset(after)
        self._there: dict[str, str] = {}
        self._back: dict[str, str] = {}

    def copy(self) -> Renaming:
        """Return the relation as it is now; what one learns the other does not."""
        made = Renaming((), ())
        made._symbols = self._symbols
        made._there, made._back = dict(self._there), dict(self._back)
        return made

    def is_equal(self, before: str, after: str) -> bool:
        """Return whether two texts are equal but for names, and learn which these are."""
        mine, theirs = self._symbols
        if not mine or not theirs:
            return before == after
        one, two = _TOKEN.findall(before), _TOKEN.findall(after)
        if len(one) != len(two):
            return False
        learned: dict[str, str] = {}
        for word, other in zip(one, two, strict=True):
            if word in mine and other in theirs:
                is_known = word in self._there or other in self._back
                if is_known and self._there.get(word) != other:
                    return False
                if learned.setdefault(word, other) != other:
                    return False
            elif word != other:
                return False
        if len(set(learned.values())) < len(learned):
            return False
        self._there.update(learned)
        self._back.update({other: word for word, other in learned.items()})
        return True
