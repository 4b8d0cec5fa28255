"""Python and the page mean the same by each message, row and trait."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args, get_origin, get_type_hints

import pytest
import traitlets
from irviz.explorer.panels.stage_list import TreeView
from irviz.explorer.panels.stage_picture import Canvas
from irviz.explorer.viewer.messages import action_of

from irviz.explorer.actions import CopyScript, OpenFile, Rename, Toggle, Undo
from irviz.explorer.panels.save_panel import CopyButton
from irviz.explorer.panels.schedule_panel import LoopView
from irviz.explorer.viewer import messages

DECLARED = (Path(messages.__file__).parent / "src" / "messages.d.ts").read_text("utf-8")
WIDGETS = {
    "CanvasTraits": Canvas,
    "CopyTraits": CopyButton,
    "LoopTraits": LoopView,
    "StageTraits": TreeView,
}
UNIONS = ("CanvasMessage", "CopyMessage", "StageMessage")
SIMPLE = {str: "string", bool: "boolean", int: "number", float: "number"}
ADDED = ("side", "content", "path")
"""The fields that Python adds to what the page sends."""


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


def test_each_row_has_the_same_fields_on_both_sides() -> None:
    for kind in (messages.Heading, messages.StageRow):
        fields = {name: typescript(hint) for name, hint in get_type_hints(kind).items()}
        assert fields == interfaces()[kind.__name__]


@pytest.mark.parametrize("name", UNIONS)
def test_a_widget_sends_what_python_reads(name: str) -> None:
    kinds = getattr(messages, name)
    assert union(name) == [kind.__name__ for kind in kinds]
    for kind in kinds:
        fields = {one: hint for one, hint in get_type_hints(kind).items() if one not in ADDED}
        ours = {one: typescript(hint) for one, hint in fields.items()}
        assert interfaces()[kind.__name__] == {"action": f'"{kind.__name__}"', **ours}


def test_the_page_declares_nothing_else() -> None:
    sent = {kind.__name__ for name in UNIONS for kind in getattr(messages, name)}
    known = {"Model", "RenderProps", "Heading", "StageRow", *WIDGETS}
    assert interfaces().keys() <= sent | known


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
        *(None, "Toggle", 3, [], {}, {"action": "Toggle"}, {"action": ["Toggle"]}),
        *({"action": "Toggle", "container": one} for one in (3, None, ["a"])),
        {"action": "Toggle", "container": "a", "node": "b"},
        {"action": "Toggle", "container": "a", "side": "reference"},
        {"action": "Checkout", "stage": "1"},
        {"container": "a"},
    ],
)
def test_what_is_no_message_is_not_read_as_one(content: object) -> None:
    assert action_of(content, messages.CanvasMessage, side="current") is None


def test_a_message_is_read_as_an_action() -> None:
    asked = {"action": "Rename", "stage": "1", "label": "bound"}
    assert action_of(asked, messages.StageMessage) == Rename("1", "bound")
    assert action_of({"action": "Undo"}, messages.StageMessage, content=b"") == Undo()
    asked = {"action": "Toggle", "container": "a"}
    assert action_of(asked, messages.CanvasMessage, side="reference") == Toggle("a", "reference")
    assert action_of({"action": "CopyScript"}, messages.CopyMessage, path="x") == CopyScript("x")


def test_a_file_comes_with_its_bytes() -> None:
    asked = {"action": "OpenFile", "name": "x.py"}
    opened = action_of(asked, messages.StageMessage, content=b"text")
    assert opened == OpenFile("x.py", b"text")
    assert action_of(asked, messages.StageMessage, content=None) is None
