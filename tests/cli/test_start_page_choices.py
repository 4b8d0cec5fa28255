"""`irviz open` without a file offers those that were opened last."""

from __future__ import annotations

import asyncio
import html
from pathlib import Path

import platformdirs
import pytest

from irviz.cli.page_comms import Pages
from irviz.cli.page_launcher import PageRequest
from irviz.cli.page_server import (
    EXAMPLES,
    PageSession,
    add_recent_file,
    recent_files,
    start_page,
)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(platformdirs, "user_state_path", lambda _: tmp_path / "state")
    return tmp_path / "state" / "recent.json"


def files(folder: Path, count: int) -> list[Path]:
    paths = [folder / f"{number}.py" for number in range(count)]
    for path in paths:
        path.write_text("")
    return paths


def test_the_last_ten_files_are_kept_each_once_the_last_one_first(tmp_path: Path) -> None:
    paths = files(tmp_path, 12)
    for path in (*paths, paths[5]):
        add_recent_file(path)
    kept = [paths[5], *(path for path in reversed(paths) if path != paths[5])]
    assert recent_files() == kept[:10]


def test_a_file_that_is_gone_is_not_offered(tmp_path: Path) -> None:
    first, last = files(tmp_path, 2)
    add_recent_file(first)
    add_recent_file(last)
    last.unlink()
    assert recent_files() == [first]


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[1, null, {}]", b'["a\\u0000b"]', b"\xff", b"[" * 100_000]
)
def test_a_damaged_list_is_an_empty_one_and_is_written_anew(
    tmp_path: Path, state: Path, content: bytes
) -> None:
    state.parent.mkdir(0o700)
    state.write_bytes(content)
    assert recent_files() == []
    [path] = files(tmp_path, 1)
    add_recent_file(path)
    assert recent_files() == [path]


def test_a_list_that_cannot_be_written_does_no_harm(tmp_path: Path, state: Path) -> None:
    state.parent.write_text("no folder")
    add_recent_file(files(tmp_path, 1)[0])
    assert recent_files() == []


def test_the_names_of_files_are_text_in_the_page(tmp_path: Path) -> None:
    path = tmp_path / '"><script>alert(1)<'
    path.write_text("")
    add_recent_file(path)
    text = start_page("token")
    assert "<script>alert" not in text
    assert html.escape(path.name, quote=False).replace('"', "&#34;") in text


def test_without_a_file_there_are_three_things_to_try() -> None:
    text = html.unescape(start_page("token"))
    assert "Recent files" not in text
    assert len(EXAMPLES) == 3
    for name, example in EXAMPLES.items():
        assert f'value="{name}"' in text
        assert example.title in text
        assert example.words in text


@pytest.mark.worker
@pytest.mark.parametrize("name", EXAMPLES)
def test_what_there_is_to_try_is_opened_and_is_no_recent_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(Pages, "connect_widgets", lambda *_: None)

    async def open_it() -> None:
        shown = PageSession(PageRequest(""), Pages(), tmp_path)
        shown.open(name)
        assert await shown.opened() == ""
        assert shown.explorer is not None
        scene = shown.explorer.scene
        assert scene["current"]["svg"] or scene["loops"]["svg"]
        shown.explorer.close()

    asyncio.run(open_it())
    assert recent_files() == []


def test_a_file_that_the_page_sends_is_opened_and_not_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(
        "irviz.cli.page_server.session_of_page", lambda what, *_: opened.append(what)
    )
    monkeypatch.setattr("irviz.cli.page_server.explorer_of_page", lambda *_: None)

    async def load(_: PageSession) -> None:
        """Load nothing."""

    monkeypatch.setattr(PageSession, "load", load)

    async def open_files() -> None:
        shown = PageSession(PageRequest(""), Pages(), tmp_path / "private")
        shown.folder.mkdir()
        sent = shown.new_path("../../mine.py")
        sent.write_text("text")
        for path in (sent, files(tmp_path, 1)[0]):
            shown.open(str(path))
            await shown.opened()

    asyncio.run(open_files())
    [sent] = (tmp_path / "private").glob("*/*")
    assert sent.name == "mine.py"
    assert opened == [str(sent), str(tmp_path / "0.py")]
    assert recent_files() == [tmp_path / "0.py"]
