"""A session is written as one HTML file: all that it needs is in it, and nothing else."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import irviz
from irviz.cli.main import demo_stages
from irviz.explorer.actions import SetField
from irviz.explorer.save_html import page_in_steps, write_html
from irviz.explorer.state import Clipboard, State
from irviz.explorer.store import Store
from irviz.progress import with_progress
from irviz.session.session import Session

pytestmark = pytest.mark.worker


class Parts(HTMLParser):
    """The elements of a page with their attributes, and the text in each kind of them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.attributes: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self._open = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes.append((tag, dict(attrs)))
        self._open = str(dict(attrs).get("id") or dict(attrs).get("type") or tag)

    def handle_endtag(self, _: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        self.texts[self._open] = self.texts.get(self._open, "") + data

    @property
    def policy(self) -> str:
        """What the page lets be done."""
        (found,) = [values for _, values in self.attributes if "http-equiv" in values]
        return str(found["content"])


def recording_in(page: str) -> Any:
    """Return the recording that a page holds."""
    packed = Parts(page).texts["irviz-recording"]
    data = json.loads(gzip.decompress(base64.b64decode(packed)))

    def restored(value: Any) -> Any:
        if isinstance(value, list):
            return [restored(one) for one in value]
        if not isinstance(value, dict):
            return value
        if [*value] == ["$"] and isinstance(value["$"], int):
            return restored(data["values"][value["$"]])
        return {key: restored(one) for key, one in value.items()}

    return restored(data["recording"])


@pytest.fixture(scope="module")
def session() -> Session:
    return demo_stages()


@pytest.fixture(scope="module")
def page(session: Session) -> str:
    return with_progress(page_in_steps(State.of(session)))


def test_the_page_has_every_stage_with_each_function_alone_and_beside_its_parent(page: str) -> None:
    recording = recording_in(page)
    keys = {view["scene"]["key"] for view in recording["views"]}
    for function in ("main", "linear0", "relu0"):
        assert {f"{function}/{key}" for key in ("0/", "1/", "1/0", "2/", "2/1")} <= keys
    assert [script["stage"] for script in recording["scripts"]] == ["0", "1", "2"]
    assert recording["traits"]["scene"]["key"] == "main/2/"


def test_the_page_refers_to_nothing_and_lets_only_its_own_script_run(page: str) -> None:
    parts = Parts(page)
    names = {name for _, values in parts.attributes for name in values}
    assert not names & {"src", "href", "srcset", "style", "action", "data"}
    digest = base64.b64encode(hashlib.sha256(parts.texts["module"].encode()).digest()).decode()
    assert parts.policy == (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def test_the_page_of_the_lecture_is_small(page: str) -> None:
    assert len(page.encode()) < 1_200_000


@pytest.fixture
def small(modules: ModuleType) -> Session:
    return Session(modules.chain("x", "y"))


def test_what_was_copied_searched_and_said_is_not_in_the_page(small: Session) -> None:
    store = Store(State.of(small))
    store.dispatch(SetField("search", "secret words"))
    state = replace(store.state, clipboard=Clipboard("secret text", 3))
    recorded = json.dumps(recording_in(with_progress(page_in_steps(state))))
    assert "secret" not in recorded
    assert "relax.add" in recorded


@pytest.mark.build
def test_stages_are_run_for_the_page_when_that_is_asked_for(
    session: Session, page: str, tmp_path: Path
) -> None:
    plain = recording_in(page)
    ran = recording_in(session.save_html(tmp_path / "ran.html", run=True).read_text("utf-8"))
    values = [
        [
            view["scene"]["current"]["nodes"]["lv1"]["value"]
            for view in one["views"]
            if "main/2/" in view["scene"]["key"]
        ]
        for one in (plain, ran)
    ]
    assert values[0][0] == ""
    assert values[1][0].startswith("float32 (1, 128)")
    assert "equal" in json.dumps(ran["traits"]["rows"])
    verdicts = {view["scene"]["key"]: view["status"]["verdict"] for view in ran["views"]}
    assert verdicts["main/2/"] == ""
    assert "equal" in verdicts["main/2/1"]


# --- where it is written -----------------------------------------------------------------------


def test_a_session_and_irviz_write_the_same_page_each_time(
    session: Session, page: str, small: Session, tmp_path: Path
) -> None:
    assert session.save_html(tmp_path / "session.html").read_text("utf-8") == page
    paths = [
        small.save_html(tmp_path / "small.html"),
        irviz.save_html(small, str(tmp_path / "irviz.HTML")),
    ]
    texts = {path.read_bytes() for path in paths}
    assert len(texts) == 1


def test_a_name_that_is_no_html_file_is_refused_with_what_to_do(
    small: Session, tmp_path: Path
) -> None:
    with pytest.raises(irviz.SaveError, match=r"lecture\.svg'?: give a name ending in \.html"):
        small.save_html(tmp_path / "lecture.svg")
    with pytest.raises(irviz.SaveError, match="there is no directory"):
        small.save_html(tmp_path / "nowhere" / "lecture.html")
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_as_it_was_when_the_page_cannot_be_written(
    small: Session, tmp_path: Path, full_disk: Callable[[], AbstractContextManager[None]]
) -> None:
    path = tmp_path / "lecture.html"
    path.write_text("before")
    state = State.of(small)
    with full_disk(), pytest.raises(irviz.SaveError, match=r"lecture\.html' cannot be written"):
        write_html(state, path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


# --- hostile text -------------------------------------------------------------------------------

HOSTILE = "</script><script>window.hurt = 1</script><img src=x onerror='window.hurt = 1'>"


def test_no_text_of_a_session_ends_its_element(small: Session) -> None:
    named = small.apply("LegalizeOps").rename("1", HOSTILE).rename("0", HOSTILE)
    page = with_progress(page_in_steps(State.of(named)))
    assert recording_in(page)["traits"]["title"] == HOSTILE
    assert [tag for tag, _ in Parts(page).attributes].count("script") == 2
    assert "hurt" not in re.sub(r"<title>.*</title>", "", page)
    assert "&lt;/script&gt;" in page


def test_a_name_that_is_no_text_is_written_with_a_replacement(
    small: Session, tmp_path: Path
) -> None:
    named = small.rename("0", os.fsdecode(b"caf\xe9"))
    assert "<title>caf? · irviz</title>" in named.save_html(tmp_path / "a.html").read_text("utf-8")
