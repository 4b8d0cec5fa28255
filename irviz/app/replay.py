"""Do the steps of a schedule one after the other, all of them or none."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from irviz.app.session import Session
from irviz.transforms.schedules.schedule import ScheduleStep
from irviz.transforms.schedules.schedule_error import IllegalStepError
from irviz.transforms.schedules.trace import trace_of


def applied(session: Session, step: ScheduleStep) -> Session:
    """Return the session with a step done; raise IllegalStepError when it cannot be.

    A step that ends the process it is tried in makes no stage either.
    """
    new = session.apply(step)
    if new.shown.error:
        raise IllegalStepError(f"{step.told} is not done: {new.shown.error}")
    return new


def replayed(session: Session, steps: Sequence[ScheduleStep], function: str) -> Session:
    """Return the session with these steps as the trace of a function that ends at the shown stage.

    The steps that the trace begins with now are not done again: the new ones are a branch behind
    them. Raises IllegalStepError for the first step that cannot be done.
    """
    there = trace_of(session.stages, session.shown_id, function)
    pairs = itertools.takewhile(
        lambda pair: pair[0] == pair[1], zip(steps, there.steps, strict=False)
    )
    kept = sum(1 for _ in pairs)
    session = session.show([there.base, *there.stages][kept].id)
    for number, step in enumerate(steps[kept:], start=kept + 1):
        session = _numbered(session, step, number)
    return session


def _numbered(session: Session, step: ScheduleStep, number: int) -> Session:
    try:
        return applied(session, step)
    except IllegalStepError as failure:
        # without its paths: they lead through a module that is not shown
        raise IllegalStepError(f"step {number}: {failure}", failure.details) from None
