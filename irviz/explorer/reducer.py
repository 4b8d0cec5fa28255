"""The effect of each action on the state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import partial
from typing import Any

from irviz.errors import UntrustedError, message_of
from irviz.explorer import actions
from irviz.explorer.background_runner import was_cancelled
from irviz.explorer.shown_schedule import loop_choice, offered_step, steps_to_time
from irviz.explorer.stage_rows import comparison
from irviz.explorer.state import (
    BisectionKey,
    CallKey,
    ChangesKey,
    Clipboard,
    ComparisonKey,
    Failure,
    FunctionsKey,
    Inquiry,
    LoopChoice,
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
    TrialsKey,
    ValueKey,
    unchanged,
)
from irviz.model.graph.graph import NodeId
from irviz.model.runs.execution_trace import Array, NodeValue, Trace
from irviz.model.runs.run_result import RunResult
from irviz.session.bisect import Bisection
from irviz.session.measure_schedule import ScheduleTimes
from irviz.session.run_stages import DivergenceReport
from irviz.session.session import Session
from irviz.view.run_result_html import TimingTable, node_path

CHOICES = (
    *(actions.Checkout, actions.Compare, actions.Focus),
    *(actions.ColourBy, actions.LookAround),
)
"""Actions that show another picture; each replaces a pending one of the same kind."""
_NAMES = [one.name for one in fields(State) if one.name not in ("asked", "drawing")]
"""The names of what an action that was asked for may change."""


def reduce(state: State, action: actions.Action) -> State:
    """Return the state after an action; a rejected action only adds a message.

    Nothing slow is done: actions that transform or open a module change nothing, as the store has
    them done and `Changed` has their results; those that need a picture are noted as asked for, and
    `Show` has their results.
    """
    if isinstance(action, actions.Show):
        return _shown(state, action)
    wanted = action.wanted if isinstance(action, actions.Changed) else action
    return accepted(partial(_after, action, state), wanted, state)


def accepted(make: Callable[[], State], wanted: actions.Action, state: State) -> State:
    """Return the state that an action makes, or this one with why the action is refused."""
    try:
        after = make()
    except UntrustedError as error:
        return replace(state, question=Question(wanted, error.files))
    except Exception as error:  # whatever it is, the explorer lives on
        message = Message(message_of(error), True)
        return replace(state, message=message, failure=Failure(wanted, error))
    return after if after is state else _settled(after, state)


def _after(action: actions.Action, state: State) -> State:  # noqa: C901 - one case an action
    """Return the state after an action; actions that only have side effects change nothing."""
    session = state.session
    match action:
        case actions.Checkout(stage, reference):
            after = with_session(state, session.checkout(stage))
            return after if reference is None else _compared(after, reference)
        case actions.Changed(wanted, before, result):
            if isinstance(result, Exception):
                raise result
            after = with_session(state, result)
            is_pair = isinstance(wanted, actions.CompareCopies | actions.CompareLayers)
            return replace(after, reference=str(before.tree.count)) if is_pair else after
        case actions.Look(wanted):
            return _asking(state, wanted)
        case (
            actions.Toggle()
            | actions.ToggleAll()
            | actions.ShowCopy()
            | actions.LookAround()
            | actions.Reveal()
        ):
            return _asking(state, action)
        case actions.TryTransform():
            return replace(state, preview=None)
        case actions.Rename(stage, label):
            return with_session(state, session.rename(stage, label))
        case actions.Drop(stage):
            return with_session(state, session.drop(stage))
        case actions.Undo():
            return with_session(state, session.undo())
        case actions.Redo():
            return with_session(state, session.redo())
        case actions.SetSession(new):
            return _with_other_session(state, new)
        case actions.SetInputs(inputs, seed, sizes):
            given, labels = state.given
            chosen = labels if inputs is given else None
            called = session.with_inputs(inputs, labels=chosen, seed=seed, sizes=sizes)
            return with_session(state, called)
        case actions.SetLimit(name, value):
            return with_session(state, session.with_run_config(**{name: value}))
        case actions.SetField(name, value):
            is_same = getattr(state, name) == value
            return state if is_same else replace(state, **{name: value})
        case actions.Write(written):
            for one in written:
                state = _after(one, state)
        case actions.ChooseLoop(loop, adds):
            return fresh(state, chosen_loops=loop_choice(state, loop, adds=adds))
        case actions.DoStep():
            offered_step(state, action)  # an effect applies it, unless this is refused
            return fresh(state)
        case actions.Focus(function):
            return focused(state, function)
        case actions.Select(node, side):
            return selected(state, node, side)
        case actions.Compare(reference):
            return _compared(state, reference)
        case actions.ColourBy(kind):
            after = fresh(state, colour_by=kind or None)
            if kind == "difference" and state.pair[0] == state.pair[1]:
                words = "a stage does not differ from itself: choose one to compare with"
                return replace(after, message=Message(words))
            return _asking_for_colours(after)
        case actions.ShowFirstDifference():
            if state.is_dimmed:
                return fresh(state, is_dimmed=False)
            return _inquiring(fresh(state), _comparing(state, goes_there=True))
        case actions.Say(words, is_error):
            message = Message(words, is_error)
            is_said = message == state.message and state.failure is None
            return state if is_said else replace(state, message=message, failure=None)
        case actions.RecordValues():
            return _inquiring(fresh(state), Inquiry((state.stage_id,), state.case))
        case actions.Trust(_, files):
            return replace(state, session=session.trust(*files), question=None)
        case actions.Answer(False):
            return replace(state, question=None)
        case actions.FindPass():
            return replace(state, bisection="")
        case actions.MeasureSteps():
            return replace(state, steps=steps_to_time(state) or state.steps)
        case actions.Cancel():
            return _cancelled(state)
        case actions.Report(key, answer):
            return _reported(state, key, answer)
        case actions.Copied(text):
            return replace(state, clipboard=Clipboard(text, state.clipboard.serial + 1))
    return state


def fresh(state: State, **changes: Any) -> State:
    """Change the state by an action of the user, and clear the message of an earlier one."""
    return replace(state, message=None, failure=None, anchor="", **changes)


# --- stages ------------------------------------------------------------------------------------


def with_session(state: State, session: Session) -> State:
    """Show a session, and the function that the reader chose if it has that."""
    if session.functions:  # else there is no picture, which is said in its place
        session = session.select_available_function(state.wanted_function)
    return fresh(state, session=session)


def _with_other_session(state: State, new: Session) -> State:
    old = state.session
    if new is old:
        return state
    if new.stages[0].module is old.stages[0].module:
        wanted = state.wanted_function if new.function == old.function else new.function
        return with_session(replace(state, wanted_function=wanted), new)
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


def _asking(state: State, wanted: actions.Action) -> State:
    """Note an action that leads to another picture, in place of an earlier choice of its kind."""
    is_choice = isinstance(wanted, CHOICES)
    kept = [one for one in state.asked if not (is_choice and type(one) is type(wanted))]
    after = replace(state, asked=(*kept, wanted))
    return replace(after, drawing=asked_stage(after)) if state.drawing else after


def _compared(state: State, reference: str) -> State:
    """Compare with a stage, "" for none; raise NotFoundError if there is no such stage."""
    if reference:
        state.session.stage(reference)
    is_same = reference == state.reference
    return state if is_same else fresh(state, reference=reference)


def asked_stage(state: State) -> str:
    """Return the stage whose picture was asked for."""
    moves = (actions.Checkout, actions.Reveal)
    chosen = [one.stage for one in state.asked if isinstance(one, moves) and one.stage]
    return [state.stage_id, *chosen][-1]


def _shown(state: State, drawn: actions.Show) -> State:
    """Change what the actions that were asked for changed, unless others took their place.

    They are asked for again if another action has changed the same meanwhile.
    """
    before, after = drawn.before, drawn.after
    if state is before:
        return after
    if state.asked is not before.asked:
        return state
    changed = [name for name in _NAMES if _differ(name, before, after)]
    if any(_differ(name, before, state) for name in changed):
        return replace(state, asked=(*state.asked,))
    shown = replace(state, **{name: getattr(after, name) for name in changed})
    shown = _settled(replace(shown, asked=(), drawing=""), state)
    return replace(shown, asked=shown.asked or after.asked)


def _differ(name: str, one: State, other: State) -> bool:
    return not unchanged((getattr(one, name),), (getattr(other, name),))


def focused(state: State, function: str) -> State:
    """Show another function."""
    if not function or function == state.function:
        return state
    chosen = replace(state, wanted_function=function)
    return with_session(chosen, state.session.select_function(function))


def selected(state: State, node: str, side: Side = "current") -> State:
    """Select a node in one of the pictures, which may not be drawn yet."""
    return replace(state, selection=Selection(node, state.function, side if node else "current"))


# --- jobs --------------------------------------------------------------------------------------


def _reported(state: State, key: object, answer: object) -> State:  # noqa: C901 - one case a job
    """Return the state after a job; a cancelled one adds no message."""
    match key, answer:
        case RunKey(function, stage, case, epoch), _:
            if epoch != state.epoch:  # stages are given other inputs now
                return state
            runs = state.runs.get(function, Runs()).add(stage, case, answer)
            after = replace(state, runs={**state.runs, function: runs})
            is_shown = (function, stage) == (state.function, state.stage_id)
            return _looking_for_nan(after, answer) if is_shown and case is None else after
        case PreviewKey(stage=stage), _ if stage is not state.stage or was_cancelled(answer):
            return state
        case PreviewKey(), Preview():
            return replace(state, preview=answer)
        case PreviewKey(), _:
            return replace(state, preview=Preview(str(answer), is_error=True))
        case TrialsKey(), Mapping():
            tried = state.trials[1] if state.trials and state.trials[0] == key else {}
            return replace(state, trials=(key, {**tried, **answer}))
        case CallKey(), tuple():
            return replace(state, candidates=(key, answer))
        case ChangesKey(), Mapping():
            there = set(state.session.stages)
            kept = {key: count for key, count in state.changes.items() if key[0] in there}
            return replace(state, changes={**kept, **answer})
        case FunctionsKey(), Mapping():
            there = set(state.session.stages)
            known = {k: one for k, one in state.function_changes.items() if there.issuperset(k)}
            return replace(state, function_changes={**known, key: answer})
        case ComparisonKey(traces=traces), DivergenceReport() | BaseException():
            return replace(state, compared=(traces, answer))
        case LoopChoice(), tuple():
            return replace(state, step_offers=(key, answer))
        case StepsKey(), ScheduleTimes():
            return replace(state, step_times=answer)
        case ValueKey(value=value), tuple():
            return _fetched(state, value, answer)
    if answer is None or was_cancelled(answer):
        return state
    if isinstance(key, BisectionKey | TimingKey):
        is_wanted = (key.function, key.epoch) == (state.function, state.epoch)
        name = "bisection" if isinstance(key, BisectionKey) else "timing"
        found: Any = answer if isinstance(answer, Bisection | TimingTable) else str(answer)
        return replace(state, **{name: found}) if is_wanted else state
    return replace(state, message=Message(str(answer), True))


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
    runs = {**state.runs, state.function: state.function_runs.touch(inquiry.stages)}
    compared = state.compared if state.divergence is not None else None
    return replace(state, inquiry=inquiry, runs=runs, compared=compared)


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
    if state.is_dimmed and state.divergence is None:
        state = replace(state, is_dimmed=False)
    state = _with_colours(state)
    return _advanced(state)


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
            compared=None,
        )
    return state


def _with_colours(state: State) -> State:
    """Record what the colours need of another stage, unless that failed before."""
    stages = _coloured(state)
    if not stages or state.inquiry is not None:
        return state
    runs = state.function_runs
    failed = {*runs.untraced, *runs.errors}
    if isinstance(state.comparison, BaseException) or not failed.isdisjoint(stages):
        return state
    return _asking_for_colours(state)


def _looking_for_nan(state: State, answer: object) -> State:
    """Record where a NaN among the results comes from, unless something else is recorded."""
    if not isinstance(answer, RunResult) or not answer.nans.any():
        return state
    if state.inquiry is not None or not state.can_record(state.stage_id):
        return state
    return _inquiring(state, Inquiry((state.stage_id,), int(answer.nans.argmax())))


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
    report, after = state.comparison, replace(state, inquiry=None)
    if report is None:  # an effect compares them
        return state
    if isinstance(report, BaseException):
        words = f"stages {' and '.join(state.pair)} could not be compared: {report}"
        return after if was_cancelled(report) else replace(after, message=Message(words, True))
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
