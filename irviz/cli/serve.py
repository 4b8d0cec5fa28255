"""The explorer in a browser without a notebook: a page served by Voila on this machine."""

from __future__ import annotations

import contextlib
import importlib.util
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

from irviz.errors import IrvizError
from irviz.worker.worker_main import exit_with_parent

_PAGE_FOLDER = Path(__file__).parent / "page"
_PAGE, _JUPYTER = _PAGE_FOLDER / "explorer.ipynb", _PAGE_FOLDER / "jupyter"
WHAT, MODULE, DIRECTORY = "IRVIZ_OPEN", "IRVIZ_MODULE", "IRVIZ_CWD"
"""The environment variables that tell the page what to show."""
_START_SECONDS, _END_SECONDS = 60.0, 10.0
_HANGUP = getattr(signal, "SIGHUP", None)  # which Windows has not
_EXTENSIONS = (
    "@voila-dashboards/widgets-manager8",
    "@jupyter-widgets/jupyterlab-manager",
    "anywidget",
)
"""What the page needs. Voila would load all that are installed; most need a whole JupyterLab."""
DEMO = ":demo:"


class ServeError(IrvizError, RuntimeError):
    """A page that cannot be served."""


def serve(what: str, name: str = "", *, port: int = 0, browser: bool = True) -> None:
    """Serve the explorer on the loopback address until interrupted.

    Args:
        what: A file that `irviz.load` takes, or DEMO.
        name: A module, where the file defines several.
        port: A port; 0 for any free one.
        browser: Whether to open a browser. The address has a random token.

    Raises:
        ServeError: The server does not start, or ends by itself.
    """
    with (
        contextlib.suppress(KeyboardInterrupt),
        interruptible(),
        served(what, port, name) as (process, url),
    ):
        print(f"irviz is at {url}  (Ctrl-C ends it)", flush=True)  # noqa: T201
        if browser:
            webbrowser.open(url)
        process.wait()
        raise ServeError(f"the page's server ended with code {process.returncode}")


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt at SIGINT, SIGTERM and SIGHUP until the block ends.

    The first two do so even where they were ignored at the start, as by `nohup irviz demo &`. A
    SIGHUP that was ignored stays ignored: this is what nohup is for.
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
    what: str, port: int = 0, name: str = ""
) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Serve a page until the block ends, which begins when it answers: process and address."""
    if importlib.util.find_spec("voila") is None:
        raise ServeError("Voila is needed to serve the page: pip install voila")
    port = port or _free_port()
    token = secrets.token_urlsafe(24)
    url = f"http://127.0.0.1:{port}/?token={token}"
    paths = [str(_JUPYTER), os.environ.get("JUPYTER_PATH", "")]
    environment = {
        **os.environ,
        "JUPYTER_PATH": os.pathsep.join(filter(None, paths)),
        WHAT: what,
        MODULE: name,
        DIRECTORY: str(Path.cwd()),
    }
    with tempfile.TemporaryDirectory(prefix="irviz-", ignore_cleanup_errors=True) as folder:
        page = shutil.copy(_PAGE, Path(folder, "irviz.ipynb"))
        # in a file that only this user may read: everybody sees the arguments of a process
        settings = json.dumps(_settings(port, token))
        Path(folder, "voila.json").write_text(settings, encoding="utf-8")
        # `-m` looks into the working directory first: not into the user's, whatever it holds;
        # in a session of its own, so that Ctrl-C in a terminal reaches this process alone
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", __name__, str(os.getpid()), str(page)],
            env=environment,
            cwd=folder,
            start_new_session=True,
        )
        try:
            _wait_for(process, url)
            yield process, url
        finally:
            process.terminate()
            try:
                process.wait(timeout=_END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _run_server(parent: int, page: str) -> None:
    """Be the page's server, until the process that started it ends."""
    from voila.app import Voila

    exit_with_parent(parent)
    Voila.launch_instance([page, "--no-browser"])


def _settings(port: int, token: str) -> dict[str, dict[str, object]]:
    return {
        "Voila": {"ip": "127.0.0.1", "port": port, "token": token, "log_level": "ERROR"},
        "VoilaConfiguration": {
            "show_tracebacks": True,
            "template": "irviz",
            "extension_allowlist": list(_EXTENSIONS),
        },
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


if __name__ == "__main__":
    _run_server(int(sys.argv[1]), sys.argv[2])
