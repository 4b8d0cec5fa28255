"""A tree of stages: the path to one, what comes from one, and a path on another module."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tvm import ir

from irviz.ir.identity import NoFunctionError
from irviz.transforms.python import Script, UnwritableError
from irviz.transforms.stage import Stage, TransformError, apply


def path(stages: Sequence[Stage], stage_id: str) -> tuple[Stage, ...]:
    """Return the stages from the first to this one, each made from the one before."""
    by_id = {stage.id: stage for stage in stages}
    found: list[Stage] = []
    at: str | None = stage_id
    while at is not None:
        found.append(by_id[at])
        at = by_id[at].parent
    return tuple(reversed(found))


def descendants(stages: Sequence[Stage], stage_id: str) -> frozenset[str]:
    """Return the ids of a stage and of all that were made from it, directly or not."""
    found = {stage_id}
    for stage in stages:  # a stage stands behind the one that it was made from
        if stage.parent in found:
            found.add(stage.id)
    return frozenset(found)


def replayed(steps: Sequence[Stage], on: Stage, first_id: int, *, isolate: bool) -> list[Stage]:
    """Apply the transforms of these stages to another stage, one after the other.

    A step that refuses the other module makes a stage that says so; the next one goes on with
    the module as it is.
    """
    made: list[Stage] = []
    for new_id, step in enumerate((one for one in steps if one.transform is not None), first_id):
        assert step.transform is not None, "those without are left out"
        before = made[-1] if made else on
        try:
            stage = apply(before, step.transform, str(new_id), isolate=isolate)
        except (TransformError, NoFunctionError) as refusal:
            stage = Stage(
                str(new_id),
                before.module,
                step.transform.label,
                before.id,
                step.transform,
                str(refusal),
                before.constant_names,
            )
        is_renamed = step.label != step.transform.label
        made.append(replace(stage, label=step.label) if is_renamed else stage)
    return made


def to_script(steps: Sequence[Stage]) -> Script:
    """Return the script that makes the last module of a path from the first.

    Where a step has no statements, the script begins with the module that it made, and names
    the steps before it in comments.
    """
    done = [stage for stage in steps if not stage.error]
    begin, why = 0, ""
    while True:
        script = _begun(done[: begin + 1], why)
        for index in range(begin + 1, len(done)):
            why = _write(script, done[index], done[index - 1].module)
            if why:
                begin = index
                break
        else:
            return script


def _begun(steps: Sequence[Stage], why: str) -> Script:
    """Return a script that begins with the last of these steps."""
    script = Script()
    if not why:
        script.say(_title(steps[0]))
        script.begin(steps[0].module)
        return script
    for stage in steps:
        script.say(_title(stage))
    script.embed(steps[-1].module, f"{why}: the module that it made stands here")
    return script


def _write(script: Script, stage: Stage, before: ir.IRModule) -> str:
    """Write a step, and return why that cannot be done, or ""."""
    if stage.is_same or stage.module.same_as(before):
        script.say(f"{_title(stage)}: changed nothing")
        return ""
    script.say(_title(stage))
    assert stage.transform is not None, "only the first has none"
    try:
        stage.transform.write(script, before, stage.module)
    except UnwritableError as reason:
        return str(reason) or "there are no statements for it"
    except (TypeError, ValueError, AttributeError, LookupError) as failure:
        # a step out of a file may hold what its pass never took
        return f"{stage.label} cannot be written: {type(failure).__name__}: {failure}"
    return ""


def _title(stage: Stage) -> str:
    return f"stage {stage.id}: {stage.label}"
