"""The catalog: every pass of TVM, its pipelines and the user's own, found by name and by words."""

from __future__ import annotations

import difflib

from irviz.errors import TransformError
from irviz.transforms.passes.catalog_entry import CatalogEntry
from irviz.transforms.passes.registered_passes import registered_entries
from irviz.transforms.passes.tvm_entries import OPERATORS, PIPELINES, pass_entries, pipeline_entries

GROUPS = ("relax", OPERATORS, "tirx", "s_tir", PIPELINES, "yours")
"""The groups of entries, in display order."""


def catalog() -> tuple[CatalogEntry, ...]:
    """Return all entries registered so far, sorted by group and name."""
    unsorted = [*pass_entries(), *pipeline_entries(), *registered_entries()]
    return tuple(sorted(unsorted, key=lambda entry: (GROUPS.index(entry.group), entry.name)))


def find(name: str) -> CatalogEntry:
    """Return the entry of this name, such as "StmtSimplify" or "tirx.StmtSimplify".

    A short name that several entries have stands for that of Relax. Raises TransformError with
    the nearest names when there is no such entry, or several.
    """
    entries = catalog()
    found = [entry for entry in entries if name in (entry.name, entry.full_name)]
    in_relax = [entry for entry in found if entry.namespace == "relax"]
    if len(found) == 1 or in_relax:
        return (in_relax or found)[0]
    if found:
        names = " or ".join(repr(entry.full_name) for entry in found)
        raise TransformError(f"{len(found)} passes are called {name!r}: say {names}")
    known = {entry.name.lower(): entry.full_name for entry in entries}
    near = difflib.get_close_matches(name.lower(), known, 3, 0.75)
    names = ", ".join(repr(known[one]) for one in near)
    advice = f"nearest are {names}" if near else "no name is near that"
    raise TransformError(
        f"the catalog has no pass {name!r}; {advice}: give a name from "
        "irviz.transforms.passes.catalog.catalog(), or a tvm.transform.Pass"
    )


def search(words: str) -> tuple[CatalogEntry, ...]:
    """Return the entries whose names or summaries contain all the words, best matches first.

    Names that begin with the words rank first, then names that contain them, then summaries.
    Without words all entries are returned.
    """
    wanted = words.lower().split()
    ranked = [(rank, entry) for entry in catalog() if (rank := _rank(entry, wanted)) is not None]
    return tuple(entry for _, entry in sorted(ranked, key=lambda pair: pair[0]))


def _rank(entry: CatalogEntry, wanted: list[str]) -> tuple[int, int] | None:
    """Return the sort key of an entry, None if it lacks one of the words."""
    name, full_name = entry.name.lower(), entry.full_name.lower()
    if not wanted:
        return 0, 0
    if not all(word in full_name or word in entry.summary.lower() for word in wanted):
        return None
    together = "".join(wanted)
    matches = (
        together in (name, full_name),
        name.startswith(together),
        all(word in name for word in wanted),
        all(word in full_name for word in wanted),
    )
    rank = matches.index(True) if True in matches else len(matches)
    return rank, (0, *[len(name)] * 3, -sum(word in name for word in wanted))[rank]
