"""The times of a PrimFunc after each step of its schedule, as a line and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irviz.model.runs.measurement import THIS_MACHINE, Measurement, Timing
from irviz.model.runs.run_result import Verdict
from irviz.units import format_duration
from irviz.view.templating import render

_RESULTS = {
    Verdict.EQUAL: "results equal",
    Verdict.CLOSE: "results equal within tolerance",
    Verdict.DIFFERENT: "results differ",
    Verdict.INCOMPARABLE: "results not comparable",
}


@dataclass(frozen=True)
class StepRow:
    """A step of a schedule, with the time of a call after it and the verdict on its results.

    `verdict` is None if the function was not run, `timing` is None if it was not measured with the
    others, and `error` says why it cannot be run.
    """

    step: str
    verdict: Verdict | None = None
    timing: Timing | None = None
    error: str = ""


def step_times_summary(rows: Sequence[StepRow]) -> str:
    """Compare the last step with the previous and the first one, in one line."""
    first, last = rows[0].timing, rows[-1]
    if last.error or last.timing is None:
        return last.error
    text = format_duration(last.timing.spread.median)
    before = rows[-2].timing if len(rows) > 1 else None
    if before is not None:
        was = format_duration(before.spread.median)
        text = f"{was} → {text}, {_ratio(before, last.timing, ' as fast')}"
    if len(rows) > 2 and first is not None:
        text += f"; {_ratio(first, last.timing, ' as fast as without a schedule')}"
    return f"{text}; {_RESULTS[last.verdict]}" if len(rows) > 1 and last.verdict else text


def step_times_html(rows: Sequence[StepRow], clock: str) -> str:
    """Return a table with the time of each step and its ratio to the first, "" without times."""
    if not any(row.error or row.timing for row in rows):
        return ""
    is_elsewhere = clock != THIS_MACHINE and any(row.timing for row in rows)
    cells = [(row.step, *_cells(row, rows[0])) for row in rows]
    return str(render("step_times", rows=cells, clock=clock if is_elsewhere else ""))


def _cells(row: StepRow, first: StepRow) -> tuple[str, str, str, str]:
    """Return the median, its interval, the ratio and a warning; or one text that spans them."""
    if row.error or row.timing is None:
        unmeasured = "not measured with the others" if row.verdict else "not measured"
        return row.error or unmeasured, "", "", ""
    spread, ratio, warning = row.timing.spread, "", ""
    if row.timing is not first.timing:
        if first.timing is not None:
            ratio = _ratio(first.timing, row.timing)
        if row.verdict in (Verdict.DIFFERENT, Verdict.INCOMPARABLE):
            warning = _RESULTS[row.verdict]
    low, high = (format_duration(seconds).split() for seconds in (spread.low, spread.high))
    interval = " ".join([*low[: 1 if low[1] == high[1] else 2], "to", *high])
    return format_duration(spread.median), interval, ratio, warning


def _ratio(reference: Timing, timing: Timing, words: str = "") -> str:
    """Return a ratio, with a warning if it is within noise."""
    both = Measurement((reference, timing))
    text = f"{both.ratio(timing.stage).median:.2f}×{words}"
    if both.is_clear(timing.stage):
        return text
    return text + (
        " (within the noise)" if both.has_enough_rounds else " (too few calls to be sure)"
    )
