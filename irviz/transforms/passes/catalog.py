"""The catalog: every pass of TVM, its pipelines and the user's own, found by name and by words."""

from __future__ import annotations

from irviz.transforms.passes.entry import Entry
from irviz.transforms.passes.listing import GROUPS as GROUPS
from irviz.transforms.passes.listing import entries
from irviz.transforms.passes.listing import find as find
from irviz.transforms.passes.pass_call import PassCall as PassCall
from irviz.transforms.passes.pass_call import named_pass as named_pass


def catalog() -> tuple[Entry, ...]:
    """Return all entries there are by now, by group and then by name."""
    return entries()


def search(words: str) -> tuple[Entry, ...]:
    """Return the entries in whose names or summaries all words stand, the best first.

    A name that begins with the words is better than one that has them further on, and that than
    a summary. Without words all entries are returned.
    """
    wanted = words.lower().split()
    ranked = [(rank, entry) for entry in entries() if (rank := _rank(entry, wanted)) is not None]
    return tuple(entry for _, entry in sorted(ranked, key=lambda pair: pair[0]))


def _rank(entry: Entry, wanted: list[str]) -> tuple[int, int] | None:
    """Return how far an entry is from what is wanted; None where a word is not in it."""
    name, full_name = entry.name.lower(), entry.full_name.lower()
    if not wanted:
        return 0, 0
    if not all(word in full_name or word in entry.summary.lower() for word in wanted):
        return None
    together = "".join(wanted)
    if together in (name, full_name):
        return 0, 0
    if name.startswith(together):
        return 1, len(name)
    if all(word in name for word in wanted):
        return 2, len(name)
    if all(word in full_name for word in wanted):
        return 3, len(name)
    return 4, -sum(word in name for word in wanted)
