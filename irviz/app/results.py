"""What the runs of a session's stages gave, and how they compare."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace

from irviz.app.background import Background, was_cancelled
from irviz.app.session import Session
from irviz.model.result import Comparison, RunResult, compare
from irviz.model.trace import Trace
from irviz.worker.pool import RUNS, Heard

Then = Callable[[], None]
_Wanted = tuple[str, int]
"""A stage's id, and the number of the input."""

_MOST_TRACES = 8
"""How many stages' values are kept, each in up to its budget of memory."""


@dataclass
class _Of:
    """What is known of the stages of one function, by their ids, and who waits for traces."""

    results: dict[str, RunResult] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    traces: dict[str, Trace] = field(default_factory=dict)
    untraced: dict[str, str] = field(default_factory=dict)
    compared: dict[tuple[str, str], Comparison] = field(default_factory=dict)
    waiting: list[tuple[frozenset[_Wanted], Then]] = field(default_factory=list)


class Results:
    """Runs stages beside the kernel and keeps what they gave, for each function.

    `changed` is called whenever there is something new to show, `failed` with an exception of
    what shows it.
    """

    def __init__(self, changed: Callable[[], None], failed: Callable[[Exception], None]) -> None:
        self.background = Background(RUNS.cancel, changed, failed)
        self._by_function: dict[str, _Of] = {}
        self._function = ""

    def look_at(self, function: str) -> None:
        """Keep the results of this function's runs from now on."""
        self._function = function

    def clear(self) -> None:
        """Forget everything: what functions are called with is another now."""
        self.cancel()
        self._by_function = {}

    def cancel(self) -> None:
        """Cancel what runs and forget what waits."""
        for of in self._by_function.values():
            for wanted, _ in of.waiting:
                of.untraced.update((stage_id, "it was cancelled") for stage_id, _ in wanted)
            of.waiting = []
        self.background.cancel()

    @property
    def _now(self) -> _Of:
        return self._by_function.setdefault(self._function, _Of())

    @property
    def results(self) -> dict[str, RunResult]:
        """The last result of each stage, by its id."""
        return self._now.results

    @property
    def errors(self) -> dict[str, str]:
        """Why a stage could not be run, by its id."""
        return self._now.errors

    @property
    def traces(self) -> dict[str, Trace]:
        """The last trace of each of the stages that were traced last, by its id."""
        return self._now.traces

    @property
    def untraced(self) -> dict[str, str]:
        """Why the values of a stage could not be recorded, by its id."""
        return self._now.untraced

    def is_running(self, stage_id: str) -> bool:
        """Tell whether a stage runs, or is about to."""
        return any(self._is_of(stage_id, key) for key in self.background.keys)

    def is_waiting(self, stage_id: str) -> bool:
        """Tell whether a stage is about to run, when something else is done."""
        is_next = not self._is_of(stage_id, self.background.key)
        return is_next and self.is_running(stage_id)

    def _is_of(self, stage_id: str, key: Hashable) -> bool:
        return isinstance(key, tuple) and key[:2] == (self._function, stage_id)

    def comparison(self, stage_id: str, reference: str) -> Comparison | None:
        """Return how two stages compare, None when not both were run."""
        now = self._now
        if stage_id == reference or not {stage_id, reference} <= now.results.keys():
            return None
        pair = (stage_id, reference)
        if pair not in now.compared:  # the badges of all stages are shown at every step
            now.compared[pair] = compare(now.results[stage_id], now.results[reference])
        return now.compared[pair]

    def run(self, session: Session, stage_ids: Sequence[str], *, again: bool = False) -> None:
        """Run stages that have not been run, or all of these again."""
        for stage_id in dict.fromkeys(stage_ids):
            is_known = stage_id in self.results and not again
            is_known = is_known or self.is_running(stage_id)
            if not is_known and not session.stage(stage_id).error:
                self._run(session, stage_id, None)

    def trace(
        self,
        session: Session,
        stage_ids: Sequence[str],
        case: int,
        then: Then | None = None,
    ) -> None:
        """Record the values of one input in stages where that was not done, and then do more.

        That is done as well where they could not be recorded (`untraced`), but not when it was
        cancelled, or another function is looked at by then.
        """
        of = self._now
        for one in of.traces.keys() & set(stage_ids):  # those that go first are not looked at
            of.traces[one] = of.traces.pop(one)
        wanted = frozenset(
            (one, case)
            for one in stage_ids
            if (one not in of.traces or of.traces[one].case != case)
            and not session.stage(one).error
        )
        if then is not None and not wanted:
            then()
        elif then is not None and (wanted, then) not in of.waiting:
            of.waiting.append((wanted, then))
        for stage_id in dict.fromkeys(stage_ids):
            if (stage_id, case) in wanted:
                self._run(session, stage_id, case)

    def _run(self, session: Session, stage_id: str, case: int | None) -> None:
        of = self._now

        def job(heard: Heard) -> RunResult:
            is_traced = case is not None
            return session.run(stage=stage_id, trace=is_traced, case=case or 0, heard=heard)

        def done(answer: object) -> None:
            _take(of, stage_id, case, answer)
            if case is not None:
                self._go_on(of, (stage_id, case), answer)

        what = f"stage {stage_id}" if case is None else f"values of stage {stage_id}"
        self.background.do((self._function, stage_id, case), what, job, done)

    def _go_on(self, of: _Of, settled: _Wanted, answer: object) -> None:
        """Do what waited for a trace, when all that it waits for is there."""
        waiting, of.waiting = of.waiting, []
        ready: list[Then] = []
        for wanted, then in waiting:
            left = wanted - {settled}
            if left:
                of.waiting.append((left, then))
            elif not was_cancelled(answer):
                ready.append(then)
        for then in ready:
            if of is self._now:
                then()


def _take(of: _Of, stage_id: str, case: int | None, answer: object) -> None:
    """Keep what a run gave; one that was cancelled leaves all as it was."""
    if isinstance(answer, RunResult):
        if answer.trace is not None:
            of.traces.pop(stage_id, None)
            of.traces[stage_id] = answer.trace
            of.untraced.pop(stage_id, None)
            while len(of.traces) > _MOST_TRACES:
                del of.traces[next(iter(of.traces))]
        of.results[stage_id] = replace(answer, trace=None)
        of.errors.pop(stage_id, None)
    elif was_cancelled(answer):
        if case is not None:
            of.untraced[stage_id] = "it was cancelled"
        return
    else:
        if case is not None:
            of.untraced[stage_id] = str(answer)
        if case is None or (stage_id not in of.results and not isinstance(answer, ValueError)):
            of.results.pop(stage_id, None)  # what it gives now is not known
            of.errors[stage_id] = str(answer) or type(answer).__name__
    of.compared = {pair: one for pair, one in of.compared.items() if stage_id not in pair}
