"""All stages in one table: what made them, how many classes are right, how they compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

from irviz.model.result import Comparison, RunResult
from irviz.view.badge import comparison_title, duration, verdict_line

_HEADS = ("stage", "made by", "classes right", "max |Δ|", "results", "time of one input")


@dataclass(frozen=True)
class Row:
    """A stage, its run, and how that compares with the first stage's; or its error."""

    stage: str
    label: str
    result: RunResult | None
    comparison: Comparison | None
    error: str = ""


@dataclass(frozen=True)
class Report:
    """A table of stages that shows itself as text and, in a notebook, as HTML."""

    rows: tuple[Row, ...]

    def __str__(self) -> str:
        """Return the table as lines of text: the heads, and a line for each stage."""
        heads, *cells = self._table()
        widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
            for line in (heads, *cells)
        ]
        return "\n".join(line.rstrip() for line in lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        heads, *cells = self._table()
        head = "".join(f"<th>{escape(text)}</th>" for text in heads)
        body = "".join(
            f"<tr>{_cells_html(row, dict(zip(heads, line, strict=True)))}</tr>"
            for row, line in zip(self.rows, cells, strict=True)
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def _table(self) -> list[tuple[str, ...]]:
        """Return the heads and the cells of each stage, but columns that are empty throughout."""
        cells = [_cells(row) for row in self.rows]
        columns = zip(_HEADS, *cells, strict=True)
        kept = [column for column in columns if any(column[1:]) or not cells]
        return list(zip(*kept, strict=True))


def _cells_html(row: Row, cells: Mapping[str, str]) -> str:
    """Return the cells; that of the results has the rest of the comparison as its tooltip."""
    titles = {} if row.comparison is None else {"results": comparison_title(row.comparison)}
    return "".join(
        f"<td{_title(titles.get(head, ''))}>{escape(cell)}</td>" for head, cell in cells.items()
    )


def _title(words: str) -> str:
    return f' title="{escape(words)}"' if words else ""


def _cells(row: Row) -> tuple[str, ...]:
    if row.result is None or row.comparison is None:
        return (row.stage, row.label, "", "", f"failed: {' '.join(row.error.split())}", "")
    right = "" if row.result.correct is None else f"{row.result.correct} of {row.result.cases}"
    return (
        row.stage,
        row.label,
        right,
        f"{row.comparison.max_abs_diff:.1e}",
        verdict_line(row.comparison).partition(",")[0],
        duration(row.result.seconds),
    )
