"""What a run and a comparison say, in one line or a small table."""

from __future__ import annotations

import math
from html import escape

import numpy as np

from irviz.model.result import Comparison, RunResult, Verdict

_SIGNS: dict[Verdict, tuple[str, str]] = {
    Verdict.EQUAL: ("=", "good"),
    Verdict.CLOSE: ("≈", "good"),
    Verdict.DIFFERENT: ("≠", "bad"),
    Verdict.INCOMPARABLE: ("?", "bad"),
}
assert _SIGNS.keys() == set(Verdict), "every verdict has a sign"
_MOST_SCORES = 12


def duration(seconds: float) -> str:
    """Return a time with a fitting unit.

    >>> [duration(seconds) for seconds in (85e-6, 1.2e-3, 2.5)]
    ['85 µs', '1.20 ms', '2.50 s']
    """
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.2f} ms" if seconds < 1 else f"{seconds:.2f} s"


def verdict_line(comparison: Comparison) -> str:
    """Return a comparison in words: `equal`, `within tolerance, max |Δ| 9.5e-07`."""
    if comparison.verdict is Verdict.EQUAL:
        return "equal"
    if comparison.verdict is Verdict.INCOMPARABLE:
        return f"not comparable: {comparison.reason}"
    return f"{comparison.verdict.value}, max |Δ| {comparison.max_abs_diff:.2g}"


def comparison_title(comparison: Comparison) -> str:
    """Return all that a comparison says, a line each: the tooltip behind the short line."""
    if comparison.verdict is Verdict.INCOMPARABLE:
        return verdict_line(comparison)
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


def result_line(result: RunResult) -> str:
    """Return a run in words: `193 of 200 right, 85 µs an input`."""
    right = "" if result.correct is None else f"{result.correct} of {result.cases} right, "
    return f"{right}{duration(result.seconds)} an input"


def badge_html(result: RunResult | None, comparison: Comparison | None, error: str) -> str:
    """Return the badge of a stage: failed, not run, or how it compares and what it took.

    Its tooltip has the error, or the whole of the comparison. That of a stage that runs now or
    waits is `running_html`.
    """
    if error:
        return f'<span class="irviz-badge bad" title="{escape(error)}">✕ failed</span>'
    if result is None:
        return '<span class="irviz-badge">not run</span>'
    words = f"<small>{escape(result_line(result))}</small>"
    if comparison is None:
        return f'<span class="irviz-badge good">reference</span> {words}'
    sign, colour = _SIGNS[comparison.verdict]
    verdict = f"{sign} {verdict_line(comparison)}"
    title = escape(comparison_title(comparison))
    return f'<span class="irviz-badge {colour}" title="{title}">{escape(verdict)}</span> {words}'


def running_html(waits: bool = False) -> str:
    """Return the badge of a stage that runs now, or waits until another one has run."""
    return f'<span class="irviz-badge running">… {"waiting" if waits else "running"}</span>'


def outputs_html(result: RunResult, case: int) -> str:
    """Return the outputs of one case: scores as bars where they are a row, else numbers."""
    parts = []
    if result.classes is not None:
        scores = result.outputs[0][case, 0].astype(np.float64)
        chosen = int(result.classes[case])
        label = None if result.labels is None else int(result.labels[case])
        parts.append(_prediction(chosen, label))
        if len(scores) <= _MOST_SCORES:
            parts.append(_bars(scores, chosen))
            return "".join(parts)
    for index, output in enumerate(result.outputs):
        shape = "×".join(map(str, output[case].shape)) or "scalar"
        numbers = np.array2string(output[case], precision=4, threshold=40, edgeitems=3)
        parts.append(f"<h5>output {index}: {shape}, {output.dtype}</h5>")
        parts.append(f"<pre>{escape(numbers)}</pre>")
    return f'<div class="irviz-outputs">{"".join(parts)}</div>'


def _prediction(chosen: int, label: int | None) -> str:
    if label is None:
        return f"<p>predicted class <b>{chosen}</b></p>"
    mark = '<span class="irviz-badge good">right</span>'
    if chosen != label:
        mark = f'<span class="irviz-badge bad">wrong, it is {label}</span>'
    return f"<p>predicted class <b>{chosen}</b> {mark}</p>"


def _bars(scores: np.ndarray, chosen: int) -> str:
    finite = scores[np.isfinite(scores)]
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
    rows = []
    for index, score in enumerate(scores):
        share = (score - low) / (high - low) if high > low and math.isfinite(score) else 0.0
        row = ' class="chosen"' if index == chosen else ""
        rows.append(
            f"<tr{row}><th>{index}</th><td><meter min='0' max='1' value='{share:.3f}'></meter></td>"
            f"<td>{score:.2f}</td></tr>"
        )
    return f'<table class="irviz-scores">{"".join(rows)}</table>'
