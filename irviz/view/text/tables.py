"""Stages side by side: how their results compare, and how long they take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from irviz.model.runs.measurement import THIS_MACHINE, Measurement, MedianInterval, Timing
from irviz.model.runs.run_result import Comparison, RunResult
from irviz.units import format_duration
from irviz.view.templating import render
from irviz.view.text.run_results import comparison_details, comparison_summary, origin_summary


@dataclass(frozen=True)
class Table:
    """Cells of text below headings; `tooltips` are by row and column, `remarks` go below."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    tooltips: Mapping[tuple[int, int], str] = field(default_factory=dict)
    remarks: Sequence[str] = ()
    css_class: str = ""

    def text(self) -> str:
        """Return the table in aligned columns."""
        lines = [self.headings, *self.rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        aligned = (
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
            for line in lines
        )
        return "\n".join([*(line.rstrip() for line in aligned), *self.remarks])

    def html(self) -> str:
        """Return the table as HTML."""
        return str(render("table", table=self))


class _ShownTable:
    """A table that displays itself as text and, in a notebook, as HTML."""

    def __str__(self) -> str:
        """Return the table in aligned columns."""
        return self._table().text()

    def __repr__(self) -> str:
        """Return the table in aligned columns."""
        return str(self)

    def _repr_html_(self) -> str:
        return self._table().html()

    def _table(self) -> Table:
        raise NotImplementedError


@dataclass(frozen=True)
class ErrorTableRow:
    """A stage that was checked, what was found, and its error, None if that is unknown."""

    stage: str
    label: str
    words: str
    max_abs: float | None = None
    share: float | None = None


@dataclass(frozen=True, repr=False)
class ErrorTable(_ShownTable):
    """A table that shows how errors grow from stage to stage, one row each."""

    rows: tuple[ErrorTableRow, ...]

    def _table(self) -> Table:
        cells = [
            (
                row.stage,
                row.label,
                "" if row.max_abs is None else f"{row.max_abs:.1e}",
                "" if row.share is None else f"{row.share:.2g} times",
                row.words.partition(", max |Δ|")[0],
            )
            for row in self.rows
        ]
        return Table(("stage", "made by", "max |Δ|", "the tolerance", "results"), cells)


@dataclass(frozen=True)
class StageTableRow:
    """A stage, its run, and the comparison with the first stage's run; or its error."""

    stage: str
    label: str
    result: RunResult | None
    comparison: Comparison | None
    error: str = ""


@dataclass(frozen=True, repr=False)
class StageTable(_ShownTable):
    """A table that compares stages, one row each."""

    rows: tuple[StageTableRow, ...]

    def _table(self) -> Table:
        """Return the table without the columns that are empty in every row."""
        headings = ("stage", "made by", "classes right", "max |Δ|", "results", "time of one input")
        cells = [_stage_cells(row) for row in self.rows]
        columns = [
            column
            for column in zip(headings, *cells, strict=True)
            if any(column[1:]) or not self.rows
        ]
        headings, *lines = zip(*columns, strict=True)
        tooltips = {
            (index, headings.index("results")): comparison_details(row.comparison)
            for index, row in enumerate(self.rows)
            if row.comparison is not None
        }
        return Table(headings, lines, tooltips)


def _stage_cells(row: StageTableRow) -> tuple[str, ...]:
    if row.result is None or row.comparison is None:
        return (row.stage, row.label, "", "", f"failed: {' '.join(row.error.split())}", "")
    right = "" if row.result.correct is None else f"{row.result.correct} of {row.result.cases}"
    return (
        row.stage,
        row.label,
        right,
        f"{row.comparison.max_abs_diff:.1e}",
        _verdict(row.result, row.comparison),
        format_duration(row.result.seconds),
    )


def _verdict(result: RunResult, comparison: Comparison) -> str:
    summary = origin_summary(result.origin) if result.origin else comparison_summary(comparison)
    return summary.partition(",")[0]


@dataclass(frozen=True, repr=False)
class TimingTable(_ShownTable):
    """A table of the times of stages."""

    measurement: Measurement

    def ratio(self, stage: str) -> MedianInterval:
        """Return a stage's speed-up over the first: above 1 is faster."""
        return self.measurement.ratio(stage)

    def is_clear(self, stage: str) -> bool:
        """Return whether a stage's time differs from the first's by more than measurement noise."""
        return self.measurement.is_clear(stage)

    def _table(self) -> Table:
        headings = ("stage", "made by", "median of a call", "95 % interval", "as fast as the first")
        timings, clock = self.measurement.timings, self.measurement.clock
        rows = [
            (
                timing.stage,
                timing.label,
                format_duration(timing.spread.median),
                f"{format_duration(timing.spread.low)} to {format_duration(timing.spread.high)}",
                "" if timing is timings[0] else self._ratio_text(timing),
            )
            for timing in timings
        ]
        remarks = () if clock == THIS_MACHINE else (f"measured by the clock of {clock}",)
        return Table(headings, rows, remarks=remarks, css_class="irviz-times")

    def _ratio_text(self, timing: Timing) -> str:
        ratio = self.ratio(timing.stage)
        text = f"{ratio.median:.2f}× ({ratio.low:.2f} to {ratio.high:.2f})"
        return text if self.is_clear(timing.stage) else f"{text}, within the noise"
