"""Results of runs, their comparisons and their times, as text and as HTML."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from irviz.model.graph.graph import SEPARATOR, Graph, NodeId
from irviz.model.runs.array_diff import Verdict
from irviz.model.runs.execution_trace import Divergence, NodeDifference, Trace
from irviz.model.runs.run_result import Comparison, OriginVerdict, RunResult
from irviz.model.runs.timing_statistics import THIS_MACHINE, Measurement, MedianInterval, Timing
from irviz.units import first_names, format_duration
from irviz.view.templating import render

if TYPE_CHECKING:
    from markupsafe import Markup


_BADGES: dict[Verdict, tuple[str, str, str]] = {
    Verdict.EQUAL: ("=", "good", "to"),
    Verdict.CLOSE: ("≈", "good", "of"),
    Verdict.DIFFERENT: ("≠", "bad", "from"),
    Verdict.INCOMPARABLE: ("?", "bad", "with"),
}
"""The sign and the class of each verdict, and the preposition that it is followed by."""
assert _BADGES.keys() == set(Verdict), "every verdict has a sign and a class"
_MAX_BARS = 12


def comparison_summary(comparison: Comparison) -> str:
    """Return a comparison in one line: `equal`, `within tolerance, max |Δ| 9.5e-07`."""
    if comparison.verdict is Verdict.EQUAL:
        return "equal"
    if comparison.verdict is Verdict.INCOMPARABLE:
        return f"not comparable: {comparison.reason}"
    return f"{comparison.verdict.value}, max |Δ| {comparison.max_abs_diff:.2g}"


def comparison_details(comparison: Comparison) -> str:
    """Return a comparison in full, one fact a line: the tooltip of its summary."""
    if comparison.verdict is Verdict.INCOMPARABLE:
        return comparison_summary(comparison)
    lines = [f"max |Δ| {comparison.max_abs_diff:.2g}"]
    if comparison.max_relative is not None:
        lines.append(f"max |Δ| / |reference| {comparison.max_relative:.2g}")
    if comparison.max_ulp is not None:
        lines.append(f"at most {comparison.max_ulp:,} ULP (units in the last place) apart")
    if comparison.worst_case is not None and comparison.cases > 1:
        lines.append(f"the largest |Δ| is in case {comparison.worst_case}")
    if comparison.numbers:
        lines.append(f"past the tolerance: {comparison.past:,} of {comparison.numbers:,} numbers")
    return "\n".join([*lines, *filter(None, [comparison.reason])])


def run_summary(result: RunResult) -> str:
    """Return a run in one line: `193 of 200 right, 85 µs an input`."""
    right = "" if result.correct is None else f"{result.correct} of {result.cases} right, "
    build = "" if result.build == "plain" else f", {result.build} build"
    confined = ", sandboxed: no network, no files" if result.is_confined else ""
    return f"{right}{format_duration(result.seconds)} an input{build}{confined}"


class RunBadge(NamedTuple):
    """What is known of a stage's run: how it compares with the first stage's, and itself in a line.

    `kind` is "good", "warn", "bad", "running", or "" for none of these.
    """

    words: str
    kind: str = ""
    details: str = ""
    run: str = ""

    def __str__(self) -> str:
        """Return all of it, one fact a line."""
        return "\n".join(filter(None, [self.words, self.run, self.details]))


def run_badge(result: RunResult | None, comparison: Comparison | None, error: str) -> RunBadge:
    """Return the badge of a stage that is not running; `comparison` is None for the reference."""
    if error:
        return RunBadge("✕ failed", "bad", error)
    if result is None:
        return RunBadge("not run")
    run = run_summary(result)
    if result.origin is not None and (comparison is None or result.origin.is_different):
        badge = _origin_badge(result.origin, run)
    elif comparison is None:
        badge = RunBadge("● reference", "good", run=run)
    else:
        sign, kind, _ = _BADGES[comparison.verdict]
        words = f"{sign} {comparison_summary(comparison)}"
        badge = RunBadge(words, kind, comparison_details(comparison), run)
    if badge.kind != "good" or not result.nans.any():
        return badge
    return badge._replace(words=f"⚠ {badge.words[2:]}, {result.nans.sum():,} NaN", kind="warn")


def run_answer(
    result: RunResult | None,
    comparison: Comparison | None,
    reference: str,
    error: str,
    trace: Trace | None = None,
) -> RunBadge:
    """Return what a run gave, in one line: `✓ equal to 0 · 356 of 360 right · 94 µs`.

    Args:
        comparison: How the results compare with those of the stage `reference`, if they are.
        error: Why there is no result, "" if there is one.
        trace: The values of the nodes, if they were recorded: they tell where a NaN comes from.
    """
    if error:
        return RunBadge(f"✕ failed: {error.strip().splitlines()[0]}", "bad")
    if result is None:
        return RunBadge("")
    sign, kind, facts = "✓", "good", ["ran"]
    if comparison is not None:
        verdict = comparison.verdict
        sign, kind, preposition = _BADGES[verdict]
        sign = "✓" if kind == "good" else sign
        rest = comparison_summary(comparison).removeprefix(verdict.value)
        facts = [f"{verdict.value} {preposition} {reference}{rest}"]
    if count := result.nans.sum():
        node = None if trace is None else trace.first_nan
        where = "" if node is None else f", first at {node_path(node)}"
        sign, kind = ("⚠", "warn") if kind == "good" else (sign, kind)
        facts = [f"{count:,} NaN{where}", *(facts if comparison is not None else ())]
    if result.correct is not None:
        facts.append(f"{result.correct} of {result.cases} right")
    return RunBadge(f"{sign} {' · '.join([*facts, format_duration(result.seconds)])}", kind)


def origin_summary(verdict: OriginVerdict) -> str:
    """Return how a stage compares with its origin in one line: `against torch: equal`."""
    if verdict.comparison is None:
        return f"not compared with {verdict.origin}"
    return f"against {verdict.origin}: {comparison_summary(verdict.comparison)}"


def _origin_badge(verdict: OriginVerdict, run: str) -> RunBadge:
    words = origin_summary(verdict)
    if verdict.comparison is None:
        return RunBadge(words, "", str(verdict), run)
    sign, kind, _ = _BADGES[verdict.comparison.verdict]
    return RunBadge(f"{sign} {words}", kind, str(verdict), run)


def outputs_html(result: RunResult, case: int, *, is_classified: bool = True) -> Markup:
    """Return the outputs of one case: a row of a few scores as bars, other arrays as numbers.

    Args:
        is_classified: Whether a row of scores is a classification of the input.
    """
    prediction = scores = None
    outputs = result.outputs
    if result.classes is not None and is_classified:
        label = None if result.labels is None else int(result.labels[case])
        prediction = int(result.classes[case]), label
        row = outputs[0][case, 0].astype(np.float64)
        if len(row) <= _MAX_BARS:
            scores, outputs = list(_bars(row, prediction[0])), ()
    numbers = [
        (
            f"output {index}: {'×'.join(map(str, output[case].shape)) or 'scalar'}, {output.dtype}",
            np.array2string(output[case], precision=4, threshold=40, edgeitems=3),
        )
        for index, output in enumerate(outputs)
    ]
    return render("run_outputs", prediction=prediction, scores=scores, outputs=numbers)


def _bars(scores: np.ndarray, predicted: int) -> Iterator[tuple[float, float, bool]]:
    """Yield each score, the length of its bar from 0 to 1, and whether it is the largest."""
    finite = scores[np.isfinite(scores)]
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
    for index, score in enumerate(scores):
        share = (score - low) / (high - low) if high > low and math.isfinite(score) else 0.0
        yield score, share, index == predicted


_MAX_NAMES = 3


def node_path(node_id: str) -> str:
    """Return a node's id for display: `lv3/y` for the `y` of the function that `lv3` calls."""
    return node_id.replace(SEPARATOR, "/")


def divergence_summary(
    divergence: Divergence | None, stage: str, reference: str, graph: Graph
) -> str:
    """Describe where two stages diverge in one line.

    For example `stages 2 and 0 differ first at lv1 (relu0): max |Δ| 0.5, 3 of 12,800 numbers;
    everything before is equal`.

    `divergence` is None if no value is known to differ; `graph` is that of the stage.
    """
    if divergence is None:
        return f"stages {stage} and {reference} do not diverge: no value is known to differ"
    name = _named(divergence.node, graph)
    how = f"{name}: {difference_amount(divergence.difference)}"
    if divergence.is_input:
        return f"stages {stage} and {reference} have different inputs: {how}"
    words = [f"stages {stage} and {reference} differ first at {how}"]
    if divergence.between:
        words.append(f"the cause may be {_names(divergence.between)} before it")
    if divergence.absorbed:
        words.append(f"{_names(divergence.absorbed)} before it differed without an effect")
    elif divergence.drift:
        words.append(f"everything before is within tolerance, max |Δ| {divergence.drift:.2g}")
    else:
        words.append("everything before is equal")
    if not divergence.reaches_output:
        words.append("the results do not show it")
    return "; ".join(words)


def difference_amount(difference: NodeDifference) -> str:
    """Return the size of a difference: `max |Δ| 0.5, 3 of 12,800 numbers`."""
    if difference.reason and difference.max_abs != difference.max_abs:
        return difference.reason
    words = (
        f"max |Δ| {difference.max_abs:.2g}, {difference.past:,} of {difference.numbers:,} numbers"
    )
    return f"{words}; {difference.reason}" if difference.reason else words


def difference_summary(difference: NodeDifference, reference: str) -> str:
    """Compare a node's value with that of its counterpart in the reference, in one line.

    For example `within tolerance of lv1 in stage 0, max |Δ| 9.5e-07`.
    """
    where = f"{node_path(difference.reference)} in stage {reference}"
    match difference.verdict:
        case Verdict.EQUAL:
            return f"equal to {where}"
        case Verdict.CLOSE:
            ulp = "" if difference.max_ulp is None else f", {difference.max_ulp:,} ULP"
            return f"within tolerance of {where}, max |Δ| {difference.max_abs:.2g}{ulp}"
        case Verdict.DIFFERENT:
            return f"different from {where}: {difference_amount(difference)}"
        case Verdict.INCOMPARABLE:
            return f"not comparable with {where}: {difference.reason}"
        case _:
            return f"not equal to {where}: its numbers were not kept"


def _named(node_id: NodeId, graph: Graph) -> str:
    at = graph.index.get(node_id)
    callee = "" if at is None else graph.nodes[at].callee
    return f"{node_path(node_id)} ({callee})" if callee else node_path(node_id)


def _names(node_ids: Sequence[NodeId]) -> str:
    return first_names([node_path(one) for one in node_ids], _MAX_NAMES)


# --- Stages side by side: how their results compare, and how long they take -----------------------


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

    __repr__ = __str__

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
    origin = row.result.origin
    verdict = origin_summary(origin) if origin else comparison_summary(row.comparison)
    return (
        row.stage,
        row.label,
        right,
        f"{row.comparison.max_abs_diff:.1e}",
        verdict.partition(",")[0],
        format_duration(row.result.seconds),
    )


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
