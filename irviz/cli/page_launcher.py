"""Show the explorer in a browser without a notebook, as a page served on this machine."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

import platformdirs

from irviz.cli.desktop_window import has_webview, own_window
from irviz.cli.page_request import PageRequest
from irviz.errors import IrvizError
from irviz.private_folder import private_folder
from irviz.worker.child_process import end_process

Place: TypeAlias = Literal["any", "window", "browser", "nowhere"]
_LOOK_SECONDS = 0.1
_NO_WINDOW = "irviz: the window ended with code {}: the page is opened in the browser"
_HANGUP = getattr(signal, "SIGHUP", None)  # which Windows has not


class ServeError(IrvizError, RuntimeError):
    """The page cannot be served."""


def serve(
    what: str, name: str = "", function: str = "", *, port: int = 0, place: Place = "any"
) -> None:
    """Serve the explorer on the loopback address until interrupted, or its window is closed.

    Args:
        what: A file that `irviz.load` takes, DEMO, or START.
        name: The module to open, if the file defines several.
        function: The function to show first, if the module has several.
        port: The port; 0 for any free one.
        place: Where the page is shown: in a desktop "window", in the "browser", in "any" of these
            (a window if pywebview is installed), or "nowhere", which prints its address.

    Raises:
        ServeError: The server does not start, or exits unexpectedly.
        WindowError: No window can be opened here.
    """
    with (
        contextlib.suppress(KeyboardInterrupt),
        interruptible(),
        served(what, port, name, function) as (process, url),
        _redirecting_file(url) as page,
    ):
        print(f"irviz is at {url}  (Ctrl-C ends it)", flush=True)  # noqa: T201
        if place == "window" or (place == "any" and has_webview()):
            with own_window(page) as window:
                while process.poll() is None and window.poll() is None:
                    time.sleep(_LOOK_SECONDS)
            if window.returncode == 0 and process.returncode is None:
                return  # it was closed
            if process.returncode is None:
                print(_NO_WINDOW.format(window.returncode), file=sys.stderr)  # noqa: T201
                webbrowser.open(page.as_uri())
        elif place != "nowhere":
            webbrowser.open(page.as_uri())
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
    what: str, port: int = 0, name: str = "", function: str = ""
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Serve a page until the block ends; yield process and address once it answers."""
    token = secrets.token_urlsafe(24)
    request = PageRequest(what, name, function, port, token, os.getpid(), str(Path.cwd()))
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
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError), process.stdin as pipe:
        json.dump(dataclasses.asdict(request), pipe)
    answer = process.stdout.read()
    if not answer:
        raise ServeError(f"the page's server ended with code {process.wait()}")
    said = json.loads(answer)
    if "error" in said:
        raise ServeError(said["error"])
    return int(said["port"])
