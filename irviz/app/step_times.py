"""How long a PrimFunc takes after each step of its schedule, and whether it still does the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from tvm import tirx

from irviz.model.result import Verdict, compare
from irviz.runtime.inputs import InputError
from irviz.runtime.prim_func import Measured, measure_prim_func
from irviz.runtime.run import RunError
from irviz.transforms.schedules.schedule import ScheduleStep
from irviz.transforms.stage import Stage

_Key = tuple[tirx.PrimFunc, tuple[tuple[str, int], ...]]

_SAME = {
    Verdict.EQUAL: "results equal",
    Verdict.CLOSE: "results equal within tolerance",
    Verdict.DIFFERENT: "results differ",
    Verdict.INCOMPARABLE: "results not comparable",
}


class StepTimes:
    """What was measured, kept by PrimFunc."""

    def __init__(self) -> None:
        self._known: dict[_Key, Measured | str] = {}

    def measure(self, stages: Sequence[Stage], function: str, sizes: Mapping[str, int]) -> None:
        """Measure the PrimFunc in these stages, where it was not yet; why not is kept as well."""
        for stage in stages:
            key = _key(stage, function, sizes)
            if key not in self._known:
                try:
                    measured = measure_prim_func(stage.module, function, sizes=sizes)
                    self._known[key] = measured
                except (RunError, InputError) as failure:
                    self._known[key] = str(failure)

    def of(self, stage: Stage, function: str, sizes: Mapping[str, int]) -> Measured | str:
        """Return what was measured, or why it was not."""
        return self._known.get(_key(stage, function, sizes), "")

    def line(self, stages: Sequence[Stage], function: str, sizes: Mapping[str, int]) -> str:
        """Say in a line how the last stage compares with the one before and with the first."""
        if not stages:
            return ""
        last = self.of(stages[-1], function, sizes)
        if isinstance(last, str):
            return last
        before = self.of(stages[-2], function, sizes) if len(stages) > 1 else ""
        first = self.of(stages[0], function, sizes)
        now = seconds_text(last.time.median)
        if isinstance(before, str) or isinstance(first, str):
            return now
        words = f"{seconds_text(before.time.median)} → {now}, {_faster(before, last)}"
        if len(stages) > 2:
            words += f"; {ratio(first, last)} as fast as without a schedule"
        return f"{words}; {_SAME[compare(last.result, first.result).verdict]}"

    def table(
        self, stages: Sequence[Stage], shown: str, function: str, sizes: Mapping[str, int]
    ) -> str:
        """Return a table with a row for each stage: its step, its time, the ratio to the first."""
        first = self.of(stages[0], function, sizes) if stages else ""
        rows = []
        for number, stage in enumerate(stages):
            step = stage.transform
            is_step = number and isinstance(step, ScheduleStep)
            name = step.primitive if is_step else "as it was"  # type: ignore[union-attr]
            now = self.of(stage, function, sizes)
            if isinstance(now, str):
                cells = f'<td colspan="3">{escape(now)}</td>'
            else:
                cells = f"<td>{seconds_text(now.time.median)}</td><td>{_spread(now)}</td><td>"
                if number and not isinstance(first, str):
                    verdict = compare(now.result, first.result).verdict
                    wrong = verdict not in (Verdict.EQUAL, Verdict.CLOSE)
                    cells += ratio(first, now)
                    cells += f' <b class="irviz-error">{_SAME[verdict]}</b>' if wrong else ""
                cells += "</td>"
            kind = ' class="irviz-step-shown"' if stage.id == shown else ""
            rows.append(f"<tr{kind}><th>{escape(stage.id)} {escape(name)}</th>{cells}</tr>")
        return f'<table class="irviz-step-times">{"".join(rows)}</table>' if rows else ""


def seconds_text(seconds: float) -> str:
    """Return a time with three digits and the unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{_digits(seconds / size)} {unit}"
    return f"{_digits(seconds / 1e-9)} ns"


def ratio(reference: Measured, now: Measured) -> str:
    """Return how many times as fast it is now."""
    return f"{reference.time.median / now.time.median:.2f}×"


def _faster(reference: Measured, now: Measured) -> str:
    one, other = reference.time, now.time
    is_clear = one.high < other.low or other.high < one.low
    return f"{ratio(reference, now)} as fast" + ("" if is_clear else " (within the spread)")


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _spread(measured: Measured) -> str:
    time = measured.time
    return f"{seconds_text(time.low)} to {seconds_text(time.high)}" if time.rounds > 1 else ""


def _key(stage: Stage, function: str, sizes: Mapping[str, int]) -> _Key:
    return stage.module[function], tuple(sorted(sizes.items()))
