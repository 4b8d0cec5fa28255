"""An explorer is one widget; its forms are made when they are opened, and parts can stand alone."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from comm import get_comm_manager

import irviz
from irviz.course.mlp import MyModule
from irviz.explorer import explorer as explorer_module
from irviz.explorer.actions import Checkout, Rename, Say
from irviz.session.session import Session
from tests.widget_messages import send_message

pytestmark = pytest.mark.worker

TABS = ["Transform", "Schedule", "Results", "Profile", "Save"]


@pytest.fixture
def alive() -> Any:
    """Return a function that gives the widgets that were made since, and are not closed.

    Each has a comm of its own.
    """
    comms = get_comm_manager().comms
    before = set(comms)
    return lambda: [one for one in comms if one not in before]


@pytest.fixture
def page(opened: Any) -> Any:
    return opened(Session(MyModule).apply("LegalizeOps"))


def told(pane: Any) -> dict[str, object]:
    """Return what the page of a widget knows of the state."""
    names = ("rows", "functions", "scene", "scripts", "selection", "details", "found", "status")
    return {
        name: getattr(pane, name) for name in (*names, "colour", "hasScript", "hasNumpy", "isDark")
    }


# --- forms -------------------------------------------------------------------------------------


def test_only_the_forms_of_a_node_are_made_before_a_tab_is_opened(alive: Any, page: Any) -> None:
    assert list(page.explorer.forms) == ["Node"]
    assert page.explorer.tabs == TABS
    before = len(alive())
    page.open("Save")
    assert len(alive()) > before + 3


@pytest.mark.parametrize("tab", TABS)
def test_a_tab_has_its_forms_when_it_is_opened_and_keeps_them(page: Any, tab: str) -> None:
    page.open(tab)
    assert list(page.explorer.forms) == ["Node", tab]
    form = page.explorer.forms[tab]
    page.open("Node")
    page.open(tab)
    assert page.explorer.forms[tab] is form
    assert len(list(page.all())) > 3


def test_the_first_selection_makes_no_form(page: Any) -> None:
    form = page.explorer.forms["Node"]
    page.select("lv0")
    assert page.explorer.forms == {"Node": form}


def test_a_form_that_is_opened_later_shows_the_state_as_it_is(page: Any) -> None:
    page.explorer.session = page.explorer.session.with_run_config(seconds=7.0)
    page.open("Results")
    assert page.find("irviz-limits-seconds").value == 7.0
    page.open("Node")
    page.explorer.session = page.explorer.session.with_run_config(seconds=3.0)
    assert page.find("irviz-limits-seconds").value == 3.0


def test_a_tab_that_is_none_has_no_form(page: Any) -> None:
    page.open("Nothing")
    assert list(page.explorer.forms) == ["Node"]


# --- parts that stand alone --------------------------------------------------------------------


@pytest.mark.parametrize("name", ["graph", "stages", "script"])
def test_a_part_alone_shows_the_same_and_follows(page: Any, name: str) -> None:
    part = getattr(page.explorer, name)
    assert part.panes == [name]
    for change in (
        lambda: None,
        lambda: page.choose("0"),
        lambda: page.compare("1"),
        lambda: page.select("lv0"),
        lambda: page.send(action="Rename", stage="1", label="lowered"),
        lambda: page.search("relu"),
        lambda: page.write("isDark", True),
    ):
        change()
        assert told(part) == told(page.explorer)


def test_what_is_done_in_a_part_is_done_in_the_explorer(page: Any) -> None:
    graph, stages = page.explorer.graph, page.explorer.stages
    graph.set_state({"selection": {"node": "lv1", "side": "current"}})
    assert page.explorer.selected == page.canvas.selected == "lv1"
    send_message(stages, {"action": "Checkout", "stage": "0"})
    assert page.explorer.session.current_id == "0"
    assert graph.scene["key"] == "main/0/"
    assert graph.selection == {"node": "lv1", "side": "current"}


def test_nothing_that_the_page_wrote_in_one_message_is_overwritten(
    page: Any, monkeypatch: Any
) -> None:
    sent: set[str] = set()

    def send(data: Any, *_: Any, **__: Any) -> None:
        sent.update(data["state"] if data["method"] == "update" else ())

    monkeypatch.setattr(page.explorer.comm, "send", send)
    selection = {"node": "lv1", "side": "current"}
    written = {"selection": selection, "tab": "Schedule", "hasScript": True, "search": "add"}
    page.explorer.set_state(written)
    assert "scripts" in sent
    assert not sent & written.keys()


def test_what_is_done_while_another_thread_shows_something_is_not_lost(
    page: Any, monkeypatch: Any
) -> None:
    begun, first = threading.Event(), threading.current_thread()

    def send(data: Any, *_: Any, **__: Any) -> None:
        is_told = data["method"] == "update" and threading.current_thread() is first
        if is_told and not begun.is_set():
            begun.set()
            other.join(0.3)  # it may not act before this has been shown

    def act() -> None:
        begun.wait(10)
        page.explorer.set_state({"tab": "Schedule", "search": "add"})
        send_message(page.explorer, {"action": "Rename", "stage": "1", "label": "lowered"})

    monkeypatch.setattr(page.explorer.comm, "send", send)
    other = threading.Thread(target=act)
    other.start()
    page.select("lv1")
    other.join(10)
    assert (page.state.tab, page.state.search) == ("Schedule", "add")
    assert page.state.session.stage("1").label == "lowered"


def test_the_text_alone_has_a_text(page: Any) -> None:
    assert page.explorer.scripts["current"] is None
    script = page.explorer.script
    assert "def main" in script.scripts["current"]["text"]


def test_a_part_that_is_closed_leaves_the_explorer_as_it_is(page: Any) -> None:
    page.explorer.graph.close()
    page.choose("0")
    assert page.canvas.data["stage"] == "0"
    assert page.message == ""


# --- the end -----------------------------------------------------------------------------------


def test_to_close_it_closes_every_widget_that_it_made(alive: Any, opened: Any) -> None:
    page = opened(Session(MyModule))
    for tab in TABS:
        page.open(tab)
    page.open("Node")
    page.select("lv0")
    _ = page.explorer.graph, page.explorer.script
    assert len(alive()) > 300
    page.explorer.close()
    assert alive() == []
    page.explorer.close()


def test_a_closed_explorer_follows_nothing(page: Any) -> None:
    page.explorer.close()
    before = page.explorer.scene
    page.explorer.dispatch(irviz.explorer.actions.Checkout("0"))
    assert page.explorer.scene is before


# --- what goes wrong ---------------------------------------------------------------------------


def test_what_cannot_be_shown_at_all_is_said(page: Any, monkeypatch: Any, caplog: Any) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("no room to draw")

    with monkeypatch.context() as patched:
        patched.setattr(explorer_module, "picture_data", fail)
        page.choose("0")
    assert page.message == "no room to draw"
    assert page.status["isError"]
    assert "no room to draw" in caplog.text  # with its traceback
    page.choose("1")
    page.choose("0")
    assert page.canvas.data["stage"] == "0"


def test_two_changes_of_the_session_at_once_come_to_an_end(opened, modules):
    explorer = opened(irviz.Session(modules.SameTwice).apply("LegalizeOps")).explorer
    steps = []

    def change_twice(action, _):
        if isinstance(action, Say):
            explorer.dispatch(Checkout("0"))
            explorer.dispatch(Rename("1", "renamed"))

    def count(*_):
        steps.append(1)
        if len(steps) > 50:
            pytest.fail("the two changes follow each other for ever")

    explorer.store.listen(change_twice)
    explorer.store.subscribe(count)
    explorer.dispatch(Say("now"))
    assert explorer.session.current_id == "0"
    assert explorer.session.stage("1").label == "renamed"
