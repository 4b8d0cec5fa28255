"""The tree of all stages, with the current one, undo and redo."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from irviz.errors import NotFoundError, StageError
from irviz.transforms.stage import Stage


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
