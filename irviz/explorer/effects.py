"""Side effects of actions: runs, measurements, trials and files.

Everything slow, and everything with an effect outside the state, is started here and reported as an
action.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path

from irviz.errors import UntrustedError
from irviz.explorer import actions, shown_schedule
from irviz.explorer.background_actions import draw, iter_ahead, look
from irviz.explorer.background_runner import RUN, Job, Work, in_steps
from irviz.explorer.downloads import file_name, file_of
from irviz.explorer.reducer import asked_stage, reduce
from irviz.explorer.save_html import page_content, page_in_steps
from irviz.explorer.script_pane_data import printed
from irviz.explorer.selected_node import call_key, location, selected_trace
from irviz.explorer.stage_rows import FEW_NODES, function_changes, functions_key, iter_change_counts
from irviz.explorer.state import (
    FIRST,
    BisectionKey,
    ChangesKey,
    CheckName,
    ComparisonKey,
    File,
    Inquiry,
    Making,
    PreviewKey,
    Question,
    RunKey,
    State,
    StepsKey,
    TimingKey,
    TrialsKey,
    ValueKey,
    unchanged,
)
from irviz.explorer.store import Store
from irviz.explorer.suggested_passes import iter_trials, preview
from irviz.model.graph.graph import NodeId
from irviz.model.runs.run_result import RunResult
from irviz.runtime.run import TraceRequest
from irviz.session.bisect import Bisection, bisect
from irviz.session.measure_schedule import ScheduleStages, ScheduleTimes, measure_schedule
from irviz.session.run_stages import compare_traces, node_arrays
from irviz.session.session import Session
from irviz.transforms.kernels.candidates import iter_candidates
from irviz.transforms.schedules.legal_steps import possible_steps, tried_steps
from irviz.transforms.schedules.schedule_step import ScheduleStep
from irviz.transforms.stage import Transform

_IDLE_SECONDS, _LOOK_SECONDS = 2.0, 0.1
"""Many changes are counted after this much idle time, as two threads share one processor."""
_FEW_STAGES = 40
"""Of so many stages, the changes of small functions are counted at once."""
_AHEAD_SECONDS = 0.2
"""Stages are drawn ahead after this much idle time, and this long after one another."""
_LONG_SECONDS = 0.5
_WAIT_SECONDS = 0.015
"""How long the kernel waits for a picture: with a cached one, switching threads would take longer.
"""
_PICTURE, _TOLD, _TRIES, _STEPS = "picture", "what is drawn is told", "tries", "steps"
_TRIALS = "trials"
_COUNTS, _FEW_COUNTS, _FUNCTIONS = "counts", "few counts", "functions"
_FILE, _SCRIPT = "file", "script"
"""The keys of jobs of which only the newest is wanted."""
_Made = str | File
"""Progress messages of a file, and finally the file."""


class Effects:
    """Starts what a state or an action requires; reports by actions, in the kernel's thread.

    Progress of files is told every `told_seconds`, as that updates the whole explorer; after this
    long, the status bar says what is being drawn.
    """

    def __init__(self, store: Store, told_seconds: float = 0.3) -> None:
        self._store, self._runner, self._told_seconds = store, store.runner, told_seconds
        self._acted = time.monotonic()
        self._tried: dict[str, Hashable] = {}
        store.subscribe(self._follow)
        store.listen(self._perform)

    # --- what follows from the state -----------------------------------------------------------

    def _follow(self, state: State, before: State) -> None:
        results = before.function_runs.results
        files = [stage.files for stage in before.session.stages if stage.id in results]
        asked = frozenset[str]().union(*files)  # the user has asked for a run of these
        if state.epoch != before.epoch:  # what runs now is given what is out of date
            self._runner.cancel(RUN)
            if state.runs_new_stages:
                self._run(state, [FIRST, *state.pair[::-1]], asked=asked)
        elif state.session is not before.session and state.runs_new_stages:
            known = {stage.id for stage in before.session.stages}
            new = [s.id for s in state.session.stages if s.id not in known and not s.error]
            if new:
                self._run(state, [FIRST, state.pair[1], *new], asked=asked)
        is_new = state.inquiry is not before.inquiry or state.traces != before.traces
        if state.inquiry is not None and is_new:
            self._inquire(state, state.inquiry)
        callee = shown_schedule.called_prim_func(state)
        if callee and state.selection is not before.selection:
            self._store.dispatch(actions.SetField("prim_func", callee))
        self._try(state)
        self._try_steps(state)
        self._try_passes(state)
        if state.asked is not before.asked:
            self._look(state, before)
        is_same = state.session.stages == before.session.stages
        if state is before or not is_same or state.wanted_function != before.wanted_function:
            self._count_changes(state)
        if state is before or not unchanged(_looked_at(state), _looked_at(before)):
            self._draw_ahead(state)
            self._compare_functions(state)

    def _look(self, state: State, before: State) -> None:
        """Draw what was asked for; the state changes when that is there."""
        if not state.asked:
            self._runner.drop(_PICTURE)
            self._runner.drop(_TOLD)
            return
        if not before.asked:
            seconds = self._told_seconds
            self._runner.replace(_TOLD, lambda _: None, self._tell_drawing, delay=seconds)
        self._runner.replace(
            _PICTURE,
            lambda job: actions.Show(state, draw(partial(look, state), job.check)),
            self._store.dispatch,
            wait=_WAIT_SECONDS,
        )

    def _tell_drawing(self, _: object) -> None:
        self._store.dispatch(actions.SetField("drawing", asked_stage(self._store.state)))

    def _draw_ahead(self, state: State) -> None:
        """Print the current stage and draw what a key leads to, during idle time.

        What the user asks for takes precedence.
        """
        if not state.asked:
            self._runner.replace(_PICTURE, partial(_draw_ahead, state), delay=_AHEAD_SECONDS)

    def _count_changes(self, state: State) -> None:
        told = partial(self._report, ChangesKey())
        if len(state.session.stages) <= _FEW_STAGES:
            few = in_steps(iter_change_counts(state, most=FEW_NODES))
            self._runner.replace(_FEW_COUNTS, few, told=told)
        self._runner.replace(_COUNTS, self._count, told=told, delay=_IDLE_SECONDS)

    def _compare_functions(self, state: State) -> None:
        """Find out what became of each function, at once where they are listed for a lost one."""
        key = functions_key(state)
        if key is None or key in state.function_changes:
            self._runner.drop(_FUNCTIONS)
            return
        is_lost = not state.has_function(state.stage_id)
        self._runner.replace(
            _FUNCTIONS,
            lambda _: function_changes(state, key),
            partial(self._report, key),
            delay=_AHEAD_SECONDS if is_lost else _IDLE_SECONDS,
        )

    def _count(self, job: Job) -> None:
        """Count how much the other stages changed, while the user is idle."""

        def wait() -> None:
            job.check()
            while time.monotonic() - self._acted < _IDLE_SECONDS:
                job.check()
                time.sleep(_LOOK_SECONDS)

        in_steps(iter_change_counts(self._store.state, wait))(job)

    def _try(self, state: State) -> None:
        """Try replacements for the callee of the selected call."""
        call = call_key(state)
        if call is not None and not state.session.is_trusted(call.stage):
            call = None
        if not self._is_new(_TRIES, call) or call is None:
            return
        found = iter_candidates(call.stage.module, call.function, call.node)
        told = partial(self._report, call)
        if not self._runner.pending(RUN):  # else a run that has begun may last
            for one in islice(found, 1):
                told(one)
        self._runner.replace(_TRIES, in_steps(self._behind_runs(found)), told=told)

    def _try_steps(self, state: State) -> None:
        """Find out which steps are legal for the chosen loops and blocks."""
        key = shown_schedule.steps_offered_key(state)
        if not self._is_new(_STEPS, key) or key is None:
            return
        loops, addresses = shown_schedule.nest(state), shown_schedule.loop_addresses(state)

        def work(job: Job) -> object:
            offers = possible_steps(loops, [addresses[one] for one in key.ids])
            return tried_steps(key.stage.module, offers, job.check)

        self._runner.replace(_STEPS, work, partial(self._report, key))

    def _try_passes(self, state: State) -> None:
        """Find out what the suggested passes would change, while they are listed."""
        is_listed = state.tab == "Transform" and state.has_function(state.stage_id)
        key = TrialsKey(state.stage, state.function) if is_listed else None
        if self._is_new(_TRIALS, key) and key is not None and not state.stage.error:
            trials = in_steps(self._behind_runs(iter_trials(key)))
            told = partial(self._report, key)
            self._runner.replace(_TRIALS, trials, told=told, delay=_AHEAD_SECONDS)

    def _is_new(self, job: str, key: Hashable) -> bool:
        """Tell whether a job is for another key than before, and end it for that one."""
        if self._tried.get(job) == key:
            return False
        self._tried[job] = key
        self._runner.drop(job)
        return True

    def _report(self, key: Hashable, answer: object) -> None:
        self._store.dispatch(actions.Report(key, answer))

    def _behind_runs(self, steps: Iterator[object]) -> Iterator[object]:
        """Take steps while no stage runs, or while one runs for long."""
        self._wait_for_runs()
        for step in steps:
            yield step
            self._wait_for_runs()

    def _wait_for_runs(self) -> None:
        begin = time.monotonic()
        while self._store.state.jobs.keys and time.monotonic() - begin < _LONG_SECONDS:
            time.sleep(_LOOK_SECONDS)

    def _inquire(self, state: State, inquiry: Inquiry) -> None:
        """Record missing traces, or compare the recorded ones, fetching values not kept."""
        session, pair, traces = state.session, state.pair, state.traces
        runs = state.function_runs
        missing = [one for one in inquiry.stages if not runs.has_trace(one, inquiry.case)]
        for stage_id in missing:
            if not session.stage(stage_id).error:
                self._run_stage(state, stage_id, inquiry.case)
        if inquiry.compares and not missing and traces is not None:
            self._do(
                ComparisonKey(state.function, traces),
                f"comparing stages {' and '.join(pair)}",
                lambda job: compare_traces(session, pair, traces, job.tell),
            )

    # --- what actions ask for ------------------------------------------------------------------

    def _perform(self, action: actions.Action, state: State) -> None:
        """Perform the side effect of an action, or ask for permission."""
        if not isinstance(action, actions.Report):
            self._acted = time.monotonic()
        try:
            self._act(action, state)
        except UntrustedError as refusal:
            self._store.dispatch(_asking(action, refusal))

    def _act(self, action: actions.Action, state: State) -> None:  # noqa: C901 - one case an action
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
                self._runner.cancel(RUN)
                if state.making is not None:
                    self._runner.drop(_FILE)
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
            case actions.DoStep() if state.failure is None:
                self._store.dispatch(actions.Apply(shown_schedule.offered_step(state, action)))
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
                once = _once(lambda: file_of(state, wanted))
                self._give(action, name, _page(state, name) if wanted.format == "html" else once)
            case actions.SaveDrawing(drawing, name):
                suffix = Path(name).suffix
                self._give(action, name, _once(lambda: File(name, drawing.content(suffix))))
            case actions.CopyScript():
                self._dispatch_each(_SCRIPT, _or_why(action, _script(session)))

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
            lambda job: session.measure(*chosen, case=case, on_progress=job.tell),
        )

    def _find_pass(self, state: State, check: CheckName) -> None:
        session = state.session
        session.check_trust("finding a pass", *session.tree.lineage())

        def work(job: Job) -> Bisection:
            def tell(done: int, count: int, words: str) -> None:
                job.tell(f"{done + 1} of {count}, {words}")

            return bisect(session, check=check, progress=tell, cancel=job.cancelled)

        key = BisectionKey(state.function, state.stage_id, check, state.epoch)
        self._do(key, "finding the pass", work)

    def _show_pass(self, found: Bisection) -> None:
        """Show the failing stage next to the one before it."""
        wanted: list[actions.Action] = []
        if found.stage is not None and found.before is not None:
            wanted = [actions.Checkout(found.stage.id, found.before.id)]
        for action in (*wanted, actions.Say(found.line)):
            self._store.dispatch(actions.Look(action))

    def _measure_steps(self, wanted: ScheduleStages | None, every: bool) -> None:
        if wanted is None:
            return
        store = self._store

        def work(job: Job) -> ScheduleTimes | None:
            if store.state.steps is not wanted:  # something newer waits
                return None
            return measure_schedule(
                wanted, store.state.step_times, everything=every, on_progress=job.tell
            )

        key = StepsKey(wanted.function, wanted.stages[-1].id, wanted.sizes, every)
        self._do(key, f"measuring {wanted.function}", work)

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
            lambda job: node_arrays(session, stage_id, node, case, job.tell),
        )

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
            is_running = state.is_run_by(stage_id, self._runner.jobs(RUN).keys)
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

        def work(job: Job) -> RunResult:
            trace = None if case is None else TraceRequest(case)
            result = session.run(stage=stage_id, trace=trace, on_progress=job.tell)
            _ = result.nans  # counted here, as every state asks for them on the event loop
            return result

        self._do(key, f"stage {stage_id}" if case is None else f"values of stage {stage_id}", work)

    def _do(self, key: Hashable, name: str, work: Work) -> None:
        """Queue a job, and report its result."""
        self._runner.queue(RUN, key, name, work, partial(self._report, key))

    def _give(self, action: actions.Action, name: str, steps: Iterator[_Made]) -> None:
        """Make a file and send it to the browser, or report why it cannot be made."""
        self._store.dispatch(actions.SetField("making", Making(name)))
        made = _or_why(action, _told(name, steps, self._told_seconds))
        self._dispatch_each(_FILE, chain(made, [actions.SetField("making", None)]))

    def _dispatch_each(self, key: str, steps: Iterator[actions.Action]) -> None:
        self._runner.replace(key, in_steps(steps), told=self._store.dispatch)

    def _say_lost(self, state: State) -> None:
        words = f"stage {state.stage_id} has no function {state.function!r} to run"
        self._say(f"{words}: choose another function, or another stage", is_error=True)

    def _say(self, words: str, is_error: bool = False) -> None:
        self._store.dispatch(actions.Say(words, is_error))


def _page(state: State, name: str) -> Iterator[_Made]:
    page = yield from page_in_steps(state)
    yield File(name, page_content(page))


def _once(make: Callable[[], File]) -> Iterator[_Made]:
    yield make()


def _told(name: str, steps: Iterator[_Made], seconds: float) -> Iterator[actions.Action]:
    """Yield actions that report a file's progress now and then, and then the file."""
    told = time.monotonic()
    for made in steps:
        if isinstance(made, File):
            yield actions.SetField("file", made)
            yield actions.Say(f"{made.name} is ready: the browser saves it")
        elif time.monotonic() - told > seconds:
            told = time.monotonic()
            yield actions.SetField("making", Making(name, made))


def _script(session: Session) -> Iterator[actions.Action]:
    text = session.to_python()
    yield actions.Copied(text)
    yield actions.Say(f"copied {len(text.splitlines())} lines of Python")


def _or_why(action: actions.Action, steps: Iterator[actions.Action]) -> Iterator[actions.Action]:
    """Yield the actions that an action requires, and those that say why there are no more."""
    try:
        yield from steps
    except UntrustedError as refusal:
        yield _asking(action, refusal)
    except Exception as failure:  # whatever it is, the explorer lives on
        yield actions.Say(str(failure), is_error=True)


def _asking(action: actions.Action, refusal: UntrustedError) -> actions.SetField:
    return actions.SetField("question", Question(action, refusal.files))


def _draw_ahead(state: State, job: Job) -> None:
    printed(state.stage)
    for action in iter_ahead(state):
        job.check()
        draw(partial(reduce, state, action), job.check, is_asked=False)
        time.sleep(_AHEAD_SECONDS)


def _looked_at(state: State) -> tuple[object, ...]:
    tree, colours = state.session.tree, state.colour_by
    return tree, state.function, state.reference, state.view, state.has_script, colours
