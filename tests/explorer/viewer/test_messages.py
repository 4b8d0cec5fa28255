"""Python and the page mean the same by each message, row and trait."""

from __future__ import annotations

import re
from dataclasses import is_dataclass
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints, is_typeddict

import pytest
import traitlets

from irviz.explorer.canvas import Canvas
from irviz.explorer.loop_view import LoopView
from irviz.explorer.panels.python_panel import CopyButton
from irviz.explorer.panels.stage_list import TreeView
from irviz.explorer.viewer import messages

DECLARED = (Path(messages.__file__).parent / "src" / "messages.d.ts").read_text("utf-8")
WIDGETS = {
    "CanvasTraits": Canvas,
    "CopyTraits": CopyButton,
    "LoopTraits": LoopView,
    "StageTraits": TreeView,
}
UNIONS = ("CanvasMessage", "CopyMessage", "StageMessage")
SIMPLE = {str: "string", bool: "boolean", int: "number", float: "number", Literal[True]: "true"}


def interfaces() -> dict[str, dict[str, str]]:
    """Return the fields of the page's interfaces, without those that take type parameters."""
    found = re.findall(r"export interface (\w+) \{\n(.*?)\n\}", DECLARED, flags=re.DOTALL)
    return {
        name: dict(re.findall(r"^  (\w+): (.*);$", body, flags=re.MULTILINE))
        for name, body in found
    }


def union(name: str) -> list[str]:
    """Return the names of the kinds that a type of the page is made of."""
    return re.search(rf"export type {name} = (.*?);", DECLARED)[1].split(" | ")


def typescript(hint: object) -> str:
    """Return how the page writes a type."""
    if get_origin(hint) is list:
        return f"{typescript(*get_args(hint))}[]"
    return SIMPLE.get(hint) or hint.__name__


def trait_type(trait: traitlets.TraitType) -> str:
    """Return how the page writes the type of a trait."""
    match trait:
        case traitlets.Unicode():
            return "string"
        case traitlets.Bool():
            return "boolean"
        case traitlets.Int() | traitlets.Float():
            return "number"
        case traitlets.List() if trait._trait is not None:
            return f"{trait_type(trait._trait)}[]"
    raise AssertionError(f"no type of the page is known for {trait!r}")


def test_each_row_and_message_has_the_same_fields_on_both_sides() -> None:
    kinds = [
        kind
        for kind in vars(messages).values()
        if (is_dataclass(kind) or is_typeddict(kind)) and kind.__module__ == messages.__name__
    ]
    ours = {
        kind.__name__: {name: typescript(hint) for name, hint in get_type_hints(kind).items()}
        for kind in kinds
    }
    known = {"Model", "RenderProps", *WIDGETS}
    assert len(ours) == 12
    assert ours == {name: body for name, body in interfaces().items() if name not in known}


@pytest.mark.parametrize("name", UNIONS)
def test_a_widget_sends_what_python_reads(name: str) -> None:
    kinds = getattr(messages, name)
    assert union(name) == [kind.__name__ for kind in get_args(kinds) or (kinds,)]


@pytest.mark.parametrize(("name", "widget"), WIDGETS.items())
def test_a_widget_has_the_traits_that_the_page_uses(name: str, widget: type) -> None:
    own = {
        trait: kind
        for trait, kind in widget.class_traits(sync=True).items()
        if trait in vars(widget)
    }
    special = {"viewport": "Viewport", "rows": "StageRow[]"}
    types = {trait: special.get(trait) or trait_type(kind) for trait, kind in own.items()}
    assert types == interfaces()[name]


@pytest.mark.parametrize(
    "content",
    [
        *(None, "toggle", 3, [], {}, {"toggle": 3}, {"toggle": None}, {"leave": ["a"]}),
        *({"toggle": "a", "leave": "b"}, {"toggle": "a", "more": 1}, {"other": "a"}),
    ],
)
def test_what_is_no_message_is_not_read_as_one(content: object) -> None:
    assert messages.parse(content, messages.CanvasMessage) is None


def test_a_message_is_read_as_its_kind() -> None:
    read = messages.parse({"rename": "1", "label": "bound"}, messages.StageMessage)
    assert read == messages.Rename("1", "bound")
    assert messages.parse({"undo": True}, messages.StageMessage) == messages.Undo(True)
    assert messages.parse({"undo": False}, messages.StageMessage) is None
    assert messages.parse({"copy": True}, messages.CopyMessage) == messages.Copy(True)
