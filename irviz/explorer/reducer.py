"""The effect of each action on the state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from irviz.errors import NotFoundError, UntrustedError
from irviz.explorer import actions
from irviz.explorer.actions import Action
from irviz.explorer.runner import was_cancelled
from irviz.explorer.selectors import (
    chosen_view,
    comparison,
    location,
    prim_funcs,
    steps_to_time,
    view_or_none,
)
from irviz.explorer.slow_changes import PARTS
from irviz.explorer.state import (
    BisectionKey,
    CallKey,
    ChangesKey,
    Clipboard,
    ComparisonKey,
    Failure,
    Inquiry,
    Message,
    Preview,
    PreviewKey,
    Question,
    RunKey,
    Runs,
    Selection,
    Side,
    State,
    StepsKey,
    TimingKey,
    ValueKey,
)
from irviz.model.folding.expansion import reveal
from irviz.model.folding.folding_limits import LIMIT
from irviz.model.graph.graph import NodeId, call_path
from irviz.model.graph.neighbourhood import AFTER, BEFORE
from irviz.model.runs.trace import Array, NodeValue, Trace
from irviz.session.bisect import Bisection
from irviz.session.divergence_report import DivergenceReport
from irviz.session.schedule_times import ScheduleTimes
from irviz.session.session import Session
from irviz.session.stage_cache import graph_of, tree_of
from irviz.session.visible_function import ViewState
from irviz.view.text.run_results import node_path
from irviz.view.text.tables import TimingTable

_CHOICES = (
    *(actions.Checkout, actions.Compare, actions.Focus),
    *(actions.ColourBy, actions.LookAround),
)
"""Actions that replace a pending one of the same kind."""


def reduce(state: State, action: Action) -> State:
    """Return the state after an action; a rejected action only adds a message.

    Slow actions change nothing: the store has them done, and `Changed` has their results.
    """
    if isinstance(action, actions.Show):
        return _shown(state, action)
    wanted = action.wanted if isinstance(action, actions.Changed) else action
    try:
        after = _after(action, state)
    except UntrustedError as error:
        return replace(state, question=Question(wanted, error.files))
    except Exception as error:  # whatever it is, the explorer lives on
        words = str(error) or type(error).__name__
        return replace(state, message=Message(words, True), failure=Failure(wanted, error))
    return after if after is state else _settled(after, state)


def _after(action: Action, state: State) -> State:  # noqa: C901 - one case an action
    """Return the state after an action; actions that only have side effects change nothing."""
    session = state.session
    match action:
        case actions.Checkout(stage):
            return _with_session(state, session.checkout(stage))
        case actions.Changed(wanted, before, result):
            if isinstance(result, Exception):
                raise result
            after = _with_session(state, result)
            is_pair = isinstance(wanted, PARTS)
            return replace(after, reference=str(before.tree.count)) if is_pair else after
        case actions.Look(wanted):
            return _asking(state, wanted)
        case actions.TryTransform() | actions.ForgetPreview():
            return replace(state, preview=None) if state.preview is not None else state
        case actions.Rename(stage, label):
            return _with_session(state, session.rename(stage, label))
        case actions.Drop(stage):
            return _with_session(state, session.drop(stage))
        case actions.Undo():
            return _with_session(state, session.undo())
        case actions.Redo():
            return _with_session(state, session.redo())
        case actions.SetSession(new):
            return _with_other_session(state, new)
        case actions.SetInputs(inputs, seed, sizes):
            given, labels = state.given
            chosen = labels if inputs is given else None
            called = session.with_inputs(inputs, labels=chosen, seed=seed, sizes=sizes)
            return _with_session(state, called)
        case actions.SetLimit(name, value):
            return _with_session(state, session.with_run_config(**{name: value}))
        case actions.SetField(name, value):
            is_same = getattr(state, name) == value
            return state if is_same else replace(state, **{name: value})
        case actions.Focus(function):
            return _focused(state, function)
        case actions.Select(node, side):
            return _selected(state, node, side)
        case actions.Toggle(container, side):
            return _toggled(state, container, side)
        case actions.ShowCopy(container, copy):
            choices = state.view.choices.show_copy(container, copy)
            return _looking(state, state.view.choose(choices))
        case actions.LookAround(node, steps, to):
            part = state.view.at(NodeId(node), steps, NodeId(to) if to else None)
            return _looking(state, part if node else state.view.whole)
        case actions.Reveal(function, node, stage):
            there = _with_session(state, session.checkout(stage)) if stage else state
            return _revealed(there, function, node) if node else _focused(there, function)
        case actions.Compare(reference):
            if reference:
                session.stage(reference)
            is_same = reference == state.reference
            return state if is_same else _fresh(state, reference=reference)
        case actions.ColourBy(kind):
            after = _fresh(state, colour_by=kind or None)
            if kind == "difference" and state.pair[0] == state.pair[1]:
                words = "a stage does not differ from itself: choose one to compare with"
                return replace(after, message=Message(words))
            return _asking_for_colours(after)
        case actions.ShowFirstDifference():
            if state.is_dimmed:
                return _fresh(state, is_dimmed=False)
            return _inquiring(_fresh(state), _comparing(state, goes_there=True))
        case actions.Say(words, is_error):
            message = Message(words, is_error)
            is_said = message == state.message and state.failure is None
            return state if is_said else replace(state, message=message, failure=None)
        case actions.RecordValues():
            return _inquiring(_fresh(state), Inquiry((state.stage_id,), state.case))
        case actions.Ask(then, files):
            return replace(state, question=Question(then, files))
        case actions.Trust(_, files):
            return replace(state, session=session.trust(*files), question=None)
        case actions.Distrust():
            return replace(state, question=None)
        case actions.MeasureSteps():
            return replace(state, steps=steps_to_time(state) or state.steps)
        case actions.Cancel():
            return _cancelled(state)
        case actions.Report(key, answer):
            return _reported(state, key, answer)
        case actions.Made(file):
            return replace(state, file=file)
        case actions.Copied(text):
            return replace(state, clipboard=Clipboard(text, state.clipboard.serial + 1))
    return state


def _fresh(state: State, **changes: Any) -> State:
    """Change the state by an action of the user, and clear the message of an earlier one."""
    return replace(state, message=None, failure=None, anchor="", **changes)


# --- stages ------------------------------------------------------------------------------------


def _with_session(state: State, session: Session) -> State:
    if session.functions:  # else there is no picture, which is said in its place
        session = session.select_available_function(state.wanted_function)
    return _fresh(state, session=session)


def _with_other_session(state: State, new: Session) -> State:
    old = state.session
    if new is old:
        return state
    if new.stages[0].module is old.stages[0].module:
        wanted = state.wanted_function if new.function == old.function else new.function
        return _with_session(replace(state, wanted_function=wanted), new)
    return replace(  # the stages of these ids are others
        State.of(new),
        epoch=state.epoch + 1,
        jobs=state.jobs,
        runs_new_stages=state.runs_new_stages,
        is_dark=state.is_dark,
        tab=state.tab,
        has_script=state.has_script,
        has_numpy=state.has_numpy,
        has_blame=state.has_blame,
    )


# --- what is looked at -------------------------------------------------------------------------


def _asking(state: State, wanted: Action) -> State:
    """Note an action that leads to another picture, in place of an earlier choice of its kind."""
    is_choice = isinstance(wanted, _CHOICES)
    kept = [one for one in state.asked if not (is_choice and type(one) is type(wanted))]
    after = replace(state, asked=(*kept, wanted))
    return replace(after, drawing=asked_stage(after)) if state.drawing else after


def asked_stage(state: State) -> str:
    """Return the stage whose picture was asked for."""
    moves = (actions.Checkout, actions.Reveal)
    chosen = [one.stage for one in state.asked if isinstance(one, moves) and one.stage]
    return [state.stage_id, *chosen][-1]


def _shown(state: State, drawn: actions.Show) -> State:
    """Perform the actions that were asked for, unless others took their place."""
    if state is drawn.before:
        return drawn.after
    return look(state) if state.asked is drawn.before.asked else state


def look(state: State) -> State:
    """Return the state after the actions that were asked for."""
    after = replace(state, asked=(), drawing="")
    for one in state.asked:
        assert isinstance(one, Action), "only actions are asked for"
        after = reduce(after, one)
    return after


def _focused(state: State, function: str) -> State:
    if not function or function == state.function:
        return state
    chosen = replace(state, wanted_function=function)
    return _with_session(chosen, state.session.select_function(function))


def _selected(state: State, node: str, side: Side = "current") -> State:
    return replace(state, selection=Selection(node, state.function, side if node else "current"))


def _toggled(state: State, container: str, side: Side = "current") -> State:
    """Expand or collapse a container of a picture; anything else changes nothing."""
    view = view_or_none(state, side)
    if view is None or container not in view.closable | view.openable:
        return state
    after = replace(_looking(state, state.view.toggle(container, view.closable)), anchor=container)
    is_more = container in (BEFORE, AFTER)  # which may be there still, with others
    new = view_or_none(after, side)
    if container in view.openable and not is_more and new and container in new.openable:
        words = f"There is no room to expand this: a picture has at most {LIMIT} nodes."
        hint = "Close something, or look at what is nearby."
        return replace(after, message=Message(f"{words} {hint}"))
    return after


def _looking(state: State, view: ViewState) -> State:
    """Change the view of the function; raise ValueError if it cannot be shown."""
    after = _fresh(state, views={**state.views, state.view_key: view})
    found = chosen_view(after, "current") if view.around is not None else None
    if isinstance(found, Exception):
        raise found
    return after


def _revealed(state: State, function: str, node_id: str) -> State:
    """Show and select a node, expanding the calls that it is in."""
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
    """Show and select a node of the function, expanding the containers around it."""
    whole = state.view.whole
    tree = tree_of(state.stage, state.function)
    if node_id not in graph_of(state.stage, state.function).index:
        raise NotFoundError(
            f"{node_id!r} is not a node of {state.function!r}: give one of its variables"
        )
    after = _looking(state, whole.choose(reveal(tree, whole.choices, node_id)))
    view = view_or_none(after, "current")
    place = None if view is None else view.where(node_id)
    if view is not None and place in view.openable:  # one of many that are used alike
        after = _toggled(after, str(place))
    return _selected(after, node_id)


# --- jobs --------------------------------------------------------------------------------------


def _reported(state: State, key: object, answer: object) -> State:  # noqa: C901 - one case a job
    """Return the state after a job; a cancelled one adds no message."""
    match key, answer:
        case RunKey(function, stage, case, epoch), _:
            if epoch != state.epoch:  # stages are given other inputs now
                return state
            runs = state.runs.get(function, Runs()).add(stage, case, answer)
            return replace(state, runs={**state.runs, function: runs})
        case PreviewKey(stage=stage), Preview():
            return replace(state, preview=answer) if stage is state.stage else state
        case PreviewKey(), _:
            return _previewed(state, key, answer)
        case CallKey(), tuple():
            return replace(state, candidates=(key, answer))
        case ChangesKey(), Mapping():
            there = set(state.session.stages)
            kept = {key: count for key, count in state.changes.items() if key[0] in there}
            return replace(state, changes={**kept, **answer})
        case ComparisonKey(), DivergenceReport():
            return replace(state, report=answer)
        case ComparisonKey(traces=traces), _:
            return _incomparable(state, traces, answer)
        case StepsKey(), ScheduleTimes():
            return replace(state, step_times=answer)
        case ValueKey(value=value), tuple():
            return _fetched(state, value, answer)
    if answer is None or was_cancelled(answer):
        return state
    if isinstance(key, BisectionKey):
        is_wanted = (key.function, key.epoch) == (state.function, state.epoch)
        found = answer if isinstance(answer, Bisection) else str(answer)
        return replace(state, bisection=found) if is_wanted else state
    if isinstance(key, TimingKey):
        is_wanted = (key.function, key.epoch) == (state.function, state.epoch)
        timing = answer if isinstance(answer, TimingTable) else str(answer)
        return replace(state, timing=timing) if is_wanted else state
    return replace(state, message=Message(str(answer), True))


def _previewed(state: State, key: PreviewKey, failure: object) -> State:
    """Return the state after a failed trial; a cancelled one did not fail."""
    if was_cancelled(failure) or key.stage is not state.stage:
        return state
    return replace(state, preview=Preview(key, str(failure), is_error=True))


def _fetched(state: State, value: NodeValue, arrays: tuple[Array, ...]) -> State:
    found = [(array.shape, str(array.dtype)) for array in arrays]
    wanted = [(one.shape, one.dtype) for one in value.summaries]
    if found == wanted:
        return replace(state, fetched=(value, arrays))
    words = f"the fetched value has {found} and not {wanted}: run the stage again"
    return replace(state, message=Message(words, True))


def _cancelled(state: State) -> State:
    runs = dict(state.runs)
    for key in state.jobs.keys:
        if isinstance(key, RunKey) and key.case is not None and key.epoch == state.epoch:
            known = runs.get(key.function, Runs())
            untraced = {**known.untraced, key.stage: "it was cancelled"}
            runs[key.function] = replace(known, untraced=untraced)
    return replace(state, runs=runs, inquiry=None, steps=None, asked=(), drawing="")


def _incomparable(state: State, traces: tuple[Trace, Trace], why: object) -> State:
    inquiry = state.inquiry
    is_wanted = inquiry is not None and inquiry.is_recorded and traces == state.traces
    after = replace(state, incomparable=traces)
    if not is_wanted:
        return after
    after = replace(after, inquiry=None)
    if was_cancelled(why):
        return after
    words = f"stages {' and '.join(state.pair)} could not be compared: {why}"
    return replace(after, message=Message(words, True))


# --- traces, which are recorded for a reason ---------------------------------------------------


def _comparing(state: State, goes_there: bool = False) -> Inquiry:
    """Return an inquiry into the difference of the pair, on the input that differs most."""
    compared = comparison(state, *state.pair)
    worst = None if compared is None else compared.worst_case
    case = state.case if worst is None else worst
    return Inquiry(state.pair, case, compares=True, goes_there=goes_there)


def _inquiring(state: State, inquiry: Inquiry) -> State:
    """Begin an inquiry; recordings that failed before are retried."""
    stages = map(state.session.stage, inquiry.stages)
    state.session.check_run("recording values", *stages)
    runs = state.function_runs.touch(inquiry.stages)
    return replace(state, inquiry=inquiry, runs={**state.runs, state.function: runs})


def _coloured(state: State) -> tuple[str, ...]:
    """Return the stages whose traces the colours need: those of both pictures."""
    if not state.colour_by:
        return ()
    if state.colour_by == "difference":
        is_pair = state.pair[0] != state.pair[1]
        return state.pair if is_pair and all(map(state.can_record, state.pair)) else ()
    shown = (state.stage_id, *((state.reference,) if state.reference else ()))
    return tuple(one for one in shown if state.can_record(one))


def _asking_for_colours(state: State) -> State:
    """Record what the colours need and is not known yet."""
    stages = _coloured(state)
    if state.colour_by == "difference":
        is_known = not stages or state.divergence is not None
        return state if is_known else _inquiring(state, _comparing(state))
    lacking = tuple(one for one in stages if not state.function_runs.has_trace(one))
    return _inquiring(state, Inquiry(lacking, state.case)) if lacking else state


# --- what follows from any action --------------------------------------------------------------


def _settled(state: State, before: State) -> State:
    """Return a state in which everything refers to the current stage, function and inputs."""
    if state.session is not before.session:
        state = replace(_of_session(state, before), asked=(), drawing="")
    if (state.function, state.pair) != (before.function, before.pair):
        state = replace(state, is_dimmed=False, anchor="", preview=None)
        if state.inquiry is before.inquiry:
            state = replace(state, inquiry=None)
    if state.function != before.function:
        state = replace(state, timing="", bisection="")
    if state.reference != before.reference and state.selection.side == "reference":
        state = replace(state, selection=Selection())
    if state.selection is not before.selection:
        state = _at_prim_func(state)
    if state.is_dimmed and state.divergence is None:
        state = replace(state, is_dimmed=False)
    state = _with_colours(state)
    return _advanced(state)


def _at_prim_func(state: State) -> State:
    """Show the schedule of the PrimFunc that the selected node calls, if any."""
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
            state,
            runs={},
            epoch=before.epoch + 1,
            timing="",
            bisection="",
            inquiry=None,
            report=None,
        )
    return state


def _with_colours(state: State) -> State:
    """Record what the colours need of another stage, unless that failed before."""
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
    """Continue an inquiry once its traces are recorded or cannot be."""
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
    if report.divergence is None:
        return replace(after, message=Message(report.line))
    there = actions.Reveal(state.function, NodeId(report.divergence.node))
    asked = state.asked or (there, actions.Say(report.line))  # the user may have moved on
    return replace(after, is_dimmed=True, asked=asked)


def _not_finite(trace: Trace | None) -> Message | None:
    """Say where a NaN or an infinity first appears, None if nowhere."""
    first = trace.first_not_finite if trace is not None else None
    if trace is None or first is None:
        return None
    counts = [(one.nans, one.infs) for one in trace[first].value.summaries]
    nans, infs = (sum(column) for column in zip(*counts, strict=True))
    words = f"the first value that is not finite is {node_path(first)}: {nans} NaN, {infs} Inf"
    return Message(words)
