"""Actions that take long: a runner performs them, and draws what will be shown then."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from irviz.errors import NotFoundError
from irviz.explorer import actions
from irviz.explorer.reducer import accepted, focused, fresh, reduce, selected, with_session
from irviz.explorer.selected_node import history
from irviz.explorer.stage_pictures import compared, scene, view_or_none, view_or_why
from irviz.explorer.stage_rows import stage_rows
from irviz.explorer.state import Message, Side, State
from irviz.explorer.viewer_traits import TEXTS, picture_data
from irviz.limits import EXPANDED_NODES, MOST_NODES
from irviz.model.folding.expansion import container_paths, reveal, reveal_container
from irviz.model.graph.graph import AFTER, BEFORE, NodeId, NodeKind, RegionKind, call_path
from irviz.session.extract_layer import copy_stage, layer_stage
from irviz.session.open_session import add_file
from irviz.session.session import Session
from irviz.session.shown_function import ViewState
from irviz.session.stage_cache import graph_of, tree_of
from irviz.transforms.schedules.schedule_step import ScheduleStep
from irviz.transforms.stage import Stage

# --- actions that transform or open modules ----------------------------------------------------


SLOW = (
    *(actions.Apply, actions.ReplaySchedule, actions.ReplayBranch, actions.OpenFile),
    *(actions.CompareCopies, actions.CompareLayers),
)
"""Actions that the store's runner does, before the reducer gets their result."""


def changed_session(session: Session, action: actions.Action) -> Session:
    """Return the session after such an action."""
    shown = session.current, session.function
    match action:
        case actions.Apply(ScheduleStep() as step):
            return session.apply_schedule_step(step)
        case actions.Apply(transform):
            return session.apply(transform)
        case actions.ReplaySchedule(function, steps):
            return session.replay_schedule(function, steps)
        case actions.ReplayBranch(stage):
            return session.replay(onto=stage)
        case actions.OpenFile(name, content):
            return add_file(session, name, content)
        case actions.CompareCopies(node, copy, other):
            parts = [copy_stage(*shown, NodeId(node), one) for one in (copy, other)]
            return _with_parts(session, parts)
        case actions.CompareLayers(layer, other):
            return _with_parts(session, [layer_stage(*shown, one) for one in (layer, other)])
    raise TypeError(f"{action} neither transforms nor opens a module")


def change_name(action: actions.Action) -> str:
    """Return what the status bar calls an action that is not done yet."""
    match action:
        case actions.Apply(transform):
            return f"applying {transform.label}"
        case actions.OpenFile(name, _):
            return f"opening {name}"
        case actions.CompareCopies() | actions.CompareLayers():
            return "making stages of two layers"
    return "replaying"


def _with_parts(session: Session, parts: Sequence[Stage]) -> Session:
    numbered = enumerate(parts, session.tree.count)
    return session.add_stages([replace(one, id=str(number)) for number, one in numbered])


# --- actions that need pictures ----------------------------------------------------------------


def look(state: State) -> State:
    """Return the state after the actions that were asked for."""
    after = replace(state, asked=(), drawing="")
    for one in state.asked:
        assert isinstance(one, actions.Action), "only actions are asked for"
        after = perform(after, one)
    return after


def perform(state: State, action: actions.Action) -> State:
    """Return the state after any action, those that `reduce` only notes as asked for included."""
    match action:
        case actions.Toggle(container, side):
            make = partial(_toggled, state, container, side)
        case actions.ToggleAll(opens):
            make = partial(_all_toggled, state, opens)
        case actions.ShowCopy(container, copy):
            choices = state.view.choices.show_copy(container, copy)
            make = partial(_looking, state, state.view.choose(choices))
        case actions.LookAround(node, steps, to):
            part = state.view.at(NodeId(node), steps, NodeId(to) if to else None)
            make = partial(_looking, state, part if node else state.view.whole)
        case actions.Reveal(function, node, stage):
            make = partial(_revealed, state, function, node, stage)
        case _:
            return reduce(state, action)
    return accepted(make, action, state)


def _toggled(state: State, container: str, side: Side = "current") -> State:
    """Expand or collapse a container of a picture; anything else changes nothing."""
    view = view_or_none(state, side)
    if view is None or container not in view.closable | view.openable:
        return state
    after = replace(_looking(state, state.view.toggle(container, view.closable)), anchor=container)
    is_more = container in (BEFORE, AFTER)  # which may be there still, with others
    new = view_or_none(after, side)
    if container in view.openable and not is_more and new and container in new.openable:
        words = f"There is no room to expand this: a picture has at most {MOST_NODES} nodes."
        hint = "Close something, or look at what is nearby."
        return replace(after, message=Message(f"{words} {hint}"))
    return after


def _all_toggled(state: State, opens: bool) -> State:
    """Expand all groups of the pictures, as far as there is room, or collapse all.

    Calls with their buffers, which are one box each, stay closed.
    """
    opened = state.view.choices.opened if opens else ()
    choices = replace(state.view.choices, opened=opened, closed=frozenset(), every=opens)
    after = _looking(state, state.view.choose(choices))
    sides: tuple[Side, Side] = ("current", "reference")
    views = ((state.stage_of(side), view_or_none(after, side)) for side in sides)
    stage, view = next(((stage, view) for stage, view in views if view), (None, None))
    if stage is None or view is None or not opens:
        return after
    paths = container_paths(tree_of(stage, view.whole.function).root)
    kinds = {name: path[-1].kind for name, path in paths}
    groups = [str(node.id) for node in view.graph.nodes if node.kind is NodeKind.GROUP]
    left = [one for one in groups if kinds.get(one) is not RegionKind.CALL]
    if left:
        groups_stay = "1 group stays" if len(left) == 1 else f"{len(left)} groups stay"
        words = f"{groups_stay} closed: at most {EXPANDED_NODES} nodes are shown at once."
    elif groups and not view.closable:
        words = "Each group is a call with its buffers: open them one by one."
    else:
        return after
    return replace(after, message=Message(words))


def _looking(state: State, view: ViewState) -> State:
    """Change the view of the function; raise ValueError if it cannot be shown."""
    after = fresh(state, views={**state.views, state.function: view})
    found = view_or_why(after, "current", view) if view.around is not None else None
    if isinstance(found, Exception):
        raise found
    return after


def _revealed(state: State, function: str, node_id: str, stage: str) -> State:
    """Show and select a node, expanding the calls that it is in."""
    there = with_session(state, state.session.checkout(stage)) if stage else state
    there = focused(there, function)
    if not node_id:
        return there
    *calls, _node = call_path(node_id)
    after = _shown_in(there, NodeId(calls[0] if calls else node_id))
    for call in calls:
        view = view_or_none(after, "current")
        if view is not None and call in view.openable:
            after = _toggled(after, call)
    view = view_or_none(after, "current")
    if calls and view is not None and node_id in view.graph.index:
        after = selected(after, node_id)
    return after


def _shown_in(state: State, node_id: NodeId) -> State:
    """Show and select a node or group of the function, expanding the containers around it."""
    whole = state.view.whole
    tree = tree_of(state.stage, state.function)
    around = reveal_container(tree, whole.choices, node_id)
    if around is not None:
        return selected(_looking(state, whole.choose(around)), node_id)
    if node_id not in graph_of(state.stage, state.function).index:
        raise NotFoundError(
            f"{node_id!r} is not a node of {state.function!r}: give one of its variables"
        )
    choices = reveal(tree, whole.choices, node_id)
    after = _looking(state, whole.choose(choices))
    view = view_or_none(after, "current")
    if view is not None and not view.draws(node_id):
        after = _looking(state, whole.choose(choices.open(node_id)))
        view = view_or_none(after, "current")
    place = None if view is None else view.where(node_id)
    if view is not None and place in view.openable:  # one of many that are used alike
        after = _toggled(after, str(place))
    return selected(after, node_id)


# --- what is drawn before it is shown ----------------------------------------------------------


_asked_turn, _ahead_turn = threading.Lock(), threading.Lock()
"""Held while a picture is drawn: two at once would both be late.

What is asked for does not wait for what is drawn ahead, which may be a long comparison.
"""


def draw(make: Callable[[], State], check: Callable[[], None], *, is_asked: bool = True) -> State:
    """Make a state, and draw its pictures and texts, ahead unless the user has asked for it.

    `check` is called between the steps; it raises an exception if nobody waits for them any more.
    """
    with _asked_turn if is_asked else _ahead_turn:
        check()
        after = make()
        with suppress(Exception):  # it is said when it is shown
            for _ in _iter_drawn(after, has_history=not is_asked):
                check()
    return after


def _iter_drawn(state: State, *, has_history: bool) -> Iterator[object]:
    sides: tuple[Side, ...] = ("current", "reference") if state.reference else ("current",)
    yield compared(state)
    for side in sides:
        yield view_or_none(state, side)
        yield scene(state, side)
    for one in TEXTS:
        if has_history or one is not history:
            yield one(state)
    yield picture_data(state)


def iter_ahead(state: State) -> Iterator[actions.Action]:
    """Yield what keys ask for: other stages, and the comparison with the parent.

    If the shown stage is compared with its parent, the other stages are, too.
    """
    own = state.stage.parent
    for at, stage in enumerate(neighbours(state)):
        parent = state.session.stage(stage).parent if state.reference == own else None
        yield actions.Checkout(stage, parent)
        if at == 0 and own is not None and not state.reference:
            yield actions.Compare(own)


def neighbours(state: State) -> list[str]:
    """Return the stages that a step leads to: next, previous, and those that differ."""
    rows = stage_rows(state)
    at = next((place for place, row in enumerate(rows) if row["isShown"]), 0)
    beside = [rows[at + 1 :], rows[:at][::-1]]
    nearest = [row["id"] for side in beside for row in side[:1]]
    others = [next((row["id"] for row in side if not row["isSame"]), "") for side in beside]
    return [one for one in dict.fromkeys([*nearest, *others]) if one]
