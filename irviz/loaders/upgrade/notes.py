"""What an upgrade gives: the text, and what it left and why."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Note:
    """Say what was left as it is: the line (from 1), the words there, and the reason.

    `cell` is the notebook's cell (from 1) that the line is one of, and 0 where there are none.
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
    """Hold the text in today's dialect, and notes on what was left, by line of the old text."""

    text: str
    notes: tuple[Note, ...] = ()
