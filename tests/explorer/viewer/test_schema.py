"""Python and the page mean the same by each record, trait and message."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

import pytest
import traitlets

from irviz.explorer import actions
from irviz.explorer.downloads import Saved
from irviz.explorer.html_file import last, record_in_steps
from irviz.explorer.panels.schedule_panel import LoopView
from irviz.explorer.viewer import schema
from irviz.explorer.viewer.schema import MESSAGES, action_of
from irviz.explorer.viewer.widget import Viewer
from irviz.session.session import Session

SOURCES = Path(schema.__file__).parent / "src"
DECLARED = (SOURCES / "schema.ts").read_text("utf-8")
OTHERS = "\n".join(path.read_text("utf-8") for path in sorted(SOURCES.glob("*.ts")))
RECORDS = {
    name: one
    for name, one in vars(schema).items()
    if is_typeddict(one) and one.__module__ == schema.__name__
}
SIMPLE = {str: "string", bool: "boolean", int: "number", float: "number", object: "unknown"}
NOT_SENT = {("OpenFile", "content"), ("Run", "stages")}
"""The fields that Python adds to what the page sends, or that the page leaves out."""
TRAITS = {
    "rows": list[schema.StageRow],
    "functions": list[schema.FunctionRow],
    "scene": schema.Scene,
    "scripts": schema.Scripts,
    "blockLines": schema.BlockLines,
    "selection": schema.Selection,
    "details": schema.Details,
    "found": schema.Found,
    "status": schema.Status,
    "times": list[schema.PassTime],
    "colours": list[schema.ColourChoice],
    "clipboard": schema.Clipboard,
    "forms": dict[str, str],  # references, where they are sent
}
"""What the traits hold that traitlets knows as lists and dicts."""
WRITTEN = ("selection", "search", "tab", "hasScript", "hasNumPy", "hasBlame", "isDark")


# --- the page's declarations -------------------------------------------------------------------


def interface(name: str, source: str = DECLARED) -> dict[str, str]:
    """Return the fields of one of the page's interfaces."""
    body = re.search(rf"export interface {name} \{{\n(.*?)\n\}}", source, flags=re.DOTALL)
    assert body is not None, f"the page declares no {name}"
    return dict(re.findall(r"^  (\w+): (.*);$", body[1], flags=re.MULTILINE))


def union(name: str, source: str = DECLARED) -> list[str]:
    """Return what a type of the page is made of."""
    body = re.search(rf"export type {name} =\s(.*?);", source, flags=re.DOTALL)
    assert body is not None, f"the page declares no {name}"
    return [one.strip() for one in body[1].split("|") if one.strip()]


def typescript(hint: Any) -> str:
    """Return how the page writes a type."""
    if hint is type(None):
        return "null"
    if get_origin(hint) is list:
        return f"{typescript(*get_args(hint))}[]"
    if get_origin(hint) is dict:
        return f"Record<{', '.join(map(typescript, get_args(hint)))}>"
    if get_origin(hint) is Union or isinstance(hint, UnionType):
        return " | ".join(dict.fromkeys(map(typescript, get_args(hint))))
    if get_origin(hint) is Literal:
        words = [f'"{one}"' for one in get_args(hint)]
        names = re.findall(r"export type (\w+) =", DECLARED)
        return next((name for name in names if union(name) == words), "string")
    hint = getattr(hint, "__supertype__", hint)
    return SIMPLE.get(hint) or str(hint.__name__)


def trait_type(name: str, trait: Any) -> str:
    """Return how the page writes the type of a trait."""
    if name in TRAITS:
        return typescript(TRAITS[name])
    match trait:
        case traitlets.Unicode():
            return "string"
        case traitlets.Bool():
            return "boolean"
        case traitlets.Int() | traitlets.Float():
            return "number"
        case traitlets.Enum():
            return typescript(Literal[tuple(trait.values)])
        case traitlets.List():
            return f"{trait_type('', trait._trait)}[]"
    raise AssertionError(f"no type of the page is known for {name}: {trait!r}")


def own_traits(widget: Any) -> dict[str, str]:
    synced = widget.class_traits(sync=True).items()
    return {name: trait_type(name, trait) for name, trait in synced if name in vars(widget)}


def test_the_types_of_the_page_are_read() -> None:
    """So that the comparisons below compare something."""
    assert interface("Heading") == {"name": "string", "depth": "number"}
    assert union("Side") == ['"current"', '"reference"']
    assert typescript(dict[str, list[bool]]) == "Record<string, boolean[]>"
    assert typescript(str | None) == "string | null"
    assert len(RECORDS) >= 18


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_has_the_same_fields_and_types_on_both_sides(name: str) -> None:
    fields = {one: typescript(hint) for one, hint in get_type_hints(RECORDS[name]).items()}
    if name == "Recording":  # Python keeps the traits as what the widget has
        fields["traits"] = "ViewerTraits"
    assert fields == interface(name)


def test_the_parts_of_the_viewer_have_the_same_names_on_both_sides() -> None:
    assert [f'"{one}"' for one in get_args(schema.PaneName)] == union("PaneName")


def test_the_viewer_has_the_traits_that_the_page_uses() -> None:
    assert own_traits(Viewer) == interface("ViewerTraits")


def test_the_page_follows_each_trait_of_the_viewer() -> None:
    listed = re.search(r"const TRAITS\b.*? = \[(.*?)\];", OTHERS, flags=re.DOTALL)
    assert listed is not None
    followed = re.findall(r'"(\w+)"', listed[1])
    assert set(followed) == own_traits(Viewer).keys() - {"still"}  # which never changes


def test_the_page_writes_the_traits_that_python_hears() -> None:
    found = re.search(r"type WritableTraits = Pick<\s*ViewerTraits,(.*?)>;", OTHERS, re.DOTALL)
    assert found is not None
    assert tuple(re.findall(r'"(\w+)"', found[1])) == WRITTEN


def test_the_loop_nest_has_the_traits_that_the_page_uses() -> None:
    assert own_traits(LoopView) == interface("LoopTraits", OTHERS)


# --- what is sent to the page ------------------------------------------------------------------


def misfit(value: Any, hint: Any, where: str) -> str:
    """Return where a value is not of a type, "" where all of it is."""
    if isinstance(hint, UnionType) or get_origin(hint) is Union:
        found = [misfit(value, one, where) for one in get_args(hint)]
        return "" if "" in found else found[0]
    if is_typeddict(hint):
        hints = get_type_hints(hint)
        if not isinstance(value, Mapping) or value.keys() != hints.keys():
            return f"{where}: {value!r} is no {hint.__name__}"
        found = [misfit(value[one], hints[one], f"{where}.{one}") for one in hints]
        return next(filter(None, found), "")
    if get_origin(hint) in (list, dict):
        if not isinstance(value, get_origin(hint)):
            return f"{where}: {value!r} is no {hint}"
        inside = value.items() if isinstance(value, dict) else enumerate(value)
        found = [misfit(one, get_args(hint)[-1], f"{where}[{key}]") for key, one in inside]
        return next(filter(None, found), "")
    if get_origin(hint) is Literal:
        return "" if value in get_args(hint) else f"{where}: {value!r}"
    wanted = (int, float) if hint is float else hint
    is_right = isinstance(value, wanted) and isinstance(value, bool) == (hint is bool)
    is_right = is_right and not hasattr(value, "__html__")  # which marimo would send as an object
    return "" if is_right or hint is object else f"{where}: {value!r} is no {hint.__name__}"


@pytest.fixture
def page(opened: Any, modules: Any) -> Any:
    return opened(Session(modules.EveryKind, function="main").apply("LegalizeOps"))


@pytest.mark.worker
def test_what_the_page_is_told_is_of_the_types_that_are_declared(page: Any) -> None:
    def check() -> None:
        for name, hint in TRAITS.items():
            if name != "forms":
                assert misfit(getattr(page.explorer, name), hint, name) == ""

    check()
    page.write("hasScript", True)
    page.write("hasNumPy", True)
    page.write("hasBlame", True)
    page.search("add")
    page.select("first")
    page.compare("0")
    check()
    page.send(action="CloseAround", node="chosen_then", side="current")
    page.look_around("first", 1)
    check()


@pytest.mark.worker
def test_a_recording_is_of_the_types_that_are_declared(page: Any) -> None:
    recording = last(record_in_steps(page.state))
    assert misfit(recording, schema.Recording, "recording") == ""
    assert recording["traits"].keys() == own_traits(Viewer).keys()


def test_a_wrong_type_in_a_record_is_found() -> None:
    heading = {"name": "main", "depth": 1}
    assert misfit(heading, schema.Heading, "row") == ""
    assert misfit([heading], list[schema.Heading], "rows") == ""
    for wrong in ({"name": "main"}, {**heading, "more": ""}, {**heading, "depth": True}, None):
        assert misfit(wrong, schema.Heading, "row") != ""


# --- what the page sends -----------------------------------------------------------------------


def test_the_page_sends_the_messages_that_python_reads() -> None:
    assert union("ViewerMessage") == [kind.__name__ for kind in MESSAGES]
    for kind in MESSAGES:
        fields = {
            re.sub("_(.)", lambda found: found[1].upper(), one): typescript(hint)
            for one, hint in get_type_hints(kind).items()
            if (kind.__name__, one) not in NOT_SENT
        }
        expected = {"action": f'"{kind.__name__}"', **fields}
        assert interface(kind.__name__) == expected


EXAMPLES = {"string": "time", "number": 2, "boolean": True, "Side": "reference"}


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.__name__)
def test_a_message_as_the_page_declares_it_is_read_as_its_action(kind: type) -> None:
    name = kind.__name__
    content = {one: EXAMPLES.get(type_) for one, type_ in interface(name).items()}
    content["action"] = name
    action = action_of(content, MESSAGES, content=b"bytes")
    assert type(action) is kind
    for field, value in content.items():
        if field != "action":
            ours = re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", field)
            assert getattr(action, ours) == value


def test_fields_with_a_default_may_be_left_out() -> None:
    assert action_of({"action": "Run"}, MESSAGES) == actions.Run()
    assert action_of({"action": "LookAround"}, MESSAGES) == actions.LookAround()
    assert action_of({"action": "Toggle", "container": "a"}, MESSAGES) == actions.Toggle("a")


@pytest.mark.parametrize(
    "content",
    [
        *(None, "Toggle", 3, [], ["Toggle"], {}, {"container": "a"}),
        *({"action": one} for one in (None, 3, ["Toggle"], "toggle", "Action", "__class__")),
        *({"action": one} for one in ("Trust", "SetSession", "Report", "Apply", "SaveSession")),
        *({"action": one} for one in ("Toggle", "Checkout", "Rename", "Compare", "Answer")),
        *({"action": "Toggle", "container": one} for one in (3, None, ["a"], {}, True)),
        {"action": "Toggle", "container": "a", "node": "b"},
        *({"action": "Toggle", "container": "a", "side": one} for one in ("", "left", None, [])),
        *({"action": "ColourBy", "kind": one} for one in ("speed", None, 0, ["time"], {})),
        *({"action": "ShowCopy", "container": "a", "copy": one} for one in ("1", 1.5, True, None)),
        *({"action": "LookAround", "node": "a", "steps": one} for one in ("1", True, 1e3, [])),
        *({"action": "Run", "again": one} for one in (1, "true", None)),
        *({"action": "Run", "stages": one} for one in (["0"], "0", ("0",))),
        *({"action": "Answer", "isAllowed": one} for one in (1, "yes", None)),
        {"action": "Answer", "isAllowed": True, "files": ["a.py"]},
        {"action": "Say", "words": "a", "isError": True, "IsError": True},
        {"action": "OpenFile", "name": "x.py", "content": "text"},
    ],
    ids=str,
)
def test_what_is_no_message_is_not_read_as_one(content: object) -> None:
    assert action_of(content, MESSAGES, content=None) is None


def test_a_file_comes_with_its_bytes_and_in_no_other_way() -> None:
    asked = {"action": "OpenFile", "name": "x.py"}
    opened = action_of(asked, MESSAGES, content=b"text")
    assert opened == actions.OpenFile("x.py", b"text")
    assert action_of(asked, MESSAGES, content=None) is None
    assert action_of({**asked, "content": "text"}, MESSAGES, content=b"text") is None
    assert action_of({"action": "Undo"}, MESSAGES, content=b"text") == actions.Undo()


@pytest.mark.worker
def test_a_file_for_the_browser_is_sent_as_the_page_reads_it(page: Any, monkeypatch: Any) -> None:
    sent: list[tuple[Any, Any]] = []
    monkeypatch.setattr(
        page.explorer, "send", lambda content, buffers: sent.append((content, buffers))
    )
    page.explorer.dispatch(actions.Save(Saved("python")))
    ((told, (content,)),) = sent
    declared = {"action": '"Download"', "name": "string", "type": "string"}
    assert interface("Download") == declared
    assert told.keys() == declared.keys()
    assert told["action"] == "Download"
    assert bytes(content).decode().startswith("#") or "import" in bytes(content).decode()


@pytest.mark.parametrize("buffers", [[], [b"one", b"two"]])
def test_a_file_is_opened_from_one_buffer(buffers: list[bytes]) -> None:
    viewer = Viewer()
    seen: list[actions.Action] = []
    viewer.on_action(seen.append)
    asked = {"action": "OpenFile", "name": "x.py"}
    viewer._handle_custom_msg(asked, [memoryview(one) for one in buffers])
    assert seen == []
    viewer._handle_custom_msg(asked, [memoryview(b"one")])
    assert seen == [actions.OpenFile("x.py", b"one")]


@pytest.mark.worker
@pytest.mark.parametrize(
    "selection",
    [{}, {"node": 3, "side": "current"}, {"node": "x"}, {"node": "x", "side": "left"}],
)
def test_a_selection_that_is_none_changes_nothing(page: Any, selection: dict[str, Any]) -> None:
    page.select("first")
    before = page.state
    page.write("selection", selection)
    assert page.state is before


@pytest.mark.worker
def test_a_node_that_is_not_there_is_not_selected(page: Any) -> None:
    page.select("first")
    assert page.explorer.selected == "first"
    page.select("nobody")
    assert page.canvas.selected == page.explorer.selected == ""
