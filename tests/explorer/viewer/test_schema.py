"""Python and the page mean the same by each record, trait and message."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

import pytest
import traitlets

from irviz.explorer import actions
from irviz.explorer.downloads import Saved
from irviz.explorer.save_html import record_in_steps
from irviz.explorer.state import Side, State
from irviz.explorer.viewer import schema
from irviz.explorer.viewer.schema import MESSAGES, WRITTEN, action_of
from irviz.explorer.viewer.widget import Viewer
from irviz.explorer.viewer.write_schema import TARGET, typescript
from irviz.progress import with_progress
from irviz.session.session import Session
from tests.widget_messages import send_message

HINTS = get_type_hints(schema.ViewerTraits)
EXAMPLES = {bool: True, int: 2, Side: "reference", list[str]: ["32, 4"]}
"""Values of fields; any other field gets a text that fits."""
STEP = {"primitive": "split", "target": ""}
NOT_SENT = {("OpenFile", "content"), ("Run", "stages")}
"""The fields that Python adds to what the page sends, or that the page leaves out."""


def interface(name: str) -> dict[str, str]:
    """Return the fields of one of the page's interfaces."""
    body = re.search(rf"export interface {name} \{{\n(.*?)\n\}}", typescript(), flags=re.DOTALL)
    assert body is not None, f"the page declares no {name}"
    return dict(re.findall(r"^  (\w+): (.*);$", body[1], flags=re.MULTILINE))


# --- what is declared --------------------------------------------------------------------------


def test_the_declarations_of_the_page_are_current() -> None:
    is_current = TARGET.read_text("utf-8") == typescript()
    assert is_current, "run `python -m irviz.explorer.viewer.write_schema` and `npm run build`"


def test_types_are_written_as_typescript() -> None:
    assert interface("Heading") == {"name": "string", "depth": "number"}
    assert interface("Scripts")["current"] == "Script | null"
    assert interface("PassTime")["left"] == "number"
    assert interface("StageRow")["headings"] == "Heading[]"
    assert interface("Picture")["nodes"] == "Record<string, NodeFacts>"
    assert interface("Selection")["side"] == "Side"
    assert interface("ViewerTraits")["forms"] == "Record<string, string>"
    assert interface("Recording")["traits"] == "ViewerTraits"
    assert interface("Answer") == {"action": '"Answer"', "isAllowed": "boolean"}
    assert interface("OpenFile") == {"action": '"OpenFile"', "name": "string"}
    assert 'export type Side = "current" | "reference";' in typescript()


def test_the_widget_has_the_declared_traits_and_defaults() -> None:
    widget = Viewer()
    for name, hint in get_type_hints(schema.ViewerTraits).items():
        empty = {} if is_typeddict(hint) else (get_origin(hint) or hint)()
        assert widget.trait_metadata(name, "sync")
        assert getattr(widget, name) == getattr(schema.ViewerTraits, name, empty)


@pytest.mark.parametrize(
    ("name", "value"),
    [("height", -1), ("panes", ["somewhere"]), ("tabs", [3]), ("isDark", "yes"), ("rows", {})],
)
def test_a_trait_takes_no_value_of_another_type(name: str, value: object) -> None:
    with pytest.raises(traitlets.TraitError):
        Viewer(**{name: value})


def test_what_the_page_writes_is_a_field_of_the_state() -> None:
    assert set(WRITTEN.values()) <= {one.name for one in fields(State)}
    assert set(WRITTEN.values()) <= set(get_args(actions.FieldName))


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
        for name, hint in HINTS.items():
            if name != "forms":
                assert misfit(getattr(page.explorer, name), hint, name) == ""

    check()
    page.write("hasScript", True)
    page.write("hasNumpy", True)
    page.write("hasBlame", True)
    page.search("add")
    page.select("first")
    page.compare("0")
    check()
    page.toggle(page.node("chosen_then")["group"])
    page.look_around("first", 1)
    check()


@pytest.mark.worker
def test_a_recording_is_of_the_types_that_are_declared(page: Any) -> None:
    recording = with_progress(record_in_steps(page.state))
    assert misfit(recording, schema.Recording, "recording") == ""
    assert recording["traits"].keys() == HINTS.keys()


def test_a_wrong_type_in_a_record_is_found() -> None:
    heading = {"name": "main", "depth": 1}
    assert misfit(heading, schema.Heading, "row") == ""
    assert misfit([heading], list[schema.Heading], "rows") == ""
    for wrong in ({"name": "main"}, {**heading, "more": ""}, {**heading, "depth": True}, None):
        assert misfit(wrong, schema.Heading, "row") != ""


# --- what the page sends -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.__name__)
def test_a_message_as_the_page_declares_it_is_read_as_its_action(kind: type) -> None:
    hints = get_type_hints(kind).items()
    sent = {
        name: EXAMPLES.get(hint, "time")
        for name, hint in hints
        if (kind.__name__, name) not in NOT_SENT
    }
    content = {re.sub("_(.)", lambda found: found[1].upper(), one): sent[one] for one in sent}
    assert interface(kind.__name__).keys() == {"action", *content}
    action = action_of({"action": kind.__name__, **content}, b"bytes")
    assert type(action) is kind
    assert {one: getattr(action, one) for one in sent} == sent


def test_fields_with_a_default_may_be_left_out() -> None:
    assert action_of({"action": "Run"}) == actions.Run()
    assert action_of({"action": "LookAround"}) == actions.LookAround()
    assert action_of({"action": "Toggle", "container": "a"}) == actions.Toggle("a")


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
        *({"action": "Run", "stages": one} for one in ("0", [0], {})),
        *({"action": "Answer", "isAllowed": one} for one in (1, "yes", None)),
        {"action": "Answer", "isAllowed": True, "files": ["a.py"]},
        *({"action": "DoStep", **STEP, "values": one} for one in ("4", [4], {}, None, [["4"]])),
        {"action": "Say", "words": "a", "isError": True, "IsError": True},
        {"action": "OpenFile", "name": "x.py", "content": "text"},
    ],
    ids=str,
)
def test_what_is_no_message_is_not_read_as_one(content: object) -> None:
    assert action_of(content) is None


def test_a_file_comes_with_its_bytes_and_in_no_other_way() -> None:
    asked = {"action": "OpenFile", "name": "x.py"}
    opened = action_of(asked, b"text")
    assert opened == actions.OpenFile("x.py", b"text")
    assert action_of(asked) is None
    assert action_of({**asked, "content": "text"}, b"text") is None
    assert action_of({"action": "Undo"}, b"text") == actions.Undo()


@pytest.mark.worker
def test_a_file_for_the_browser_is_sent_as_the_page_reads_it(page: Any, monkeypatch: Any) -> None:
    sent: list[tuple[Any, Any]] = []
    monkeypatch.setattr(
        page.explorer, "send", lambda content, buffers: sent.append((content, buffers))
    )
    page.explorer.dispatch(actions.Save(Saved("python")))
    ((told, (content,)),) = sent
    assert misfit(told, schema.Download, "download") == ""
    assert bytes(content).decode().startswith("#") or "import" in bytes(content).decode()


@pytest.mark.parametrize("buffers", [[], [b"one", b"two"]])
def test_a_file_is_opened_from_one_buffer(buffers: list[bytes]) -> None:
    viewer = Viewer()
    seen: list[actions.Action] = []
    viewer.on_action(seen.append)
    asked = {"action": "OpenFile", "name": "x.py"}
    send_message(viewer, asked, buffers)
    assert seen == []
    send_message(viewer, asked, [b"one"])
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
