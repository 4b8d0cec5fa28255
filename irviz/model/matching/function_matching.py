"""Which functions of two modules correspond."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from irviz.model.matching.alignment import Alignment
from irviz.model.matching.node_matching import MatchedBy


class FunctionFingerprint(NamedTuple):
    """What a function does, regardless of its name: equal for functions that do the same.

    Attributes:
        kind: The class of the function, such as "PrimFunc".
        body: A number that is equal for equal bodies; names of variables do not matter.
        is_entry: Whether the function can be called from outside of the module.
    """

    kind: str
    body: int
    attributes: tuple[tuple[str, str], ...] = ()
    is_entry: bool = False


def match_functions(
    before: Mapping[str, FunctionFingerprint], after: Mapping[str, FunctionFingerprint]
) -> Alignment[str, MatchedBy]:
    """Match the functions of two modules, by name, one to one.

    Functions with the same name and the same body come first, then those with the same body and
    another name, and last those with the same name. A function that can be called from outside
    always corresponds to the one with the same public name.
    """
    pairs: dict[str, tuple[str, MatchedBy]] = {}
    left = dict.fromkeys(after)

    def pair(one: str, other: str, by: MatchedBy) -> None:
        pairs[one] = other, by
        del left[other]

    for name, one in before.items():
        other = after.get(name)
        if other is not None and (one[:2] == other[:2] or (one.is_entry and other.is_entry)):
            pair(name, name, MatchedBy.NAME)
    alike: dict[tuple[str, int], list[str]] = {}
    for name in left:
        alike.setdefault(after[name][:2], []).append(name)
    for name, one in before.items():
        if name not in pairs and alike.get(one[:2]):
            pair(name, alike[one[:2]].pop(0), MatchedBy.STRUCTURE)
    for name in before:
        if name not in pairs and name in left:
            pair(name, name, MatchedBy.NAME)
    found = {(name, pairs[name][0]): pairs[name][1] for name in before if name in pairs}
    return Alignment(found)
