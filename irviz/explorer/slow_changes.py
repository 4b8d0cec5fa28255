"""Actions that transform or open modules, which may take long."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from irviz.explorer import actions
from irviz.explorer.actions import Action
from irviz.model.graph.graph import NodeId
from irviz.session.layer_as_stage import copy_stage, layer_stage
from irviz.session.open_session import add_file
from irviz.session.session import Session
from irviz.transforms.schedules.schedule_step import ScheduleStep
from irviz.transforms.stage import Stage

PARTS = (actions.CompareCopies, actions.CompareLayers)
"""Actions that add two parts of a stage as stages, to be compared."""
SLOW = (
    *(actions.Apply, actions.ReplaySchedule, actions.ReplayBranch, actions.OpenFile),
    *PARTS,
)
"""Actions that the store's runner does, before the reducer gets their result."""


def changed_session(session: Session, action: Action) -> Session:
    """Return the session after such an action."""
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
            made = (partial(copy_stage, node=NodeId(node), copy=one) for one in (copy, other))
            return _with_parts(session, made)
        case actions.CompareLayers(layer, other):
            return _with_parts(session, (partial(layer_stage, layer=one) for one in (layer, other)))
    raise TypeError(f"{action} neither transforms nor opens a module")


def change_name(action: Action) -> str:
    """Return what the status bar calls an action that is not done yet."""
    match action:
        case actions.Apply(transform):
            return f"applying {transform.label}"
        case actions.OpenFile(name, _):
            return f"opening {name}"
        case actions.CompareCopies() | actions.CompareLayers():
            return "making stages of two layers"
    return "replaying"


def _with_parts(session: Session, make: Iterable[Callable[..., Stage]]) -> Session:
    first = session.tree.count
    return session.add_stages(
        [
            one(session.current, session.function, stage_id=str(first + at))
            for at, one in enumerate(make)
        ]
    )
