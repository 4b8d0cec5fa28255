"""The tree of stages at the explorer's left: which there are, how they compare, what to do."""

from __future__ import annotations

import anywidget
import traitlets

from irviz.explorer.panels.form_controls import classed
from irviz.explorer.panels.panel import Panel
from irviz.explorer.stage_rows import stage_rows
from irviz.explorer.state import State
from irviz.explorer.store import Store
from irviz.explorer.viewer import STATIC
from irviz.explorer.viewer.messages import StageMessage, StageRow


class TreeView(anywidget.AnyWidget):
    """Show rows of stages; report what the reader wants done with one.

    Traits:
        rows: One StageRow a stage, in the order in which they are drawn.
        undoable, redoable: Whether there is anything to undo, or to do again.
    """

    _esm = STATIC / "stages.js"
    _css = STATIC / "stages.css"

    rows: traitlets.List[StageRow] = traitlets.List().tag(sync=True)
    undoable = traitlets.Bool(False).tag(sync=True)
    redoable = traitlets.Bool(False).tag(sync=True)


class StageList(Panel):
    """Show a session's stages as a tree by indentation."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.widget = classed(TreeView(), "irviz-stages")
        self.widget.on_msg(
            lambda _, content, buffers: self.receive(
                content, StageMessage, content=bytes(buffers[0]) if len(buffers) == 1 else None
            )
        )

    def _parts(self, state: State) -> tuple[object, ...]:
        return stage_rows(state), state.session.tree

    def _show(self, state: State) -> None:
        tree = state.session.tree
        with self.widget.hold_sync():
            self.widget.rows = stage_rows(state)
            self.widget.undoable = tree.past is not None
            self.widget.redoable = tree.future is not None
