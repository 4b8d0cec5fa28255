"""The explorer in a browser without a notebook: a page served by Voila on this machine."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import webbrowser
from collections.abc import Iterator
from pathlib import Path

from jupyter_core.paths import jupyter_runtime_dir

from irviz.errors import IrvizError

_PAGE_FOLDER = Path(__file__).parent / "page"
_PAGE, _JUPYTER = _PAGE_FOLDER / "explorer.ipynb", _PAGE_FOLDER / "jupyter"
_VARIABLES = ("IRVIZ_OPEN", "IRVIZ_MODULE", "IRVIZ_FUNCTION", "IRVIZ_CWD")
WHAT, MODULE, FUNCTION, DIRECTORY = _VARIABLES
"""The environment variables that tell the page what to show."""
_START_SECONDS, _END_SECONDS = 60.0, 10.0
_HANGUP = getattr(signal, "SIGHUP", None)  # which Windows has not
TOKEN_FILE, PORT_FILE, ERROR_FILE = "token", "port", "error"
"""Beside the page: the token, and the port that the server listens on, or why it does not."""
DEMO = ":demo:"


class ServeError(IrvizError, RuntimeError):
    """A page that cannot be served."""


def serve(
    what: str, name: str = "", function: str = "", *, port: int = 0, browser: bool = True
) -> None:
    """Serve the explorer on the loopback address until interrupted.

    Args:
        what: A file that `irviz.load` takes, or DEMO.
        name: A module, where the file defines several.
        function: The function to begin with, where the module has several.
        port: A port; 0 for any free one.
        browser: Whether to open a browser. The address has a random token.

    Raises:
        ServeError: The server does not start, or ends by itself.
    """
    with (
        contextlib.suppress(KeyboardInterrupt),
        interruptible(),
        served(what, port, name, function) as (process, url),
        _redirecting_file(url) as redirecting,
    ):
        print(f"irviz is at {url}  (Ctrl-C ends it)", flush=True)  # noqa: T201
        if browser:
            webbrowser.open(redirecting.as_uri())
        process.wait()
        raise ServeError(f"the page's server ended with code {process.returncode}")


@contextlib.contextmanager
def _redirecting_file(url: str) -> Iterator[Path]:
    """Yield a page that leads to an address, so that no command line has the address's token.

    Only this user may read the file. It is where Jupyter has such files, because a browser in a
    sandbox may have no /tmp.
    """
    folder = Path(jupyter_runtime_dir())
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    number, name = tempfile.mkstemp(".html", "irviz-", folder)
    try:
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={url}">')
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


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
    what: str, port: int = 0, name: str = "", function: str = ""
) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Serve a page until the block ends, which begins when it answers: process and address."""
    if importlib.util.find_spec("voila") is None:
        raise ServeError("Voila is needed to serve the page: pip install voila")
    token = secrets.token_urlsafe(24)
    paths = [str(_JUPYTER), os.environ.get("JUPYTER_PATH", "")]
    environment = {
        **os.environ,
        "PYTHONSAFEPATH": "1",
        "JUPYTER_PATH": os.pathsep.join(filter(None, paths)),
        WHAT: what,
        MODULE: name,
        FUNCTION: function,
        DIRECTORY: str(Path.cwd()),
    }
    with tempfile.TemporaryDirectory(prefix="irviz-", ignore_cleanup_errors=True) as folder:
        page = Path(shutil.copy(_PAGE, Path(folder, "irviz.ipynb")))
        # in a folder that only this user may read: everybody sees the arguments of a process
        Path(folder, TOKEN_FILE).write_text(token, encoding="utf-8")
        # in a folder of its own, where `-m` finds no module of the user's, and in a session of its
        # own, so that Ctrl-C in a terminal reaches this process alone
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "irviz.cli.page_server", str(os.getpid()), str(port), str(page)],
            env=environment,
            cwd=folder,
            start_new_session=True,
        )
        try:
            yield (
                process,
                f"http://127.0.0.1:{_listening_port(process, page.parent, port)}/?token={token}",
            )
        finally:
            process.terminate()
            try:
                process.wait(timeout=_END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _listening_port(process: subprocess.Popen[bytes], folder: Path, port: int) -> int:
    """Wait until the server listens, and return its port.

    Nothing is sent to the port before: another program may listen there.
    """
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(FileNotFoundError):
            return int((folder / PORT_FILE).read_text(encoding="utf-8"))
        if process.poll() is not None:
            error = folder / ERROR_FILE
            reason = error.read_text(encoding="utf-8") if error.exists() else ""
            if reason and port:
                raise ServeError(f"port {port} cannot be used ({reason}): choose another, or none")
            raise ServeError(reason or f"the page's server ended with code {process.returncode}")
        time.sleep(0.02)
    raise ServeError(f"the page's server did not start within {_START_SECONDS:.0f} s")
