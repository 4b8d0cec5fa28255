"""The explorer in a browser without a notebook: a page served by Voila on this machine."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import webbrowser
from collections.abc import Iterator
from pathlib import Path

_STATIC = Path(__file__).parent / "static"
_PAGE, _JUPYTER = _STATIC / "explorer.ipynb", _STATIC / "jupyter"
_WHAT, _NAME, _WHERE = "IRVIZ_OPEN", "IRVIZ_MODULE", "IRVIZ_CWD"
_START_SECONDS = 60.0
DEMO = ":demo:"


class ServeError(RuntimeError):
    """A page that could not be served; the message says why."""


def serve(what: str, name: str = "", *, port: int = 0, browser: bool = True) -> None:
    """Serve the explorer on the loopback address until interrupted.

    `what` is a file that `irviz.load` takes, and `name` one of its modules; or `what` is DEMO.
    The address has a random token; port 0 means any free one. Raises ServeError when the server
    does not come up.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that it ends as by Ctrl-C
    with contextlib.suppress(KeyboardInterrupt), served(what, port, name) as (process, url):
        print(f"irviz is at {url}  (Ctrl-C ends it)", flush=True)  # noqa: T201
        if browser:
            webbrowser.open(url)
        process.wait()
        raise ServeError(f"the page's server ended with code {process.returncode}")


def opened() -> object:
    """Return the explorer on what the page was started for; called by the served page."""
    from irviz.app.demo import demo_session
    from irviz.app.explorer import explore

    os.chdir(os.environ.get(_WHERE, "."))
    what = os.environ.get(_WHAT, DEMO)
    if what == DEMO:
        return explore(demo_session())
    return explore(what, name=os.environ.get(_NAME, ""))


@contextlib.contextmanager
def served(
    what: str, port: int = 0, name: str = ""
) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Serve a page until the block ends, which begins when it answers: process and address."""
    port = port or _free_port()
    token = secrets.token_urlsafe(24)
    folder = Path(tempfile.mkdtemp(prefix="irviz-"))
    page = shutil.copy(_PAGE, folder / "irviz.ipynb")
    # in a file that only this user may read: everybody sees the arguments of a process
    (folder / "voila.json").write_text(json.dumps(_settings(port, token)), encoding="utf-8")
    command = [sys.executable, "-m", "voila", str(page), "--no-browser"]
    paths = [str(_JUPYTER), os.environ.get("JUPYTER_PATH", "")]
    environment = {
        **os.environ,
        "JUPYTER_PATH": os.pathsep.join(filter(None, paths)),
        _WHAT: what,
        _NAME: name,
        _WHERE: str(Path.cwd()),
    }
    # `-m` looks into the working directory first: not into the user's, whatever it holds
    process = subprocess.Popen(command, env=environment, cwd=folder)  # noqa: S603
    url = f"http://127.0.0.1:{port}/?token={token}"
    try:
        _wait_for(process, url)
        yield process, url
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _settings(port: int, token: str) -> dict[str, dict[str, object]]:
    return {
        "Voila": {"ip": "127.0.0.1", "port": port, "token": token, "log_level": "ERROR"},
        "VoilaConfiguration": {"show_tracebacks": True, "template": "irviz"},
        # the kernel listens on files in a directory of this user's, where the system has those
        "KernelManager": {} if os.name == "nt" else {"transport": "ipc"},
    }


def _wait_for(process: subprocess.Popen[bytes], url: str) -> None:
    deadline = time.monotonic() + _START_SECONDS
    health = url.replace("/?", "/voila/static/require.min.js?")
    while True:
        if process.poll() is not None:
            raise ServeError(f"the page's server ended with code {process.returncode}")
        if _answers(health):
            return
        if time.monotonic() > deadline:
            raise ServeError(f"the page's server did not answer within {_START_SECONDS:.0f} s")
        time.sleep(0.05)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2):  # noqa: S310 - our own address
            return True
    except (urllib.error.URLError, OSError):
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
