"""Stages of one module, and which of them is shown."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tvm import ir

from irviz.app.picture import Look, Picture, picture
from irviz.app.read import graph_of, script_of
from irviz.ir.identity import drawn_function, drawn_functions
from irviz.ir.script import Script
from irviz.model.graph import Graph
from irviz.transforms.lineage import path
from irviz.transforms.stage import Stage
from irviz.transforms.stage_tree import StageTree
from irviz.view.figure import Figure, figure
from irviz.view.overlay import Overlay

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True, eq=False)
class History:
    """An immutable tree of stages, and the function of theirs that is looked at."""

    module: ir.IRModule
    function: str = field(default="", kw_only=True)
    tree: StageTree | None = field(default=None, kw_only=True)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages, each behind the one that it was made from."""
        return self._tree.stages

    @property
    def shown_id(self) -> str:
        """The id of the stage that is shown."""
        return self._tree.shown_id

    @property
    def _tree(self) -> StageTree:
        assert self.tree is not None, "it is made with the session"
        return self.tree

    @property
    def shown(self) -> Stage:
        """The stage that verbs start from."""
        return self.stage(self.shown_id)

    def stage(self, stage_id: str | None = None) -> Stage:
        """Return a stage by its id, the shown one by default; raise ValueError for no such id."""
        return self._tree.stage(stage_id)

    def show(self, stage_id: str) -> Self:
        """Show another stage; raise ValueError for no such id."""
        return replace(self, tree=self._tree.show(stage_id))

    def undo(self) -> Self:
        """Take the last change of the stages back; raise ValueError when there was none."""
        return replace(self, tree=self._tree.undo())

    def redo(self) -> Self:
        """Make again what was undone last; raise ValueError when nothing was."""
        return replace(self, tree=self._tree.redo())

    def rename(self, stage_id: str, label: str) -> Self:
        """Give a stage another label; raise ValueError for no such id or an empty label."""
        return replace(self, tree=self._tree.rename(stage_id, label))

    def drop(self, stage_id: str) -> Self:
        """Drop a stage and all that were made from it; its parent is shown if it was.

        Raises ValueError for no such id, and for the first stage.
        """
        return replace(self, tree=self._tree.drop(stage_id))

    def lineage(self, stage: str | None = None) -> tuple[str, ...]:
        """Return the ids of the stages from the first to this one, the shown one by default."""
        return tuple(one.id for one in path(self.stages, self.stage(stage).id))

    def focus(self, function: str) -> Self:
        """Look at another function; raise ValueError when the shown stage lacks it."""
        drawn_function(self.shown.module, function)
        return replace(self, function=function)

    @property
    def functions(self) -> tuple[str, ...]:
        """The names of the shown stage's Relax functions, then of its PrimFuncs."""
        return tuple(drawn_functions(self.shown.module))

    def looking_at(self, wanted: str) -> Self:
        """Look at this function, or at one that the shown stage has instead.

        Raises ValueError when it has none at all.
        """
        there = self.functions
        if wanted in there:
            return self.focus(wanted)
        if not there:
            raise ValueError(f"{self.shown.label} left no function to show")
        return self if self.function in there else self.focus(there[0])

    def graph(self, stage_id: str | None = None) -> Graph:
        """Return the graph of a stage, the shown one by default."""
        return graph_of(self.stage(stage_id), self.function)

    def script(self, stage_id: str | None = None) -> Script:
        """Return the TVMScript of a stage, the shown one by default, with the lines of nodes."""
        return script_of(self.stage(stage_id))

    def picture(self, stage_id: str | None = None, look: Look | None = None) -> Picture:
        """Return what is drawn of a stage, the shown one by default.

        Raises ValueError for a look at a node that is not there.
        """
        return picture(self.stage(stage_id), self.function, look)

    def draw(
        self,
        stage_id: str | None = None,
        *,
        look: Look | None = None,
        theme: str = "course",
        direction: str = "up",
        overlay: Overlay | None = None,
        dimmed: Collection[str] = (),
    ) -> Figure:
        """Draw a stage, the shown one by default; raise ValueError for an unknown theme.

        An overlay is made of the stage's picture (`app/overlays.py`); `dimmed` are ids of nodes
        to draw pale.
        """
        graph = self.picture(stage_id, look).graph
        return figure(graph, theme, direction, overlay=overlay, dimmed=dimmed)
