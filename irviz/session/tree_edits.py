"""Add stages to a tree: apply a transform, a schedule, or the path of another stage."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from irviz.transforms.lineage import replay
from irviz.transforms.schedules.schedule_error import IllegalStepError
from irviz.transforms.schedules.schedule_recorder import ScheduleFunction, record_schedule
from irviz.transforms.schedules.schedule_step import ScheduleStep
from irviz.transforms.schedules.schedule_trace import schedule_trace
from irviz.transforms.stage import Transform, apply_transform
from irviz.transforms.stage_tree import StageTree
from irviz.worker.supervisor import RUNS


def apply_to_current(tree: StageTree, transform: Transform, *, isolate: bool) -> StageTree:
    """Apply a transform to the current stage; raise what `apply_transform` raises."""
    if isolate:
        RUNS.start()  # the new stage is run next
    return tree.add([apply_transform(tree.stage(), transform, str(tree.count), isolate=isolate)])


def schedule_current(
    tree: StageTree, function: str, steps: ScheduleFunction, *, isolate: bool
) -> StageTree:
    """Schedule a PrimFunc of the current stage: a stage for each step.

    Raises IllegalStepError for the first step that TVM refuses.
    """
    stages = [tree.stage()]
    recorded = record_schedule(stages[0].module, function, steps, isolate=isolate)
    for number, step in enumerate(recorded, tree.count):  # each was tried as it was recorded
        stages.append(apply_transform(stages[-1], step, str(number), isolate=False))
    return tree.add(stages[1:])


def apply_schedule_step(tree: StageTree, step: ScheduleStep, *, isolate: bool) -> StageTree:
    """Apply one schedule step to the current stage; raise IllegalStepError when it cannot be.

    A step that ends the process it is tried in adds no stage either.
    """
    new = apply_to_current(tree, step, isolate=isolate)
    if error := new.stage().error:
        raise IllegalStepError(f"{step.source} is not done: {error}")
    return new


def replay_schedule(
    tree: StageTree, function: str, steps: Sequence[ScheduleStep], *, isolate: bool
) -> StageTree:
    """Make these steps the schedule of a function that ends at the current stage.

    The steps that its trace begins with now are kept: the new ones are a branch behind them.
    Raises IllegalStepError for the first step that cannot be applied.
    """
    now = schedule_trace(tree.stages, tree.current_id, function)
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(steps, now.steps, strict=False))
    kept = sum(1 for _ in same)
    tree = tree.checkout([now.base, *now.stages][kept].id)
    number = kept
    try:
        for number, step in enumerate(steps[kept:], start=kept + 1):  # noqa: B007
            tree = apply_schedule_step(tree, step, isolate=isolate)
    except IllegalStepError as failure:
        # without its access paths, which lead through a module that is not shown
        raise IllegalStepError(f"step {number}: {failure}", failure.details) from None
    return tree


def replay_path(tree: StageTree, stage_id: str | None, onto: str, *, isolate: bool) -> StageTree:
    """Apply the transforms of a stage's path behind another stage, from where the paths part."""
    target = tree.stage(onto)
    shared = tree.lineage(onto)
    steps = [one for one in tree.lineage(stage_id) if one not in shared]
    return tree.add(replay(steps, target, tree.count, isolate=isolate))
