"""Measure a PrimFunc after each step of its schedule, and compare its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tvm import tirx

from irviz.errors import CancelledRunError, RunError
from irviz.model.runs.measurement import Timing
from irviz.model.runs.run_result import RunResult, Verdict, compare_runs
from irviz.runtime.jobs.time_in_turn import BUDGET, LEAST_ROUNDS, ROUNDS
from irviz.runtime.run import CallInputs, RunConfig, measure, run
from irviz.transforms.schedules.schedule_step import ScheduleStep
from irviz.transforms.stage import Stage
from irviz.view.text.step_times import StepRow, step_times_html, step_times_summary
from irviz.worker.supervisor import OnProgress

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
    """The results known for a PrimFunc.

    Attributes:
        verdict: How its results compare with those of the first stage.
        seconds: The duration of the call that produced these results.
        error: Why it cannot be run.
        timing: Its times in the latest measurement.
    """

    verdict: Verdict | None = None
    seconds: float = 0.0
    error: str = ""
    timing: Timing | None = None


@dataclass(frozen=True, eq=False)
class ScheduleTimes:
    """The results of PrimFuncs, and the latest measurement of them.

    Attributes:
        schedule: The stages that were measured last.
        steps: The results, by the function.
        first: The run of the first stage.
        error: Why there is no measurement.
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
        rows = self._rows(schedule)
        return rows[-1].error or self.error or step_times_summary(rows)

    def html(self, schedule: ScheduleStages) -> str:
        """Return a table with a row for each stage, "" without times."""
        return step_times_html(self._rows(schedule), schedule.run_config.clock)

    def step(self, function: tirx.PrimFunc) -> StepResult:
        """Return the result of a PrimFunc, an empty one if it was not run."""
        return self.steps.get(function, StepResult())

    def _rows(self, schedule: ScheduleStages) -> list[StepRow]:
        return [
            StepRow(f"{stage.id} {schedule.step(stage)}", found.verdict, found.timing, found.error)
            for stage in schedule.stages
            for found in [self.step(schedule.prim_func(stage))]
        ]


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
