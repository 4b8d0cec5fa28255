"""The tree of stages as a value: which there are, which is shown, what can be undone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from irviz.transforms.lineage import descendants
from irviz.transforms.stage import Stage


@dataclass(frozen=True, eq=False)
class StageTree:
    """Stages, each behind the one that it was made from; every change returns a new tree.

    `count` is the number of stages ever made, so that no id is given twice; `past` and `future`
    are what undo and redo return.
    """

    stages: tuple[Stage, ...]
    shown_id: str = "0"
    count: int = 1
    past: StageTree | None = None
    future: StageTree | None = None

    def stage(self, stage_id: str | None = None) -> Stage:
        """Return a stage by its id, the shown one by default; raise ValueError for no such id."""
        wanted = self.shown_id if stage_id is None else str(stage_id)
        for stage in self.stages:
            if stage.id == wanted:
                return stage
        there = ", ".join(repr(stage.id) for stage in self.stages)
        raise ValueError(f"there is no stage {wanted!r}; the stages are {there}")

    def show(self, stage_id: str) -> StageTree:
        """Show another stage; raise ValueError for no such id."""
        return replace(self, shown_id=self.stage(stage_id).id)

    def add(self, made: Sequence[Stage]) -> StageTree:
        """Add stages, and show the last of them."""
        if not made:
            return self
        new = self._changed((*self.stages, *made), made[-1].id)
        return replace(new, count=self.count + len(made))

    def undo(self) -> StageTree:
        """Return the tree before its last change; raise ValueError when there was none."""
        if self.past is None:
            raise ValueError("there is nothing to undo: the session is as it began")
        return replace(self.past, future=self, count=self.count)

    def redo(self) -> StageTree:
        """Return the tree before the last undo; raise ValueError when there was none."""
        if self.future is None:
            raise ValueError("there is nothing to redo: no change was undone since the last one")
        return replace(self.future, count=self.count)

    def rename(self, stage_id: str, label: str) -> StageTree:
        """Give a stage another label; raise ValueError for no such id or an empty label."""
        stage = self.stage(stage_id)
        if not label.strip():
            raise ValueError(f"stage {stage.id!r} needs a label: give some words")
        renamed = replace(stage, label=label.strip())
        return self._changed(
            tuple(renamed if one is stage else one for one in self.stages), self.shown_id
        )

    def drop(self, stage_id: str) -> StageTree:
        """Drop a stage and all that were made from it; its parent is shown if it was.

        Raises ValueError for no such id, and for the first stage.
        """
        stage = self.stage(stage_id)
        if stage is self.stages[0]:
            raise ValueError("the first stage is what all others come from: drop one of those")
        gone = descendants(self.stages, stage.id)
        left = tuple(one for one in self.stages if one.id not in gone)
        shown = self.shown_id if self.shown_id not in gone else stage.parent or left[0].id
        return self._changed(left, shown)

    def _changed(self, stages: tuple[Stage, ...], shown_id: str) -> StageTree:
        return StageTree(stages, shown_id, self.count, past=self)
