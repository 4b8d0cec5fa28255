"""Show the explorer in a browser without a notebook, as a page served on this machine."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import webbrowser
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import platformdirs

from irviz.errors import IrvizError
from irviz.private_folder import private_folder
from irviz.worker.child_process import end_process

if TYPE_CHECKING:
    from irviz.loaders.loaded_model import Missing

Place: TypeAlias = Literal["any", "window", "browser", "nowhere"]
_LOOK_SECONDS = 0.1
_NO_WINDOW = "irviz: the window ended with code {}: the page is opened in the browser"
_HANGUP = getattr(signal, "SIGHUP", None)  # which Windows has not


class ServeError(IrvizError, RuntimeError):
    """The page cannot be served."""


def serve(
    what: str,
    name: str = "",
    function: str = "",
    missing: Missing = "error",
    *,
    port: int = 0,
    place: Place = "any",
) -> None:
    """Serve the explorer on the loopback address until interrupted, or its window is closed.

    Args:
        what: A file that `irviz.load` takes, DEMO, or START.
        name: The module to open, if the file defines several.
        function: The function to show first, if the module has several.
        missing: What to do with calls that TVM's importer does not support, as in `irviz.load`.
        port: The port; 0 for any free one.
        place: Where the page is shown: in a desktop "window", in the "browser", in "any" of these
            (a window if pywebview is installed), or "nowhere", which prints its address.

    Raises:
        ServeError: The server does not start, or exits unexpectedly.
        WindowError: No window can be opened here.
    """
    if place == "window" and not has_webview():
        _chromium()
    with (
        contextlib.suppress(KeyboardInterrupt),
        interruptible(),
        started(what, port, name, function, missing) as (process, url),
        _redirecting_file(url) as page,
    ):
        print(f"irviz is at {url}  (Ctrl-C ends it)", flush=True)  # noqa: T201
        if place == "window" or (place == "any" and has_webview()):
            threading.Thread(target=_print_failure, args=[process], daemon=True).start()
            with own_window(page) as window:
                while process.poll() is None and window.poll() is None:
                    time.sleep(_LOOK_SECONDS)
            if window.returncode == 0 and process.returncode is None:
                return  # it was closed
            if process.returncode is None:
                print(_NO_WINDOW.format(window.returncode), file=sys.stderr)  # noqa: T201
                webbrowser.open(page.as_uri())
        elif place == "nowhere" or not webbrowser.open(page.as_uri()):
            _wait_until_open(process)
        else:  # the page says it too, and another file can be chosen there
            _print_failure(process)
        process.wait()
        raise ServeError(f"the page's server ended with code {process.returncode}")


@contextlib.contextmanager
def _redirecting_file(url: str) -> Iterator[Path]:
    """Yield a file that redirects to an address, so that its token is on no command line.

    Only this user may read the file and its folder. It is in the user's data folder if that can
    be used, because a sandboxed browser may have no /tmp.
    """
    data = None
    with contextlib.suppress(OSError):
        data = private_folder(platformdirs.user_data_path("irviz"))
    with tempfile.TemporaryDirectory(dir=data, ignore_cleanup_errors=True) as folder:
        page = Path(folder, "irviz.html")
        with os.fdopen(os.open(page, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
            file.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={url}">')
        yield page


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt at SIGINT, SIGTERM and SIGHUP until the block ends.

    The first two do so even if they were ignored at the start, as by `nohup irviz demo &`. An
    ignored SIGHUP stays ignored, which is the purpose of nohup.
    """
    numbers = [signal.SIGINT, signal.SIGTERM]
    if _HANGUP is not None and signal.getsignal(_HANGUP) is not signal.SIG_IGN:
        numbers.append(_HANGUP)
    before = {number: signal.signal(number, signal.default_int_handler) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def served(
    what: str, port: int = 0, name: str = "", function: str = "", missing: Missing = "error"
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Serve a page until the block ends; yield process and address once everything is open.

    Raises:
        ServeError: The server does not start, or the file cannot be opened.
    """
    with started(what, port, name, function, missing) as (process, url):
        _wait_until_open(process)
        yield process, url


@contextlib.contextmanager
def started(
    what: str, port: int, name: str, function: str, missing: Missing
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Serve a page until the block ends; yield process and address once it answers."""
    token = secrets.token_urlsafe(24)
    request = PageRequest(what, name, function, port, token, os.getpid(), str(Path.cwd()), missing)
    environment = {**os.environ, "PYTHONSAFEPATH": "1", "MPLBACKEND": "agg"}
    # in a folder of its own, where `-m` finds no module of the user's, and in a session of its own,
    # so that Ctrl-C in a terminal reaches this process alone
    with (
        tempfile.TemporaryDirectory(prefix="irviz-", ignore_cleanup_errors=True) as folder,
        subprocess.Popen(
            [sys.executable, "-m", "irviz.cli.page_server"],
            env=environment,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        ) as process,
    ):
        try:
            yield process, f"http://127.0.0.1:{_listening_port(process, request)}/?token={token}"
        finally:
            end_process(process)


def _listening_port(process: subprocess.Popen[str], request: PageRequest) -> int:
    """Wait until the server listens, and return its port.

    Nothing is sent to the port before, because another program may listen there.
    """
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError), process.stdin as pipe:
        json.dump(dataclasses.asdict(request), pipe)
    return int(_answer(process)["port"])


def _wait_until_open(process: subprocess.Popen[str]) -> None:
    """Wait until the server has opened what was requested; raise ServeError if it cannot."""
    _answer(process)


def _print_failure(process: subprocess.Popen[str]) -> None:
    """Wait until the server has opened what was requested, or print why it cannot."""
    try:
        _wait_until_open(process)
    except ServeError as failure:
        if process.poll() is None:
            print(f"irviz: {failure}", file=sys.stderr)  # noqa: T201


def _answer(process: subprocess.Popen[str]) -> dict[str, str]:
    """Return the next thing that the server says; raise ServeError if it says why it fails."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise ServeError(f"the page's server ended with code {process.wait()}")
    said: dict[str, str] = json.loads(line)
    if "error" in said:
        raise ServeError(said["error"])
    return said


_BROWSERS = (
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"),
    *("microsoft-edge", "microsoft-edge-stable", "msedge", "brave-browser", "brave"),
)
MAC_BROWSERS = ("Google Chrome", "Chromium", "Microsoft Edge", "Brave Browser")
"""The applications of macOS that show a page in a window of its own."""
_WINDOWS = (r"Google\Chrome\Application\chrome.exe", r"Microsoft\Edge\Application\msedge.exe")
_SIZE = "1440,900"


class WindowError(IrvizError, RuntimeError):
    """No window can be opened on this machine."""


def has_webview() -> bool:
    """Whether pywebview is installed and there is a screen."""
    is_headless = sys.platform.startswith("linux") and not (
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
    return not is_headless and importlib.util.find_spec("webview") is not None


@contextlib.contextmanager
def own_window(page: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Show a page in a window until the block ends; the window's process ends when it is closed.

    Args:
        page: A file that redirects to the page, in a folder that only this user may read, where the
            window also keeps its files. So the address, which has a token, appears on no command
            line.

    Raises:
        WindowError: Neither pywebview nor such a browser is installed.
    """
    process = subprocess.Popen(  # noqa: S603
        _command(page),
        cwd=page.parent,  # where pywebview's process finds no module of the user's
        env={**os.environ, "PYTHONSAFEPATH": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        end_process(process)


def _command(page: Path) -> list[str]:
    if has_webview():
        return [sys.executable, "-m", "irviz.cli.webview_window", str(os.getpid()), str(page)]
    options = ("--no-first-run", "--no-default-browser-check", f"--window-size={_SIZE}")
    profile = page.with_name("profile")  # else a browser that runs already would show the page
    return [_chromium(), f"--app={page.as_uri()}", f"--user-data-dir={profile}", *options]


def _chromium() -> str:
    """Return the path of a Chromium-based browser; raise WindowError where there is none."""
    for name in _BROWSERS:
        if found := shutil.which(name):
            return found
    apps = Path("/Applications")
    places = [apps / f"{name}.app" / "Contents" / "MacOS" / name for name in MAC_BROWSERS]
    for folder in ("PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA"):
        places += [Path(os.environ[folder], end) for end in _WINDOWS if folder in os.environ]
    for place in places:
        if place.is_file():
            return str(place)
    raise WindowError(
        "a window of its own needs pywebview (pip install 'irviz[desktop]') or Chromium, Chrome, "
        "Edge or Brave: install one of these, or leave out --window"
    )


DEMO, START = ":demo:", ":start:"
"""Requests without a file: the course's MLP, and a page for choosing a file."""


@dataclass(frozen=True)
class PageRequest:
    """What to show, and where; sent by a pipe, because arguments of processes are public.

    Attributes:
        what: A file that `irviz.load` takes, DEMO, or START.
        name: A module, where the file defines several.
        function: The function to begin with, where the module has several.
        port: A port; 0 for any free one.
        token: The token that requests must have.
        parent: The process whose exit ends the server.
        directory: The current directory, where files are saved.
        missing: What to do with calls that TVM's importer does not support.
    """

    what: str
    name: str
    function: str
    port: int
    token: str
    parent: int
    directory: str
    missing: Missing = "error"
