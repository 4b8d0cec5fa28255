"""Measure a PrimFunc after each step of its schedule, and compare its results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tvm import tirx

from irviz.errors import CancelledRunError, RunError
from irviz.model.runs.run_result import RunResult, Verdict, compare_runs
from irviz.model.runs.timing_statistics import THIS_MACHINE, Measurement, Timing
from irviz.runtime.run import CallInputs, RunConfig, measure, run
from irviz.runtime.run_jobs import BUDGET, LEAST_ROUNDS, ROUNDS
from irviz.transforms.schedules.schedule_step import ScheduleStep
from irviz.transforms.stage import Stage
from irviz.units import format_duration
from irviz.view.templating import render
from irviz.worker.supervisor import OnProgress

SIZE = 128
"""The value of a symbolic size that is not chosen."""
_SHORT_BUDGET = 0.2
"""The time limit of a quick measurement in seconds, if calls are short."""
_LONG_BUDGET = 3.0
"""The same if calls are long."""
_MAX_ROUNDS = 10
_MAX_OTHERS = 9
"""With the first and the last two this makes twelve; the worker keeps sixteen built modules."""


@dataclass(frozen=True, eq=False)
class ScheduleStages:
    """The stages of a schedule, and the name of the scheduled PrimFunc in them."""

    stages: tuple[Stage, ...]
    function: str
    sizes: tuple[tuple[str, int], ...]
    run_config: RunConfig

    @property
    def call_inputs(self) -> CallInputs:
        """Random inputs with the chosen sizes."""
        return CallInputs(sizes=dict(self.sizes))

    def prim_func(self, stage: Stage) -> tirx.PrimFunc:
        """Return the function in a stage."""
        return stage.module[self.function]

    def step(self, stage: Stage) -> str:
        """Return the primitive that made a stage."""
        step = stage.transform
        if stage is self.stages[0] or not isinstance(step, ScheduleStep):
            return "as it was"
        return step.primitive


@dataclass(frozen=True)
class StepResult:
    """How a PrimFunc's results compare with those of the first stage, and its latest times.

    `seconds` is how long the call took that gave the results; `error` says why it cannot be run.
    """

    verdict: Verdict | None = None
    seconds: float = 0.0
    error: str = ""
    timing: Timing | None = None


@dataclass(frozen=True, eq=False)
class ScheduleTimes:
    """The results of PrimFuncs, and the stages that were measured last, or why none could be.

    `first` is the run of the first stage.
    """

    schedule: ScheduleStages | None = None
    steps: Mapping[tirx.PrimFunc, StepResult] = field(default_factory=dict)
    first: RunResult | None = None
    error: str = ""

    def is_of(self, schedule: ScheduleStages) -> bool:
        """Tell whether these are for the same first PrimFunc, inputs and run configuration."""
        own = self.schedule
        return (
            own is not None
            and (own.function, own.sizes, own.run_config)
            == (schedule.function, schedule.sizes, schedule.run_config)
            and own.prim_func(own.stages[0]).same_as(schedule.prim_func(schedule.stages[0]))
        )

    def summary(self, schedule: ScheduleStages) -> str:
        """Compare the last stage with the previous and the first one, on one line."""
        rows = self._results(schedule)
        first, last = rows[0].timing, rows[-1]
        if last.error or self.error or last.timing is None:
            return last.error or self.error
        text = format_duration(last.timing.spread.median)
        before = rows[-2].timing if len(rows) > 1 else None
        if before is not None:
            was = format_duration(before.spread.median)
            text = f"{was} → {text}, {_ratio(before, last.timing, ' as fast')}"
        if len(rows) > 2 and first is not None:
            text += f"; {_ratio(first, last.timing, ' as fast as without a schedule')}"
        return f"{text}; {_RESULTS[last.verdict]}" if len(rows) > 1 and last.verdict else text

    def html(self, schedule: ScheduleStages) -> str:
        """Return a table of the times of the stages and their ratios to the first, or ""."""
        results = self._results(schedule)
        if not any(one.error or one.timing for one in results):
            return ""
        clock = schedule.run_config.clock if any(one.timing for one in results) else ""
        speeds = [_speed(one, results[0]) for one in results]
        cells = [
            (f"{stage.id} {schedule.step(stage)}", *_cells(one, results[0]), speed)
            for stage, one, speed in zip(schedule.stages, results, speeds, strict=True)
        ]
        clock = "" if clock == THIS_MACHINE else clock
        return str(render("step_times", rows=cells, fastest=max(speeds), clock=clock))

    def step(self, function: tirx.PrimFunc) -> StepResult:
        """Return the result of a PrimFunc, an empty one if it was not run."""
        return self.steps.get(function, StepResult())

    def speeds(self) -> dict[str, float]:
        """Return how many times as fast as the first stage each measured one is, by its id."""
        if self.schedule is None:
            return {}
        results = self._results(self.schedule)
        speeds = {
            stage.id: _speed(one, results[0])
            for stage, one in zip(self.schedule.stages, results, strict=True)
        }
        return {stage_id: speed for stage_id, speed in speeds.items() if speed}

    def _results(self, schedule: ScheduleStages) -> list[StepResult]:
        return [self.step(schedule.prim_func(stage)) for stage in schedule.stages]


def measure_schedule(
    schedule: ScheduleStages,
    known: ScheduleTimes,
    *,
    everything: bool = False,
    on_progress: OnProgress | None = None,
) -> ScheduleTimes:
    """Run the function of each stage that has no run yet, then time the stages alternately.

    Timed are the first stage, the last two, and as many of the others that were run before as can
    be called often enough in a few seconds; with `everything`, all of them, however long it takes.
    If a stage cannot be run, the result has the reason. Raises CancelledRunError.
    """
    if not known.is_of(schedule):
        known = ScheduleTimes()
    stages = schedule.stages if everything else _stages_to_measure(schedule, known)
    steps = {function: replace(step, timing=None) for function, step in known.steps.items()}
    first = known.first
    for stage in stages:
        function = schedule.prim_func(stage)
        if function in steps and not (everything and steps[function].verdict is None):
            continue  # else once more: it may have taken too long, or too much memory
        try:
            result = run(
                stage.module,
                schedule.function,
                schedule.call_inputs,
                config=schedule.run_config,
                on_progress=on_progress,
            )
        except CancelledRunError:
            raise
        except (RunError, ValueError) as failure:
            steps[function] = StepResult(error=str(failure))
            continue
        first = result if stage is schedule.stages[0] else first
        verdict = compare_runs(result, first).verdict if first else None
        steps[function] = StepResult(verdict, result.seconds)
    times = ScheduleTimes(schedule, steps, first)
    good = [stage for stage in stages if not steps[schedule.prim_func(stage)].error]
    try:
        return _measured(times, schedule, good, everything, on_progress)
    except CancelledRunError:
        raise
    except RunError as failure:
        return replace(times, error=str(failure))


def _measured(
    times: ScheduleTimes,
    schedule: ScheduleStages,
    stages: Sequence[Stage],
    everything: bool,
    on_progress: OnProgress | None,
) -> ScheduleTimes:
    """Return the times with a measurement of these stages."""
    functions = [schedule.prim_func(stage) for stage in stages]
    rounds, budget = ROUNDS, BUDGET
    if not everything:
        once = sum(times.step(function).seconds for function in functions)
        rounds = max(min(int(_LONG_BUDGET / max(once, 1e-9)), _MAX_ROUNDS), 1)
        budget = _SHORT_BUDGET
    seconds = measure(
        [stage.module for stage in stages],
        schedule.function,
        schedule.call_inputs,
        names=[f"{stage.id} {schedule.step(stage)}" for stage in stages],
        rounds=rounds,
        seconds=budget,
        config=schedule.run_config,
        on_progress=on_progress,
    )
    measured = {
        function: replace(
            times.step(function), timing=Timing(stage.id, schedule.step(stage), taken)
        )
        for stage, function, taken in zip(stages, functions, seconds, strict=True)
    }
    return replace(times, steps={**times.steps, **measured})


def _stages_to_measure(schedule: ScheduleStages, known: ScheduleTimes) -> list[Stage]:
    """Return the first stage, the last two, and as many known ones before them as time allows."""
    stages = schedule.stages
    first, between, last = stages[:1], stages[1:-2], stages[1:][-2:]
    taken = sum(known.step(schedule.prim_func(stage)).seconds for stage in (*first, *last))
    others: list[Stage] = []
    for stage in reversed(between):
        step = known.step(schedule.prim_func(stage))
        taken += step.seconds
        if len(others) == _MAX_OTHERS or taken * LEAST_ROUNDS > _LONG_BUDGET:
            break
        if step != StepResult():
            others.insert(0, stage)
    return [*first, *others, *last]


# --- The times of a PrimFunc after each step of its schedule, as a line and as a table -----------


_RESULTS = {
    Verdict.EQUAL: "results equal",
    Verdict.CLOSE: "results equal within tolerance",
    Verdict.DIFFERENT: "results differ",
    Verdict.INCOMPARABLE: "results not comparable",
}


def _speed(row: StepResult, first: StepResult) -> float:
    """Return how many times as fast as the first one a step is, 0 if that is not known."""
    if row.timing is None or first.timing is None:
        return 0.0
    if row.timing is first.timing:
        return 1.0
    ratio = Measurement((first.timing, row.timing)).ratio(row.timing.stage).median
    return ratio if math.isfinite(ratio) else 0.0


def _cells(row: StepResult, first: StepResult) -> tuple[str, str, str, str]:
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
