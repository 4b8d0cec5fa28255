"""The page in a window of its own: closing it ends everything."""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from irviz.cli import desktop_window as windows
from irviz.cli import page_launcher as serving
from irviz.cli.desktop_window import WindowError, has_webview
from irviz.cli.page_launcher import START, PageRequest, serve

pytestmark = [
    pytest.mark.worker,
    pytest.mark.skipif(sys.platform == "win32", reason="the browser is a script of sh"),
]
WEBVIEW = """
import pathlib
settings, made = {}, []
def create_window(title, address, **_):
    made.append(address)
def start():
    pathlib.Path(__file__).with_name("shown").write_text(made[0])
"""


@pytest.fixture(autouse=True)
def only_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No browser but those of the test, and none that is really opened."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setattr(windows, "MAC_BROWSERS", ())
    monkeypatch.setattr(serving.webbrowser, "open", lambda *_: pytest.fail("a browser is opened"))


def browser(folder: Path, script: str) -> None:
    path = folder / "chromium"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def children() -> set[psutil.Process]:
    """Return the processes that this one started, but those of workers, which start any time."""
    return {one for one in psutil.Process().children(recursive=True) if not is_of_worker(one)}


def is_of_worker(process: psutil.Process) -> bool:
    """Tell whether a process is a worker, was started by one, or has ended."""
    try:
        return any("irviz.worker" in command(one) for one in (process, *process.parents()))
    except psutil.NoSuchProcess:
        return True


def command(process: psutil.Process) -> str:
    """Return how a process was started, "" if it has ended and nobody has asked how."""
    with contextlib.suppress(psutil.ZombieProcess):
        return " ".join(process.cmdline())
    return ""


def test_closing_the_window_ends_the_server_and_leaves_no_process_and_no_file(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    browser(tmp_path, f'echo "$@" > {tmp_path}/arguments')
    before = children()
    serve(PageRequest(START), place="window")
    address = capfd.readouterr().out
    [app, profile, *_] = (tmp_path / "arguments").read_text().split()
    assert app.startswith("--app=file://")
    token = address.split("token=")[1].split()[0]
    assert token not in app + profile
    assert not Path(app.removeprefix("--app=file://")).parent.exists()
    assert children() == before


@pytest.mark.usefixtures("quick_server")
def test_a_window_that_cannot_be_opened_gives_way_to_the_browser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    browser(tmp_path, "exit 3")
    opened: list[str] = []

    def open_browser(address: str) -> None:
        opened.append(address)
        raise KeyboardInterrupt

    monkeypatch.setattr(serving.webbrowser, "open", open_browser)
    serve(PageRequest(START), place="window")
    assert len(opened) == 1
    assert "the window ended with code 3" in capfd.readouterr().err


@pytest.mark.usefixtures("quick_server")
def test_ending_irviz_ends_the_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    browser(tmp_path, "exec /bin/sleep 60")
    before = children()
    began = time.monotonic()

    sleep = time.sleep

    def interrupt(seconds: float) -> None:
        if any("sleep" in one.name() for one in children()):
            monkeypatch.undo()  # what ends the window waits, too
            raise KeyboardInterrupt
        assert time.monotonic() < began + 30
        sleep(seconds)

    monkeypatch.setattr(serving, "time", SimpleNamespace(sleep=interrupt))
    serve(PageRequest(START), place="window")
    assert children() == before


@pytest.mark.usefixtures("quick_server")
def test_pywebview_is_preferred_and_told_the_address_by_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "webview.py").write_text(WEBVIEW)
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    assert has_webview()
    serve(PageRequest(START))
    assert (tmp_path / "shown").read_text() in capfd.readouterr().out


def test_without_a_screen_there_is_no_window_of_pywebview(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "webview.py").write_text(WEBVIEW)
    monkeypatch.syspath_prepend(tmp_path)
    assert has_webview() is not sys.platform.startswith("linux")


def test_where_no_window_can_be_opened_it_is_said_what_would_help() -> None:
    with pytest.raises(WindowError, match=r"irviz\[desktop\].*Chromium.*leave out --window"):
        serve(PageRequest(START), place="window")
