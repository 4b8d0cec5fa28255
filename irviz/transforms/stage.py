"""A stage, which is a module and the transform that produced it; and the tree of all stages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import UnionType
from typing import Any, ClassVar

import tvm
from tvm import ir

from irviz.errors import NotFoundError, StageError
from irviz.model.graph.graph import Layer, NodeId
from irviz.model.graph.layers import LayersByNode
from irviz.model.runs.run_result import Origin
from irviz.transforms.export_python import PythonScript, UnwritableError

Apply = Callable[[ir.IRModule], ir.IRModule]


@dataclass(frozen=True)
class SavedAs:
    """What a session file calls a kind of transform, and the fields that describe one there.

    Without a kind, the file has only the label.
    """

    kind: str = ""
    fields: Mapping[str, type | UnionType] = field(default_factory=dict)


class Transform(ABC):
    """A function from module to module that has a label and can be written as Python."""

    saved_as: ClassVar = SavedAs()

    @property
    @abstractmethod
    def label(self) -> str:
        """The label of the stage that it makes."""

    @property
    def constant_names(self) -> Mapping[tvm.runtime.Tensor, str]:
        """The names of the tensors that it puts into the module."""
        return {}

    @property
    def tried_as(self) -> Apply | None:
        """What the worker tries first; None if everything that can fail is checked before."""
        return None

    @property
    def evaluates_code(self) -> bool:
        """Whether it runs code of the module, as constant folding and tuning do."""
        return False

    @abstractmethod
    def __call__(self, mod: ir.IRModule) -> ir.IRModule:
        """Return the new module, leaving the old one unchanged."""

    @abstractmethod
    def write(self, script: PythonScript, before: ir.IRModule, after: ir.IRModule) -> None:
        """Write statements that turn `before` into `after`; raise UnwritableError if impossible."""

    def saved_values(self) -> Mapping[str, object] | None:
        """Return the values of the saved fields, None if these do not say all."""
        fields, has = self.saved_as.fields, vars(self)
        is_all = all(isinstance(has[name], expected) for name, expected in fields.items())
        is_all = is_all and all(has[name] is None for name in has.keys() - fields.keys())
        return {name: has[name] for name in fields} if is_all else None

    @classmethod
    def restored(cls, values: Mapping[str, Any]) -> Transform:
        """Return the transform with these saved values, each of its type, without applying it.

        Raises TransformError for values that it does not take: they come from a file.
        """
        return cls(**values)

    def write_failing(self, script: PythonScript) -> None:  # noqa: ARG002 - passes write
        """Write the statements of a failing transform; raise UnwritableError if impossible."""
        raise UnwritableError(f"{self.label} has no statements of TVM alone")


Position = tuple[Layer, str, int]
"""A node's sublayer, its operator, and how many such nodes come before it there."""

INITIAL = "initial module"
"""The label of a stage that was not made from another."""


@dataclass(frozen=True, eq=False)
class Stage:
    """A module, and the transform that produced it.

    Attributes:
        id: A number as text; "0" is the first stage.
        module: The module; that of the parent if the transform failed.
        parent: The id of the stage that it was made from, None for a root.
        error: Why the transform failed, "" if it did not.
        stderr: What TVM wrote to standard error during the transform.
        seconds: The duration of a recorded pass.
        enclosing_passes: The passes that ran a recorded pass, outermost first.
        is_unchanged: Whether a recorded pass changed nothing.
        files: The opened files that the module or the transform came from. Their code runs only
            with the user's consent, and never in this process.
        made_from: The stage of which this one was made, None for a root.
        layers: By function, the model's layers that the bindings of a root come from.
        positions: For a root that is a layer, the position of each node in it: nodes of two such
            stages with the same position correspond.
        origin: The model that a root was imported from, if it can be run.
    """

    id: str
    module: ir.IRModule
    label: str = INITIAL
    parent: str | None = None
    transform: Transform | None = None
    error: str = ""
    constant_names: Mapping[tvm.runtime.Tensor, str] = field(default_factory=dict)
    stderr: str = ""
    seconds: float | None = None
    enclosing_passes: tuple[str, ...] = ()
    is_unchanged: bool = False
    files: frozenset[str] = frozenset()
    made_from: Stage | None = field(default=None, repr=False)
    layers: Mapping[str, LayersByNode] = field(default_factory=dict, repr=False)
    positions: Mapping[NodeId, Position] = field(default_factory=dict, repr=False)
    origin: Origin | None = field(default=None, repr=False)


# --- The tree of all stages, with the current one, undo and redo ---------------------------------


@dataclass(frozen=True, eq=False)
class StageTree:
    """An immutable tree of stages; every change returns a new one.

    Attributes:
        stages: The stages, each after its parent.
        current_id: The stage that methods use by default.
        count: The number of stages ever made, so that ids are not reused.
        past: What undo returns.
        future: What redo returns.
    """

    stages: tuple[Stage, ...]
    current_id: str = "0"
    count: int = 1
    past: StageTree | None = None
    future: StageTree | None = None

    def stage(self, stage_id: str | None = None) -> Stage:
        """Return a stage, by default the current one; raise NotFoundError for an unknown id."""
        wanted = self.current_id if stage_id is None else str(stage_id)
        for stage in self.stages:
            if stage.id == wanted:
                return stage
        there = ", ".join(repr(stage.id) for stage in self.stages)
        raise NotFoundError(f"there is no stage {wanted!r}; the stages are {there}")

    def checkout(self, stage_id: str) -> StageTree:
        """Make another stage the current one."""
        return replace(self, current_id=self.stage(stage_id).id)

    def lineage(self, stage_id: str | None = None) -> tuple[Stage, ...]:
        """Return the stages from the root to a stage, by default the current one."""
        by_id = {stage.id: stage for stage in self.stages}
        stages_up = [self.stage(stage_id)]
        while (parent := stages_up[-1].parent) is not None:
            stages_up.append(by_id[parent])
        return tuple(reversed(stages_up))

    def path_between(self, before: str, after: str) -> tuple[Stage, ...]:
        """Return the stages from one to another, through their last common ancestor.

        A recording has several roots; of two such trees, only the two stages are returned.
        """
        mine, theirs = self.lineage(before), self.lineage(after)
        common = [stage for stage in mine if stage in theirs]
        if not common:
            return mine[-1], theirs[-1]
        up = mine[mine.index(common[-1]) :][::-1]
        return (*up, *theirs[theirs.index(common[-1]) + 1 :])

    def add(self, made: Sequence[Stage]) -> StageTree:
        """Add stages and make the last of them the current one."""
        if not made:
            return self
        new = self._changed((*self.stages, *made), made[-1].id)
        return replace(new, count=self.count + len(made))

    def undo(self) -> StageTree:
        """Return the tree before its last change; raise StageError if there was none."""
        if self.past is None:
            raise StageError("there is nothing to undo: no change has been made")
        return replace(self.past, future=self, count=self.count)

    def redo(self) -> StageTree:
        """Return the tree before the last undo; raise StageError if there was none."""
        if self.future is None:
            raise StageError("there is nothing to redo: no change was undone since the last one")
        return replace(self.future, count=self.count)

    def rename(self, stage_id: str, label: str) -> StageTree:
        """Give a stage another label; raise StageError for an empty one."""
        stage = self.stage(stage_id)
        if not label.strip():
            raise StageError(f"stage {stage.id!r} needs a label: give one that is not empty")
        renamed = replace(stage, label=label.strip())
        return self._changed(
            tuple(renamed if one is stage else one for one in self.stages), self.current_id
        )

    def drop(self, stage_id: str) -> StageTree:
        """Drop a stage and all that were made from it; raise StageError for the first stage.

        If the current stage is among them, the parent of the dropped one becomes current.
        """
        stage = self.stage(stage_id)
        if stage is self.stages[0]:
            raise StageError("the first stage is what all others come from: drop one of those")
        gone = {stage.id}
        for one in self.stages:  # each comes after its parent
            if one.parent in gone:
                gone.add(one.id)
        left = tuple(one for one in self.stages if one.id not in gone)
        current = self.current_id if self.current_id not in gone else stage.parent or left[0].id
        return self._changed(left, current)

    def _changed(self, stages: tuple[Stage, ...], current_id: str) -> StageTree:
        return StageTree(stages, current_id, self.count, past=self)


# --- A path of stages as a script ----------------------------------------------------------------


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
