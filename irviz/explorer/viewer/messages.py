"""The messages that the page sends, and the rows of the tree of stages.

The page's side is `src/messages.d.ts`. A test compares the two, and the traits of the widgets with
those that the page knows.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import UnionType
from typing import Literal, TypedDict, get_args, get_origin, get_type_hints


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


@dataclass(frozen=True)
class Toggle:
    """Open or close what has this id."""

    toggle: str


@dataclass(frozen=True)
class Leave:
    """Close what is around the node of this id."""

    leave: str


CanvasMessage = Toggle | Leave


@dataclass(frozen=True)
class OpenFile:
    """Open a file of this name; its bytes are the message's only buffer."""

    open: str


@dataclass(frozen=True)
class Refused:
    """Say why a file was not sent."""

    refused: str


@dataclass(frozen=True)
class Choose:
    """Show the stage of this id."""

    choose: str


@dataclass(frozen=True)
class Rename:
    """Give the stage of this id another label."""

    rename: str
    label: str


@dataclass(frozen=True)
class Drop:
    """Drop the stage of this id, and what was made from it."""

    drop: str


@dataclass(frozen=True)
class Undo:
    """Take the last change of the stages back."""

    undo: Literal[True]


@dataclass(frozen=True)
class Redo:
    """Make again what was undone last."""

    redo: Literal[True]


StageMessage = OpenFile | Refused | Choose | Rename | Drop | Undo | Redo


@dataclass(frozen=True)
class Copy:
    """Send the text to be copied."""

    copy: Literal[True]


CopyMessage = Copy


def parse(content: object, kinds: UnionType | type) -> object:
    """Return what a page sent as a message of one of these kinds, None if it is of none."""
    for kind in get_args(kinds) or (kinds,):
        hints = get_type_hints(kind)
        if (
            isinstance(content, dict)
            and content.keys() == hints.keys()
            and all(_fits(content[name], hint) for name, hint in hints.items())
        ):
            return kind(**content)
    return None


def _fits(value: object, hint: type) -> bool:
    return value in get_args(hint) if get_origin(hint) is Literal else isinstance(value, hint)
