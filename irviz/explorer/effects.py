"""Side effects of actions: runs, measurements, trials and files.

Everything slow, and everything with an effect outside the state, is started here and reported as an
action.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from irviz.errors import UntrustedError
from irviz.explorer import actions
from irviz.explorer.actions import Action
from irviz.explorer.change_counts import Counts, iter_change_counts
from irviz.explorer.downloads import file, file_name, file_of
from irviz.explorer.html_file import page_content, page_in_steps
from irviz.explorer.jobs.incremental import Incremental, check_wanted
from irviz.explorer.jobs.job_queue import Job, JobQueue
from irviz.explorer.selectors import bisection_words, call_key, location, selected_trace
from irviz.explorer.state import (
    FIRST,
    BisectionKey,
    CallKey,
    ChangesKey,
    CheckName,
    ComparisonKey,
    File,
    Inquiry,
    Making,
    Preview,
    PreviewKey,
    RunKey,
    State,
    StepsKey,
    TimingKey,
    ValueKey,
)
from irviz.explorer.store import Store
from irviz.ir.module_functions import relax_functions
from irviz.model.diff.diff_result import NodeChange
from irviz.model.graph.graph import NodeId
from irviz.model.runs.run_result import RunResult
from irviz.runtime.run import TraceRequest, error_summary
from irviz.session.bisect import Bisection, bisect
from irviz.session.divergence_report import compare_traces
from irviz.session.run_stages import node_arrays
from irviz.session.schedule_times import ScheduleStages, ScheduleTimes, measure_schedule
from irviz.session.session import Session
from irviz.session.stage_diff import diff_modules
from irviz.transforms.apply_transform import apply_transform, try_transform
from irviz.transforms.kernels.candidates import Candidate, iter_candidates
from irviz.transforms.schedules.schedule_step import ScheduleStep
from irviz.transforms.transform import Transform
from irviz.worker.supervisor import RUNS, OnProgress

_IDLE_SECONDS, _LOOK_SECONDS = 2.0, 0.1
"""Changes are counted after this much idle time, because two threads share one processor.
"""
_LONG_SECONDS = 0.5
_Step = TypeVar("_Step")
_TOLD_SECONDS = 0.3
"""How often the progress of a file is reported, as each report updates the whole explorer."""
_Made = str | File
"""Progress messages of a file, and finally the file."""


class Effects:
    """Starts what a state or an action requires; reports by actions, in the kernel's thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._acted = time.monotonic()
        self._queue = JobQueue(
            RUNS.cancel,
            self._report,
            lambda failure: self._say(error_summary(failure), is_error=True),
        )
        self._making = Incremental(store.dispatch)
        self._cancelled = threading.Event()
        self._tried: CallKey | None = None
        self._tries = Incremental(self._offer)
        self._counts = Incremental[Counts](self._tell_counts)
        store.subscribe(self._follow)
        store.listen(self._perform)

    def cancel(self) -> None:
        """Cancel all jobs and trials."""
        self._cancelled.set()
        self._queue.cancel()
        self._making.leave()
        self._tries.leave()
        self._counts.leave()

    # --- what follows from the state -----------------------------------------------------------

    def _follow(self, state: State, before: State) -> None:
        results = before.function_runs.results
        files = [stage.files for stage in before.session.stages if stage.id in results]
        asked = frozenset[str]().union(*files)  # the user has asked for a run of these
        if state.epoch != before.epoch:  # what runs now is given what is out of date
            self._queue.cancel()
            if state.runs_new_stages:
                self._run(state, [FIRST, *state.pair[::-1]], asked=asked)
        elif state.session is not before.session and state.runs_new_stages:
            known = {stage.id for stage in before.session.stages}
            new = [s.id for s in state.session.stages if s.id not in known and not s.error]
            if new:
                self._run(state, [FIRST, state.pair[1], *new], asked=asked)
        if state.inquiry is not None and state.inquiry is not before.inquiry:
            self._inquire(state, state.inquiry)
        self._try(state)
        is_same = state.session.stages == before.session.stages
        if state is before or not is_same or state.wanted_function != before.wanted_function:
            self._counts.follow_later(iter_change_counts(state, self._wait))

    def _wait(self) -> None:
        """Wait until the user has been idle for a while."""
        while time.monotonic() - self._acted < _IDLE_SECONDS:
            time.sleep(_LOOK_SECONDS)

    def _tell_counts(self, counts: Counts) -> None:
        if counts:
            self._store.dispatch(actions.Report(ChangesKey(), counts))

    def _try(self, state: State) -> None:
        """Try replacements for the callee of the selected call."""
        call = call_key(state)
        if call is not None and not state.session.is_trusted(call.stage):
            call = None
        if call == self._tried:
            return
        self._tried = call
        if call is None:
            self._tries.leave()
        else:
            found = iter_candidates(call.stage.module, call.function, call.node)
            self._tries.follow(self._behind_runs(found), 0 if self._queue.jobs.keys else 1)

    def _behind_runs(self, steps: Iterator[_Step]) -> Iterator[_Step]:
        """Take steps while no stage runs, or while one runs for long."""
        self._wait_for_runs()
        for step in steps:
            yield step
            self._wait_for_runs()

    def _wait_for_runs(self) -> None:
        begin = time.monotonic()
        while self._queue.jobs.keys and time.monotonic() - begin < _LONG_SECONDS:
            time.sleep(_LOOK_SECONDS)

    def _offer(self, found: tuple[Candidate, ...]) -> None:
        if self._tried is not None:
            self._store.dispatch(actions.Report(self._tried, found))

    def _inquire(self, state: State, inquiry: Inquiry) -> None:
        """Record missing traces, or compare the recorded ones."""
        if inquiry.is_recorded:
            self._compare(state)
            return
        for stage_id in inquiry.stages:
            is_known = state.function_runs.has_trace(stage_id, inquiry.case)
            if not is_known and not state.session.stage(stage_id).error:
                self._run_stage(state, stage_id, inquiry.case)

    def _compare(self, state: State) -> None:
        """Compare two traces, fetching values that were not kept."""
        session, pair, traces = state.session, state.pair, state.traces
        if traces is not None:
            self._do(
                ComparisonKey(state.function, traces),
                f"comparing stages {' and '.join(pair)}",
                lambda on_progress: compare_traces(session, pair, traces, on_progress),
            )

    # --- what actions ask for ------------------------------------------------------------------

    def _perform(self, action: Action, state: State) -> None:
        """Perform the side effect of an action, or ask for permission."""
        if not isinstance(action, actions.Report):
            self._acted = time.monotonic()
        try:
            self._act(action, state)
        except UntrustedError as refusal:
            self._store.dispatch(actions.Ask(action, refusal.files))

    def _act(self, action: Action, state: State) -> None:  # noqa: C901 - one case an action
        session = state.session
        match action:
            case actions.Trust(then, _):
                self._store.dispatch(then)
            case actions.Run(stages, again):
                chosen = stages or (state.stage_id,)
                session.check_run("running", *map(session.stage, chosen))
                if not any(map(state.has_function, chosen)):
                    self._say_lost(state)
                    return
                self._run(state, [one for one in (FIRST, state.pair[1]) if one not in chosen])
                self._run(state, chosen, again=again)
            case actions.Cancel():
                self._cancelled.set()
                self._queue.cancel()
                if state.making is not None:
                    self._making.leave()
                    self._store.dispatch(actions.SetField("making", None))
                    self._say(f"{state.making.name} is not made")
            case actions.Measure(every):
                self._measure(state, every)
            case actions.FindPass(check):
                self._find_pass(state, check)
            case actions.Report(BisectionKey(), Bisection() as found):
                if found is state.bisection:
                    self._show_pass(found)
            case actions.MeasureSteps(every):
                session.check_run("measuring a schedule", state.stage)
                self._measure_steps(state.steps, every)
            case actions.Apply(ScheduleStep()) | actions.ReplaySchedule():
                is_wanted = state.measures_steps and session.is_trusted(state.stage)
                if is_wanted and state.failure is None and state.question is None:
                    self._store.dispatch(actions.MeasureSteps())
            case actions.TryTransform(transform):
                self._preview(state, transform)
            case actions.FetchValue():
                self._fetch(state)
            case actions.Save(wanted):
                name = file_name(state, wanted)
                at_once = _once(lambda: file_of(state, wanted))
                self._give(action, name, _page(state, name) if wanted.format == "html" else at_once)
            case actions.SaveDrawing(drawing, name):
                suffix = Path(name).suffix
                self._give(action, name, _once(lambda: file(name, drawing.content(suffix))))
            case actions.CopyScript():
                self._copy_script(session)

    def _measure(self, state: State, every: bool) -> None:
        session, case = state.session, state.case
        pair = dict.fromkeys((FIRST, state.pair[1], state.stage_id))
        wanted = [one.id for one in session.stages] if every else list(pair)
        chosen = tuple(
            one for one in wanted if state.has_function(one) and not session.stage(one).error
        )
        if not chosen:
            self._say_lost(state)
            return
        session.check_run("measuring", *map(session.stage, chosen))
        self._do(
            TimingKey(state.function, chosen, state.epoch),
            "measuring",
            lambda on_progress: session.measure(*chosen, case=case, on_progress=on_progress),
        )

    def _find_pass(self, state: State, check: CheckName) -> None:
        session = state.session
        session.check_trust("finding a pass", *session.tree.lineage())

        def job(on_progress: OnProgress) -> Bisection:
            cancelled = self._cancelled = threading.Event()

            def tell(done: int, count: int, words: str) -> None:
                on_progress(f"{done + 1} of {count}, {words}")

            return bisect(session, check=check, progress=tell, cancel=cancelled)

        key = BisectionKey(state.function, state.stage_id, check, state.epoch)
        self._do(key, "finding the pass", job)

    def _show_pass(self, found: Bisection) -> None:
        """Show the failing stage next to the one before it."""
        wanted: list[Action] = []
        if found.stage is not None and found.before is not None:
            wanted = [actions.Checkout(found.stage.id), actions.Compare(found.before.id)]
        for action in (*wanted, actions.Say(bisection_words(found))):
            self._store.dispatch(actions.Look(action))

    def _measure_steps(self, wanted: ScheduleStages | None, every: bool) -> None:
        if wanted is None:
            return
        store = self._store

        def job(on_progress: OnProgress) -> ScheduleTimes | None:
            if store.state.steps is not wanted:  # something newer waits
                return None
            return measure_schedule(
                wanted, store.state.step_times, everything=every, on_progress=on_progress
            )

        key = StepsKey(wanted.function, wanted.stages[-1].id, wanted.sizes, every)
        self._do(key, f"measuring {wanted.function}", job)

    def _preview(self, state: State, transform: Transform) -> None:
        """Try a transform; the result names the nodes that it would change."""
        if transform.evaluates_code:
            state.session.check_trust(f"trying {transform.label}", state.stage)
        key = PreviewKey(state.stage, state.function, transform)
        self._do(key, f"trying {transform.label}", lambda _: preview(key))

    def _fetch(self, state: State) -> None:
        found, trace, session = location(state), selected_trace(state), state.session
        if found is None or trace is None or found.node not in trace.visits:
            return
        session.check_run("fetching a value", found.stage)
        node, stage_id, case = NodeId(found.node), found.stage.id, trace.case
        self._do(
            ValueKey(state.function, stage_id, node, case, trace[node].value),
            f"fetching {node} of stage {stage_id}",
            lambda on_progress: node_arrays(session, stage_id, node, case, on_progress),
        )

    def _copy_script(self, session: Session) -> None:
        try:
            text = session.to_python()
        except UntrustedError:
            raise
        except Exception as failure:  # whatever it is, the explorer lives on
            self._say(str(failure), is_error=True)
            return
        self._store.dispatch(actions.Copied(text))
        self._say(f"copied {len(text.splitlines())} lines of Python")

    # --- how it is done ------------------------------------------------------------------------

    def _run(
        self,
        state: State,
        stage_ids: Sequence[str],
        *,
        again: bool = False,
        asked: frozenset[str] | None = None,
    ) -> None:
        """Run stages that have no run, or all of these again, as far as they may be run.

        Where `asked` is given, of what is not trusted only stages of these files are run.
        """
        for stage_id in dict.fromkeys(stage_ids):
            is_running = state.is_run_by(stage_id, self._queue.jobs.keys)
            is_known = is_running or (stage_id in state.function_runs.results and not again)
            stage = state.session.stage(stage_id)
            session = state.session
            is_asked = asked is None or stage.files <= asked
            may_run = session.can_run if is_asked else session.is_trusted
            can_run = state.has_function(stage_id) and may_run(stage)
            if not is_known and not stage.error and can_run:
                self._run_stage(state, stage_id, None)

    def _run_stage(self, state: State, stage_id: str, case: int | None) -> None:
        session, key = state.session, RunKey(state.function, stage_id, case, state.epoch)

        def job(on_progress: OnProgress) -> RunResult:
            trace = None if case is None else TraceRequest(case)
            return session.run(stage=stage_id, trace=trace, on_progress=on_progress)

        self._do(key, f"stage {stage_id}" if case is None else f"values of stage {stage_id}", job)

    def _do(self, key: Hashable, name: str, job: Job) -> None:
        """Queue a job, and report its result."""
        dispatch = self._store.dispatch
        self._queue.do(key, name, job, lambda answer: dispatch(actions.Report(key, answer)))

    def _report(self) -> None:
        self._store.dispatch(actions.SetField("jobs", self._queue.jobs))

    def _give(self, action: Action, name: str, steps: Iterator[_Made]) -> None:
        """Make a file and send it to the browser, or report why it cannot be made."""
        self._store.dispatch(actions.SetField("making", Making(name)))
        self._making.follow(_told(action, name, steps), at_once=0)

    def _say_lost(self, state: State) -> None:
        words = f"stage {state.stage_id} has no function {state.function!r} to run"
        self._say(f"{words}: choose another function, or another stage", is_error=True)

    def _say(self, words: str, is_error: bool = False) -> None:
        self._store.dispatch(actions.Say(words, is_error))


def _page(state: State, name: str) -> Iterator[_Made]:
    page = yield from page_in_steps(state)
    yield file(name, page_content(page))


def _once(make: Callable[[], File]) -> Iterator[_Made]:
    yield make()


def _told(action: Action, name: str, steps: Iterator[_Made]) -> Iterator[Action]:
    """Yield actions that report a file's progress now and then, and then the file."""
    told = time.monotonic()
    try:
        for made in steps:
            check_wanted()
            if isinstance(made, File):
                yield actions.Made(made)
                yield actions.Say(f"{made.name} is ready: the browser saves it")
            elif time.monotonic() - told > _TOLD_SECONDS:
                told = time.monotonic()
                yield actions.SetField("making", Making(name, made))
    except UntrustedError as refusal:
        yield actions.Ask(action, refusal.files)
    except Exception as failure:  # whatever it is, the explorer lives on
        yield actions.Say(str(failure), is_error=True)
    yield actions.SetField("making", None)


# --- pass preview ------------------------------------------------------------------------------
#
# Preview what a transform would do to a stage.


_MOST_COMPARED = 2000
"""In functions with more bindings, changed nodes are not determined, which would take seconds."""


def preview(key: PreviewKey) -> Preview:
    """Try a transform in the worker; return what it would change, and which nodes."""
    stage, transform = key.stage, key.transform
    tried = transform.tried_as
    outcome = try_transform(stage.module, tried, look=True) if tried is not None else None
    if outcome is not None and outcome.error:
        return Preview(key, f"it would fail: {outcome.error}", is_error=True)
    if outcome is None or outcome.change is None:
        return Preview(key, "it cannot be tried apart: apply it to see what it changes")
    if not outcome.change:
        return Preview(key, f"it would change {outcome.change}")
    return Preview(key, f"it would change: {outcome.change}", nodes=_changed_nodes(key))


def _changed_nodes(key: PreviewKey) -> tuple[NodeId, ...]:
    """Return the nodes of the stage's function that would be removed, changed or replaced."""
    stage, transform, function = key.stage, key.transform, key.function
    if stage.files or function not in relax_functions(stage.module):
        return ()  # what comes from a file is transformed in the worker alone
    made = apply_transform(stage, transform, stage.id, isolate=False)
    found = diff_modules(stage, made, ("", ""), function).functions
    diff = next((one for one in found if one.before == function), None)
    if made.error or diff is None or len(diff.nodes) > _MOST_COMPARED:
        return ()
    return tuple(
        node for one in diff.nodes if one.change is not NodeChange.SAME for node in one.before
    )
