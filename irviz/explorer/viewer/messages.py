"""The messages that the page sends, which are actions, and the rows of the tree of stages.

The page's side is `src/messages.d.ts`. A test compares the two, and the traits of the widgets with
those that the page knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict, get_type_hints

from irviz.explorer import actions
from irviz.explorer.actions import Action


class Heading(TypedDict):
    """A pass that the stages below it were recorded in."""

    name: str
    depth: int


class StageRow(TypedDict):
    """A stage in the tree; `headings` are those of the passes that begin with it.

    `depth` is how far it is indented, as drawn. A stage is made from the one above it of the same
    depth; where `isBranch`, from the nearest one above it that is less deep. `parent` is that
    stage's id, "" for none. `badge` is HTML.
    """

    id: str
    label: str
    parent: str
    depth: int
    isBranch: bool
    headings: list[Heading]
    badge: str
    title: str
    isShown: bool
    isSame: bool


CanvasMessage = (actions.Toggle, actions.CloseAround)
StageMessage = (
    *(actions.OpenFile, actions.Say, actions.Checkout, actions.Rename),
    *(actions.Drop, actions.Undo, actions.Redo),
)
CopyMessage = (actions.CopyScript,)
"""The actions that each widget sends, without the fields that Python adds."""


def action_of(content: object, kinds: Sequence[type[Action]], /, **added: object) -> Action | None:
    """Return a message of the page as an action of one of these kinds, None if it is none.

    The message has the action's name as `action`, and all its fields but those `added` here.
    """
    for kind in kinds:
        hints = {"action": str, **get_type_hints(kind)}
        fields = {name: hint for name, hint in hints.items() if added.get(name) is None}
        if (
            isinstance(content, dict)
            and content.keys() == fields.keys()
            and content["action"] == kind.__name__
            and all(isinstance(content[name], hint) for name, hint in fields.items())
        ):
            given = {**content, **added}
            return kind(**{name: given[name] for name in hints if name != "action"})
    return None
