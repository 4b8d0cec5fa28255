"""What each action does to the state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import singledispatch
from typing import Any

from irviz.explorer import actions
from irviz.explorer.actions import Action
from irviz.explorer.jobs.job_queue import was_cancelled
from irviz.explorer.state import (
    Clipboard,
    Failure,
    Inquiry,
    Message,
    RunKey,
    Runs,
    Selection,
    Side,
    State,
)
from irviz.explorer.view_model import (
    comparison,
    location,
    prim_funcs,
    steps_to_time,
    view_or_none,
)
from irviz.model.folding.container_path import reveal
from irviz.model.folding.expansion import LIMIT
from irviz.model.graph.graph import NodeId
from irviz.model.graph.inlined_ids import call_path
from irviz.model.graph.neighbourhood import AFTER, BEFORE
from irviz.model.runs.trace import Trace
from irviz.session.divergence_report import DivergenceReport
from irviz.session.load import add_file
from irviz.session.schedule_times import ScheduleTimes
from irviz.session.session import Session
from irviz.session.stage_cache import tree_of
from irviz.session.stage_view import ViewState, stage_view
from irviz.transforms.schedules.schedule_step import ScheduleStep
from irviz.view.text.divergence_text import node_path
from irviz.view.text.tables import TimingTable


def reduce(state: State, action: Action) -> State:
    """Return the state after an action; one that is refused leaves all but the words as it was."""
    try:
        after = _after(action, state)
    except Exception as error:  # whatever it is, the explorer lives on
        words = str(error) or type(error).__name__
        return replace(state, message=Message(words, True), failure=Failure(action, error))
    return after if after is state else _settled(after, state)


@singledispatch
def _after(_action: Action, state: State) -> State:
    """Return the state after an action; what only effects act on changes nothing."""
    return state


def _fresh(state: State, **changes: Any) -> State:
    """Change the state by an action of the reader: what was said of another one is gone."""
    return replace(state, message=None, failure=None, anchor="", **changes)


# --- stages ------------------------------------------------------------------------------------


def _with_session(state: State, change: Callable[[Session], Session]) -> State:
    session = change(state.session)
    if session.functions:  # else there is no picture, which is said in its place
        session = session.select_available_function(state.wanted_function)
    return _fresh(state, session=session)


@_after.register
def _(action: actions.Checkout, state: State) -> State:
    return _with_session(state, lambda session: session.checkout(action.stage))


@_after.register
def _(action: actions.Apply, state: State) -> State:
    transform = action.transform
    if isinstance(transform, ScheduleStep):
        return _with_session(state, lambda session: session.apply_schedule_step(transform))
    return _with_session(state, lambda session: session.apply(transform))


@_after.register
def _(action: actions.ReplaySchedule, state: State) -> State:
    return _with_session(
        state, lambda session: session.replay_schedule(action.function, action.steps)
    )


@_after.register
def _(action: actions.ReplayBranch, state: State) -> State:
    return _with_session(state, lambda session: session.replay(onto=action.stage))


@_after.register
def _(action: actions.Rename, state: State) -> State:
    return _with_session(state, lambda session: session.rename(action.stage, action.label))


@_after.register
def _(action: actions.Drop, state: State) -> State:
    return _with_session(state, lambda session: session.drop(action.stage))


@_after.register
def _(_action: actions.Undo, state: State) -> State:
    return _with_session(state, Session.undo)


@_after.register
def _(_action: actions.Redo, state: State) -> State:
    return _with_session(state, Session.redo)


@_after.register
def _(action: actions.OpenFile, state: State) -> State:
    return _with_session(state, lambda session: add_file(session, action.name, action.content))


@_after.register
def _(action: actions.SetSession, state: State) -> State:
    new, old = action.session, state.session
    if new is old:
        return state
    if new.stages[0].module is old.stages[0].module:
        wanted = state.wanted_function if new.function == old.function else new.function
        return _with_session(replace(state, wanted_function=wanted), lambda _: new)
    return replace(  # the stages of these ids are others
        State.of(new),
        epoch=state.epoch + 1,
        jobs=state.jobs,
        runs_new_stages=state.runs_new_stages,
        is_dark=state.is_dark,
    )


@_after.register
def _(action: actions.SetInputs, state: State) -> State:
    given, labels = state.given
    chosen = labels if action.inputs is given else None
    return _with_session(
        state,
        lambda session: session.with_inputs(
            action.inputs, labels=chosen, seed=action.seed, sizes=action.sizes
        ),
    )


@_after.register
def _(action: actions.SetLimit, state: State) -> State:
    changed: Any = {action.name: action.value}
    return _with_session(state, lambda session: session.with_run_config(**changed))


# --- what is looked at -------------------------------------------------------------------------


@_after.register
def _(action: actions.Focus, state: State) -> State:
    return _focused(state, action.function)


def _focused(state: State, function: str) -> State:
    if not function or function == state.function:
        return state
    chosen = replace(state, wanted_function=function)
    return _with_session(chosen, lambda session: session.select_function(function))


@_after.register
def _(action: actions.Select, state: State) -> State:
    return _selected(state, action.node, action.side)


def _selected(state: State, node: str, side: Side = "current") -> State:
    return replace(state, selection=Selection(node, state.function, side if node else "current"))


@_after.register
def _(action: actions.Toggle, state: State) -> State:
    return _toggled(state, action.container, action.side)


def _toggled(state: State, container: str, side: Side = "current") -> State:
    """Open or close a container of a picture; anything else changes nothing."""
    view = view_or_none(state, side)
    if view is None or container not in view.closable | view.openable:
        return state
    after = replace(_looking(state, state.view.toggle(container, view.closable)), anchor=container)
    is_more = container in (BEFORE, AFTER)  # which may be there still, with others
    new = view_or_none(after, side)
    if container in view.openable and not is_more and new and container in new.openable:
        words = f"There is no room to open this: a picture has at most {LIMIT} nodes."
        hint = "Close something, or look at what is nearby."
        return replace(after, message=Message(f"{words} {hint}"))
    return after


@_after.register
def _(action: actions.CloseAround, state: State) -> State:
    view = view_or_none(state, action.side)
    return state if view is None else _toggled(state, view.around(action.node), action.side)


@_after.register
def _(action: actions.ShowCopy, state: State) -> State:
    choices = state.view.choices.show_copy(action.container, action.copy)
    return _looking(state, state.view.choose(choices))


@_after.register
def _(action: actions.LookAround, state: State) -> State:
    to = NodeId(action.to) if action.to else None
    return _looking(state, state.view.at(NodeId(action.node), action.steps, to))


@_after.register
def _(_action: actions.LookAtWhole, state: State) -> State:
    return _looking(state, state.view.whole)


def _looking(state: State, view: ViewState) -> State:
    """Look at the function otherwise; raise ValueError for what cannot be shown."""
    if view.around is not None:
        stage_view(state.stage, state.function, view)
    return _fresh(state, views={**state.views, state.function: view})


@_after.register
def _(action: actions.Reveal, state: State) -> State:
    return _revealed(state, action.function, action.node)


def _revealed(state: State, function: str, node_id: str) -> State:
    """Show and select a node that may be inside of calls, which are opened."""
    *calls, _node = call_path(node_id)
    after = _shown_in(_focused(state, function), NodeId(calls[0] if calls else node_id))
    for call in calls:
        view = view_or_none(after, "current")
        if view is not None and call in view.openable:
            after = _toggled(after, call)
    view = view_or_none(after, "current")
    if calls and view is not None and node_id in view.graph.index:
        after = _selected(after, node_id)
    return after


def _shown_in(state: State, node_id: NodeId) -> State:
    """Show and select a node of the function, opening what hides it."""
    whole = state.view.whole
    tree = tree_of(state.stage, state.function)
    after = _looking(state, whole.choose(reveal(tree, whole.choices, node_id)))
    view = view_or_none(after, "current")
    place = None if view is None else view.where(node_id)
    if view is not None and place in view.openable:  # one of many that are used alike
        after = _toggled(after, str(place))
    return _selected(after, node_id)


@_after.register
def _(action: actions.Search, state: State) -> State:
    return replace(state, search=action.words)


@_after.register
def _(action: actions.Compare, state: State) -> State:
    if action.reference == state.reference:
        return state
    if action.reference:
        state.session.stage(action.reference)
    return _fresh(state, reference=action.reference)


@_after.register
def _(action: actions.ColourBy, state: State) -> State:
    after = _fresh(state, colour_by=action.kind)
    if action.kind == "difference" and state.pair[0] == state.pair[1]:
        words = "a stage does not differ from itself: choose one to compare with"
        return replace(after, message=Message(words))
    return _asking_for_colours(after)


@_after.register
def _(action: actions.SetDark, state: State) -> State:
    return replace(state, is_dark=action.is_dark)


@_after.register
def _(action: actions.Say, state: State) -> State:
    message = Message(action.words, action.is_error)
    if message == state.message and state.failure is None:
        return state
    return replace(state, message=message, failure=None)


# --- runs --------------------------------------------------------------------------------------


@_after.register
def _(action: actions.RunNewStages, state: State) -> State:
    return replace(state, runs_new_stages=action.is_on)


@_after.register
def _(action: actions.ShowCase, state: State) -> State:
    return replace(state, case=action.case)


@_after.register
def _(action: actions.JobsChanged, state: State) -> State:
    return state if action.jobs == state.jobs else replace(state, jobs=action.jobs)


@_after.register
def _(action: actions.RunFinished, state: State) -> State:
    function, stage, case, epoch = action.key
    if epoch != state.epoch:  # stages are given other inputs now
        return state
    runs = state.runs.get(function, Runs()).add(stage, case, action.answer)
    return replace(state, runs={**state.runs, function: runs})


@_after.register
def _(_action: actions.Cancel, state: State) -> State:
    runs = dict(state.runs)
    for key in state.jobs.keys:
        if isinstance(key, RunKey) and key.case is not None and key.epoch == state.epoch:
            known = runs.get(key.function, Runs())
            untraced = {**known.untraced, key.stage: "it was cancelled"}
            runs[key.function] = replace(known, untraced=untraced)
    return replace(state, runs=runs, inquiry=None, steps=None)


@_after.register
def _(action: actions.ChoosePrimFunc, state: State) -> State:
    return replace(state, prim_func=action.name)


@_after.register
def _(action: actions.MeasureEachStep, state: State) -> State:
    return replace(state, measures_steps=action.is_on)


@_after.register
def _(action: actions.SetStepSizes, state: State) -> State:
    return replace(state, step_sizes=action.sizes)


@_after.register
def _(_action: actions.MeasureSteps, state: State) -> State:
    steps = steps_to_time(state)
    return state if steps is None else replace(state, steps=steps)


@_after.register
def _(action: actions.Measured, state: State) -> State:
    if (action.function, action.epoch) != (state.function, state.epoch):
        return state  # it was measured for nothing
    if was_cancelled(action.answer):
        return state
    answer = action.answer
    return replace(state, timing=answer if isinstance(answer, TimingTable) else str(answer))


@_after.register
def _(action: actions.StepsMeasured, state: State) -> State:
    answer = action.answer
    if isinstance(answer, ScheduleTimes):
        return replace(state, step_times=answer)
    if answer is None or was_cancelled(answer):
        return state
    return replace(state, message=Message(str(answer), True))


@_after.register
def _(action: actions.CandidatesFound, state: State) -> State:
    return replace(state, candidates=(action.call, action.found))


@_after.register
def _(action: actions.Copied, state: State) -> State:
    return replace(state, clipboard=Clipboard(action.text, state.clipboard.serial + 1))


@_after.register
def _(action: actions.ValueFetched, state: State) -> State:
    answer = action.answer
    if not isinstance(answer, tuple):
        cancelled = was_cancelled(answer)
        return state if cancelled else replace(state, message=Message(str(answer), True))
    found = [(array.shape, str(array.dtype)) for array in answer]
    wanted = [(one.shape, one.dtype) for one in action.value.summaries]
    if found != wanted:
        words = f"the fetched value has {found} and not {wanted}: run the stage again"
        return replace(state, message=Message(words, True))
    return replace(state, fetched=(action.value, answer))


# --- traces, which are recorded for a reason ---------------------------------------------------


@_after.register
def _(_action: actions.Record, state: State) -> State:
    return _inquiring(_fresh(state), Inquiry((state.stage_id,), state.case))


@_after.register
def _(_action: actions.ShowFirstDifference, state: State) -> State:
    if state.is_dimmed:
        return _fresh(state, is_dimmed=False)
    return _inquiring(_fresh(state), _comparing(state, goes_there=True))


def _comparing(state: State, goes_there: bool = False) -> Inquiry:
    """Return an inquiry into the difference of the pair, for the input that differs most."""
    compared = comparison(state, *state.pair)
    worst = None if compared is None else compared.worst_case
    case = state.case if worst is None else worst
    return Inquiry(state.pair, case, compares=True, goes_there=goes_there)


def _inquiring(state: State, inquiry: Inquiry) -> State:
    """Begin an inquiry; what could not be recorded before is tried again."""
    runs = state.function_runs.touch(inquiry.stages)
    return replace(state, inquiry=inquiry, runs={**state.runs, state.function: runs})


def _coloured(state: State) -> tuple[str, ...]:
    """Return the stages that the colours need the traces of: those of both pictures."""
    if not state.colour_by:
        return ()
    if state.colour_by == "difference":
        is_pair = state.pair[0] != state.pair[1]
        return state.pair if is_pair and all(map(state.can_record, state.pair)) else ()
    shown = (state.stage_id, *((state.reference,) if state.reference else ()))
    return tuple(one for one in shown if state.can_record(one))


def _asking_for_colours(state: State) -> State:
    """Record what the colours need, where that is not known."""
    stages = _coloured(state)
    if state.colour_by == "difference":
        is_known = not stages or state.divergence is not None
        return state if is_known else _inquiring(state, _comparing(state))
    lacking = tuple(one for one in stages if not state.function_runs.has_trace(one))
    return _inquiring(state, Inquiry(lacking, state.case)) if lacking else state


@_after.register
def _(action: actions.TracesCompared, state: State) -> State:
    answer, inquiry = action.answer, state.inquiry
    is_wanted = inquiry is not None and inquiry.is_recorded and action.traces == state.traces
    if isinstance(answer, DivergenceReport):
        return replace(state, report=answer)
    after = replace(state, incomparable=action.traces)
    if is_wanted:
        after = replace(after, inquiry=None)
    if was_cancelled(answer):
        return after
    names = " and ".join(state.pair)
    words = f"stages {names} could not be compared: {answer}"
    return replace(after, message=Message(words, True)) if is_wanted else after


# --- what follows from any action --------------------------------------------------------------


def _settled(state: State, before: State) -> State:
    """Return a state in which everything belongs to the current stage, function and inputs."""
    if state.session is not before.session:
        state = _of_session(state, before)
    if (state.function, state.pair) != (before.function, before.pair):
        state = replace(state, is_dimmed=False, anchor="")
        if state.inquiry is before.inquiry:
            state = replace(state, inquiry=None)
    if state.function != before.function:
        state = replace(state, timing="")
    if state.reference != before.reference and state.selection.side == "reference":
        state = replace(state, selection=Selection())
    if state.selection is not before.selection:
        state = _at_prim_func(state)
    if state.is_dimmed and state.divergence is None:
        state = replace(state, is_dimmed=False)
    state = _with_colours(state)
    return _advanced(state)


def _at_prim_func(state: State) -> State:
    """Look at the schedule of the PrimFunc that the selected node calls, if it calls one."""
    found = location(state)
    if found is None or found.inner not in found.graph.index:
        return state
    callee = found.graph[found.inner].callee
    return replace(state, prim_func=callee) if callee in prim_funcs(state) else state


def _of_session(state: State, before: State) -> State:
    old, new = before.session, state.session
    ids = {stage.id for stage in new.stages}
    if state.reference not in ids or state.reference == state.stage_id:
        state = replace(state, reference="")
    known = {stage.id for stage in old.stages}
    made = [stage for stage in new.stages if stage.id not in known and not stage.error]
    if any(stage.parent is None for stage in made):  # a file, which may be anybody's
        state = replace(state, runs_new_stages=False)
    is_same = (
        new.call_inputs.inputs is old.call_inputs.inputs
        and new.call_inputs.seed == old.call_inputs.seed
        and new.call_inputs.sizes is old.call_inputs.sizes
    )
    if not is_same:
        state = replace(
            state, runs={}, epoch=before.epoch + 1, timing="", inquiry=None, report=None
        )
    return state


def _with_colours(state: State) -> State:
    """Record what the colours need of another stage, unless that was tried in vain."""
    stages = _coloured(state)
    if not stages or state.inquiry is not None:
        return state
    runs = state.function_runs
    failed = {*runs.untraced, *runs.errors}
    is_tried = state.traces is not None and state.traces == state.incomparable
    if is_tried or not failed.isdisjoint(stages):
        return state
    return _asking_for_colours(state)


def _advanced(state: State) -> State:
    """Go on with an inquiry when its traces are there, or cannot be recorded."""
    inquiry, runs = state.inquiry, state.function_runs
    if inquiry is None:
        return state
    missing = [one for one in inquiry.stages if not runs.has_trace(one, inquiry.case)]
    is_settled = {one: one in runs.untraced or not state.can_record(one) for one in missing}
    if not all(is_settled.values()):
        return state
    if missing:
        why = runs.untraced.get(missing[0], "it was not run")
        after = replace(state, inquiry=None)
        if why == "it was cancelled":
            return after
        words = f"the values of stage {missing[0]} are not known: {why}"
        return replace(after, message=Message(words, True))
    if not inquiry.compares:
        return replace(state, inquiry=None, message=_not_finite(runs.traces.get(state.stage_id)))
    report = state.divergence
    if report is None:
        is_asked = inquiry.is_recorded
        return state if is_asked else replace(state, inquiry=replace(inquiry, is_recorded=True))
    after = replace(state, inquiry=None)
    if not inquiry.goes_there:
        return replace(after, message=_not_finite(runs.traces.get(state.stage_id)))
    if report.divergence is not None:
        after = _revealed(replace(after, is_dimmed=True), state.function, report.divergence.node)
    return replace(after, message=Message(report.line))


def _not_finite(trace: Trace | None) -> Message | None:
    """Say where a NaN or an infinity appears first, None where none does."""
    first = trace.first_not_finite if trace is not None else None
    if trace is None or first is None:
        return None
    counts = [(one.nans, one.infs) for one in trace[first].value.summaries]
    nans, infs = (sum(column) for column in zip(*counts, strict=True))
    words = f"the first value that is not finite is {node_path(first)}: {nans} NaN, {infs} Inf"
    return Message(words)
