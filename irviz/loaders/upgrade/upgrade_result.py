"""The result of an upgrade: the text, and notes on what was left unchanged."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass

AddNote = Callable[[str, str], None]
"""Adds a note of some words and the reason."""


@dataclass(frozen=True, order=True)
class Note:
    """Something that was left unchanged: its line (from 1), its words, and the reason.

    `cell` is the notebook cell (from 1) that contains the line, or 0 without cells.
    """

    line: int
    what: str
    why: str
    cell: int = 0

    def __str__(self) -> str:
        place = f"cell {self.cell}, line" if self.cell else "line"
        return f"{place} {self.line}: {self.what}: {self.why}"


@dataclass(frozen=True)
class Upgraded:
    """The text in today's dialect, and notes with the lines of the old text."""

    text: str
    notes: tuple[Note, ...] = ()


def unified_diff(old: str, new: str, name: str) -> str:
    """Return the unified diff of two texts, or "" if they are equal."""
    lines = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), name, f"{name} (upgraded)"
    )
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )
