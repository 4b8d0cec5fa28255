"""How long a PrimFunc takes after each step of its schedule, and whether it still does the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape

from tvm import tirx

from irviz.model.measurement import HERE, Measurement, Timing
from irviz.model.result import RunResult, Verdict, compare
from irviz.runtime.measure import BUDGET, LEAST_ROUNDS, ROUNDS
from irviz.runtime.run import CancelledRunError, Given, Place, RunError, measure, run
from irviz.transforms.schedules.schedule import ScheduleStep
from irviz.transforms.stage import Stage
from irviz.worker.pool import Heard

_BUDGET = 0.2
"""How many seconds of calls the stages of a click may take, where calls are short."""
_MOST_SECONDS = 3.0
"""How many they may take where calls are long."""
_ROUNDS = 10
_MOST_OTHERS = 9
"""With the first and the last two, so many stages stay built beside what else runs."""

_HEADS = ("step", "median", "95 % interval", "as fast as the first")
_SAME = {
    Verdict.EQUAL: "results equal",
    Verdict.CLOSE: "results equal within tolerance",
    Verdict.DIFFERENT: "results differ",
    Verdict.INCOMPARABLE: "results not comparable",
}


@dataclass(frozen=True, eq=False)
class Wanted:
    """The stages of a trace, and how the PrimFunc that it schedules is called in them."""

    stages: tuple[Stage, ...]
    function: str
    sizes: tuple[tuple[str, int], ...]
    place: Place

    def prim_func(self, stage: Stage) -> tirx.PrimFunc:
        """Return the function as a stage has it."""
        return stage.module[self.function]


@dataclass(frozen=True)
class Step:
    """What a stage's function was found to do.

    `same` says how its results compare with those of the first stage, `seconds` what a call took
    as these were made, `error` why there are none. `timing` is of the one measurement there is.
    """

    same: Verdict | None = None
    seconds: float = 0.0
    error: str = ""
    timing: Timing | None = None


@dataclass(frozen=True, eq=False)
class StepTimes:
    """Stages measured in turn, by their functions; `first` is what the first of them gave.

    `error` says why there is no measurement.
    """

    wanted: Wanted | None = None
    steps: Mapping[tirx.PrimFunc, Step] = field(default_factory=dict)
    first: RunResult | None = None
    error: str = ""

    def suits(self, wanted: Wanted) -> bool:
        """Tell whether it is of the same function, sizes and place, and has the same first."""
        own = self.wanted
        return (
            own is not None
            and (own.function, own.sizes, own.place)
            == (wanted.function, wanted.sizes, wanted.place)
            and own.prim_func(own.stages[0]).same_as(wanted.prim_func(wanted.stages[0]))
        )

    def line(self, wanted: Wanted) -> str:
        """Say in a line how the last stage compares with the one before and with the first."""
        found = [self.step(wanted, stage) for stage in wanted.stages]
        last = found[-1]
        if last.error or self.error or last.timing is None:
            return last.error or self.error
        words = seconds_text(last.timing.spread.median)
        before, first = found[-2:][0].timing, found[0].timing
        if len(found) > 1 and before is not None:
            was = seconds_text(before.spread.median)
            words = f"{was} → {words}, {_ratio(before, last.timing, ' as fast')}"
        if len(found) > 2 and first is not None:
            words += f"; {_ratio(first, last.timing, ' as fast as without a schedule')}"
        return f"{words}; {_SAME[last.same]}" if len(found) > 1 and last.same else words

    def table(self, wanted: Wanted) -> str:
        """Return a table with a row for each stage: its step, its time, the ratio to the first."""
        found = [self.step(wanted, stage) for stage in wanted.stages]
        if not any(step.error or step.timing for step in found):
            return ""
        head = "".join(f"<th>{escape(text)}</th>" for text in _HEADS)
        rows = []
        for stage, step in zip(wanted.stages, found, strict=True):
            kind = ' class="irviz-step-shown"' if stage is wanted.stages[-1] else ""
            name = escape(f"{stage.id} {_name(stage, wanted)}")
            cells = _cells(step, found[0])
            rows.append(f"<tr{kind}><th>{name}</th>{cells}</tr>")
        clock = wanted.place.clock if any(step.timing for step in found) else HERE
        remark = "" if clock == HERE else f"<p>{escape(f'measured by the clock of {clock}')}</p>"
        body = f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
        return f'<table class="irviz-step-times">{body}</table>{remark}'

    def step(self, wanted: Wanted, stage: Stage) -> Step:
        """Return what is known of a stage, an empty step where nothing is."""
        return self.steps.get(wanted.prim_func(stage), Step())


def measured(
    wanted: Wanted, known: StepTimes, *, everything: bool = False, heard: Heard | None = None
) -> StepTimes:
    """Call the function of each stage where that was not done, and measure all of them in turn.

    These are the first stage, the last two, and the others that are known, as far as they can be
    called often enough in a few seconds; with `everything` all stages, for as long as it takes.
    Why a stage cannot be run is kept. Raises CancelledRunError.
    """
    if not known.suits(wanted):
        known = StepTimes()
    given = Given(sizes=dict(wanted.sizes))
    stages = wanted.stages if everything else _compared(wanted, known)
    steps = {function: replace(step, timing=None) for function, step in known.steps.items()}
    first = known.first
    for stage in stages:
        function = wanted.prim_func(stage)
        if function in steps and not (everything and steps[function].same is None):
            continue  # else once more, as it may have been too long or too large
        try:
            result = run(stage.module, wanted.function, given, place=wanted.place, heard=heard)
        except CancelledRunError:
            raise
        except (RunError, ValueError) as failure:
            steps[function] = Step(error=str(failure))
            continue
        first = result if stage is wanted.stages[0] else first
        same = compare(result, first).verdict if first else None
        steps[function] = Step(same, result.seconds)
    found = StepTimes(wanted, steps, first)
    good = [stage for stage in stages if not steps[wanted.prim_func(stage)].error]
    try:
        return replace(found, steps={**steps, **_timed(wanted, good, steps, everything, heard)})
    except CancelledRunError:
        raise
    except RunError as failure:
        return replace(found, error=str(failure))


def _timed(
    wanted: Wanted,
    stages: Sequence[Stage],
    steps: Mapping[tirx.PrimFunc, Step],
    everything: bool,
    heard: Heard | None,
) -> dict[tirx.PrimFunc, Step]:
    """Measure the function of stages in turn."""
    rounds, budget = ROUNDS, BUDGET
    if not everything:
        once = sum(steps[wanted.prim_func(stage)].seconds for stage in stages)
        rounds = max(min(int(_MOST_SECONDS / max(once, 1e-9)), _ROUNDS), 1)
        budget = _BUDGET
    found = measure(
        [stage.module for stage in stages],
        wanted.function,
        Given(sizes=dict(wanted.sizes)),
        names=[f"{stage.id} {_name(stage, wanted)}" for stage in stages],
        rounds=rounds,
        seconds=budget,
        place=wanted.place,
        heard=heard,
    )
    return {
        function: replace(steps[function], timing=Timing(stage.id, _name(stage, wanted), numbers))
        for stage, numbers in zip(stages, found, strict=True)
        for function in [wanted.prim_func(stage)]
    }


def _compared(wanted: Wanted, known: StepTimes) -> list[Stage]:
    """Return the first stage, the last two, and the known ones before these, while time lasts."""
    first, between, last = wanted.stages[:1], wanted.stages[1:-2], wanted.stages[1:][-2:]
    taken = sum(known.step(wanted, stage).seconds for stage in (*first, *last))
    chosen: list[Stage] = []
    for stage in reversed(between):
        step = known.step(wanted, stage)
        taken += step.seconds
        if len(chosen) == _MOST_OTHERS or taken * LEAST_ROUNDS > _MOST_SECONDS:
            break
        if step != Step():
            chosen.insert(0, stage)
    return [*first, *chosen, *last]


def seconds_text(seconds: float) -> str:
    """Return a time with three digits and the unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{_digits(seconds / size)} {unit}"
    return f"{_digits(seconds / 1e-9)} ns"


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _ratio(reference: Timing, now: Timing, words: str = "") -> str:
    """Say how many times as fast it is now, and whether that is more than noise."""
    both = Measurement((reference, now))
    text = f"{both.ratio(now.stage).median:.2f}×{words}"
    if both.is_clear(now.stage):
        return text
    few = len(now.seconds) < LEAST_ROUNDS
    return f"{text} ({'too few calls to be sure' if few else 'within the noise'})"


def _cells(step: Step, first: Step) -> str:
    if step.error:
        return f'<td colspan="3">{escape(step.error)}</td>'
    if step.timing is None:
        words = "not measured with the others" if step.same else "not measured"
        return f'<td colspan="3">{words}</td>'
    of = step.timing.spread
    against = ""
    if step.timing is not first.timing:
        against = _ratio(first.timing, step.timing) if first.timing else ""
        if step.same not in (Verdict.EQUAL, Verdict.CLOSE, None):
            against += f' <b class="irviz-error">{_SAME[step.same]}</b>'
    low, high = (seconds_text(seconds).split() for seconds in (of.low, of.high))
    interval = " ".join([*low[: 1 if low[1] == high[1] else 2], "to", *high])
    return f"<td>{seconds_text(of.median)}</td><td>{interval}</td><td>{against}</td>"


def _name(stage: Stage, wanted: Wanted) -> str:
    """Return the step that made a stage of a trace."""
    step = stage.transform
    is_step = isinstance(step, ScheduleStep) and stage is not wanted.stages[0]
    return step.primitive if is_step else "as it was"  # type: ignore[union-attr]
