"""Which names in two functions stand for the same symbolic sizes."""

from __future__ import annotations

from copy import copy

from irviz.model.diff.canonical_names import Names, base_name, token_pattern, without_signs

_SIGNS = r"\d+|\w+|\S"


class Renaming:
    """A one-to-one relation of symbolic sizes before and after, learned from texts.

    Only the given names are symbols; every other word has to be the same on both sides.
    """

    def __init__(self, before: Names, after: Names) -> None:
        self._names = frozenset(before.all), frozenset(after.all)
        self._tokens = token_pattern(before, _SIGNS), token_pattern(after, _SIGNS)
        self.knows_names = bool(before.all and after.all)
        self._there: dict[str, str] = {}
        self._back: dict[str, str] = {}

    def copy(self) -> Renaming:
        """Return an independent copy."""
        made = copy(self)
        made._there, made._back = dict(self._there), dict(self._back)
        return made

    def is_equal(self, before: str, after: str) -> bool:
        """Return whether two texts are equal up to names, and learn which names correspond."""
        if not self.knows_names:
            return before == after
        mine, theirs = self._names
        one, two = (
            tokens.findall(text) for tokens, text in zip(self._tokens, (before, after), strict=True)
        )
        if len(one) != len(two):
            return False
        learned: dict[str, str] = {}
        for word, other in zip(one, two, strict=True):
            if base_name(word, mine) and base_name(other, theirs):
                word, other = without_signs(word), without_signs(other)
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
