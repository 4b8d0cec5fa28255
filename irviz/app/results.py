"""What the runs of a session's stages gave, and how they compare."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from irviz.app.background import Background
from irviz.app.session import Session
from irviz.model.result import Comparison, RunResult, compare
from irviz.model.trace import Trace
from irviz.runtime.run import CancelledRunError
from irviz.worker.pool import RUNS, Heard


@dataclass
class _Of:
    """What is known of the stages of one function, by their ids."""

    results: dict[str, RunResult] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    traces: dict[str, Trace] = field(default_factory=dict)
    compared: dict[tuple[str, str], Comparison] = field(default_factory=dict)


class Results:
    """Runs stages beside the kernel and keeps what they gave, for each function.

    `changed` is called whenever there is something new to show.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self.background = Background(RUNS.cancel, changed)
        self._by_function: dict[str, _Of] = {}
        self._function = ""

    def look_at(self, function: str) -> None:
        """Keep the results of this function's runs from now on."""
        self._function = function

    def clear(self) -> None:
        """Forget everything: what functions are called with is another now."""
        self.background.cancel()
        self._by_function = {}

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
        """The last trace of each stage, by its id."""
        return self._now.traces

    def is_running(self, stage_id: str) -> bool:
        """Tell whether a stage runs, or is about to."""
        return stage_id in self.background.names

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
        then: Callable[[], None] | None = None,
    ) -> None:
        """Record the values of one input in stages where that was not done, and then do more."""
        wanted = [
            one
            for one in dict.fromkeys(stage_ids)
            if (one not in self.traces or self.traces[one].case != case)
            and not session.stage(one).error
        ]
        if not wanted:
            if then is not None:
                then()
            return
        for stage_id in wanted:
            self._run(session, stage_id, case, then if stage_id == wanted[-1] else None)

    def _run(
        self,
        session: Session,
        stage_id: str,
        case: int | None,
        then: Callable[[], None] | None = None,
    ) -> None:
        of = self._now

        def job(heard: Heard) -> RunResult:
            is_traced = case is not None
            return session.run(stage=stage_id, trace=is_traced, case=case or 0, heard=heard)

        def done(answer: object) -> None:
            if isinstance(answer, RunResult):
                if answer.trace is not None:
                    of.traces[stage_id] = answer.trace
                of.results[stage_id] = replace(answer, trace=None)
                of.errors.pop(stage_id, None)
                of.compared = {
                    pair: one for pair, one in of.compared.items() if stage_id not in pair
                }
                if then is not None:
                    then()
            elif isinstance(answer, CancelledRunError):
                of.errors.pop(stage_id, None)
            else:
                of.errors[stage_id] = str(answer)

        self.background.do(stage_id, job, done)
