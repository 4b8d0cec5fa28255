"""The tree of stages at the explorer's left: which there are, how they compare, what to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import anywidget
import traitlets

from irviz.app.load import begun
from irviz.app.message import Say
from irviz.app.session import Session
from irviz.transforms.stage import Stage
from irviz.view.badge import duration

_STATIC = Path(__file__).parent / "static"


class TreeView(anywidget.AnyWidget):
    """Show rows of stages; ask for what the reader wants done with one.

    Traits:
        rows: One dict a stage: `id`, `label`, `depth`, `badge` (HTML), `title`, `isShown`,
            `isSame` (it changed nothing), `within`, the number of passes it is inside of, and
            `headings`, those of them that begin there.
        undoable, redoable: Whether there is anything to undo, or to do again.
    """

    _esm = _STATIC / "stages.js"
    _css = _STATIC / "stages.css"

    rows = traitlets.List(traitlets.Dict()).tag(sync=True)
    undoable = traitlets.Bool(False).tag(sync=True)
    redoable = traitlets.Bool(False).tag(sync=True)


class StageList:
    """Show a session's stages as a tree by indentation; report what is asked for."""

    def __init__(
        self,
        choose: Callable[[str], None],
        act: Callable[[Callable[[Session], Session]], None],
        say: Say,
    ) -> None:
        self.widget = TreeView()
        self.widget.add_class("irviz-stages")
        self._choose, self._act, self._say = choose, act, say
        self.widget.on_msg(self._hear)

    def show(self, session: Session, badges: Mapping[str, str]) -> None:
        """Show these stages, the shown one marked, with a badge (HTML) by stage id."""
        depths = _branch_depths(session)
        rows: list[dict[str, object]] = []
        around: tuple[str, ...] = ()
        for stage in session.stages:
            rows.append(
                {
                    "id": stage.id,
                    "label": stage.label,
                    "depth": depths[stage.id] + len(stage.within),
                    "badge": _badge(stage, badges.get(stage.id, "")),
                    "title": stage.error or stage.said or stage.label,
                    "isShown": stage.id == session.shown_id,
                    "isSame": stage.is_same,
                    "within": len(stage.within),
                    "headings": _begun(stage.within, around),
                }
            )
            around = stage.within
        with self.widget.hold_sync():
            self.widget.rows = rows
            self.widget.undoable = session.tree is not None and session.tree.past is not None
            self.widget.redoable = session.tree is not None and session.tree.future is not None

    def _hear(self, _: object, content: object, buffers: Sequence[memoryview | bytes]) -> None:
        """Do what the page asks for; anything else that it may send is ignored."""
        match content:
            case {"open": str(name)} if len(buffers) == 1:
                self._act(lambda session: begun(session, name, bytes(buffers[0])))
            case {"refused": str(words)}:
                self._say(words, True)
            case {"choose": str(stage_id)}:
                self._choose(stage_id)
            case {"rename": str(stage_id), "label": str(label)}:
                self._act(lambda session: session.rename(stage_id, label))
            case {"drop": str(stage_id)}:
                self._act(lambda session: session.drop(stage_id))
            case {"undo": True}:
                self._act(Session.undo)
            case {"redo": True}:
                self._act(Session.redo)


def _badge(stage: Stage, badge: str) -> str:
    """Return the badge; a recorded pass has its time."""
    if stage.seconds is None:
        return badge
    return f"<small>{duration(stage.seconds)}</small> {badge}"


def _begun(within: tuple[str, ...], around: tuple[str, ...]) -> list[dict[str, object]]:
    """Return the passes that begin before a stage, with how deep they stand."""
    shared = 0
    while shared < min(len(within), len(around)) and within[shared] == around[shared]:
        shared += 1
    return [{"name": within[depth], "depth": depth} for depth in range(shared, len(within))]


def _branch_depths(session: Session) -> dict[str, int]:
    """Indent a stage one step further than its parent when it is not the parent's first child."""
    depths: dict[str, int] = {}
    with_child: set[str] = set()
    for stage in session.stages:
        if stage.parent is None:
            depths[stage.id] = 0
            continue
        depths[stage.id] = depths[stage.parent] + (stage.parent in with_child)
        with_child.add(stage.parent)
    return depths
