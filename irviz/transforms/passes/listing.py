"""All entries of the catalog: the passes of TVM, its pipelines and the user's own, by name."""

from __future__ import annotations

import difflib

from irviz.transforms.passes.entry import Entry
from irviz.transforms.passes.own_passes import own_entries
from irviz.transforms.passes.tvm_entries import OPERATORS, PIPELINES, pass_entries, pipeline_entries
from irviz.transforms.stage import TransformError

GROUPS = ("relax", OPERATORS, "tirx", "s_tir", PIPELINES, "yours")
"""The groups of entries, in the order in which they are shown."""


def entries() -> tuple[Entry, ...]:
    """Return all entries there are by now, by group and then by name."""
    found = [*pass_entries(), *pipeline_entries(), *own_entries()]
    return tuple(sorted(found, key=lambda entry: (GROUPS.index(entry.group), entry.name)))


def find(name: str) -> Entry:
    """Return the entry of this name: "StmtSimplify" if only one has it, or "tirx.StmtSimplify".

    Where Relax has one of the same name, that is meant. Raises TransformError with what there is.
    """
    there = entries()
    found = [entry for entry in there if name in (entry.name, entry.full_name)]
    relaxed = [entry for entry in found if entry.namespace == "relax"]
    if len(found) == 1 or relaxed:
        return (relaxed or found)[0]
    if found:
        names = " or ".join(repr(entry.full_name) for entry in found)
        raise TransformError(f"{len(found)} passes are called {name!r}: say {names}")
    known = {entry.name.lower(): entry.full_name for entry in there}
    near = difflib.get_close_matches(name.lower(), known, 3, 0.75)
    names = ", ".join(repr(known[one]) for one in near)
    advice = f"nearest are {names}" if near else "no name is near that"
    raise TransformError(
        f"the catalog has no pass {name!r}; {advice}: give a name from "
        "irviz.transforms.passes.catalog.catalog(), or a tvm.transform.Pass"
    )
