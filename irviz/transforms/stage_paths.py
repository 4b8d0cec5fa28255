"""Replay paths through a tree of stages on other modules, and write them as scripts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tvm import ir

from irviz.errors import NotFoundError, TransformError
from irviz.transforms.apply_transform import apply_transform
from irviz.transforms.python_script import PythonScript, UnwritableError
from irviz.transforms.stage import Stage


def path(stages: Sequence[Stage], stage_id: str) -> tuple[Stage, ...]:
    """Return the stages from a root to this one, each made from the one before."""
    by_id = {stage.id: stage for stage in stages}
    stages_up = [by_id[stage_id]]
    while (parent := stages_up[-1].parent) is not None:
        stages_up.append(by_id[parent])
    return tuple(reversed(stages_up))


def replay(steps: Sequence[Stage], on: Stage, first_id: int, *, isolate: bool) -> list[Stage]:
    """Apply the transforms of these stages to another stage, in order.

    A step that rejects the module makes a stage with the error, and the next step continues with
    the unchanged module. A step from an opened file stays marked as from that file.
    """
    made: list[Stage] = []
    for step in steps:
        if step.transform is None:
            continue
        before, new_id = (made or [on])[-1], str(first_id + len(made))
        before = replace(before, files=before.files | step.files)
        try:
            stage = apply_transform(before, step.transform, new_id, isolate=isolate)
        except (TransformError, NotFoundError) as refusal:
            stage = Stage(
                id=new_id,
                module=before.module,
                parent=before.id,
                transform=step.transform,
                error=str(refusal),
                constant_names=before.constant_names,
                files=before.files,
                made_from=before,
            )
        made.append(replace(stage, label=step.label))
    return made


def to_script(steps: Sequence[Stage]) -> PythonScript:
    """Return the script that makes the last module of a path from the first.

    If a step cannot be written as statements, the script starts with the module that the step made,
    and earlier steps are comments.
    """
    done = [stage for stage in steps if not stage.error]
    begin, reason = 0, ""
    while True:
        script = PythonScript()
        for stage in done[: begin + 1]:
            script.comment(_title(stage))
        if reason:
            why = f"{reason}: the module that it made stands here"
            script.embed(done[begin].module, why)
        else:
            script.begin(done[begin].module)
        for index in range(begin + 1, len(done)):
            reason = _write(script, done[index], done[index - 1].module)
            if reason:
                begin = index
                break
        else:
            return script


def _write(script: PythonScript, stage: Stage, before: ir.IRModule) -> str:
    """Write a step and return "", or the reason why it cannot be written."""
    if stage.is_unchanged or stage.module.same_as(before):
        script.comment(f"{_title(stage)}: changed nothing")
        return ""
    script.comment(_title(stage))
    assert stage.transform is not None, "only a root has none"
    try:
        stage.transform.write(script, before, stage.module)
    except UnwritableError as reason:
        return str(reason) or "there are no statements for it"
    except (TypeError, ValueError, AttributeError, LookupError) as failure:
        # a step out of a file may have arguments that its pass does not take
        return f"{stage.label} cannot be written: {type(failure).__name__}: {failure}"
    return ""


def _title(stage: Stage) -> str:
    return f"stage {stage.id}: {stage.label}"
