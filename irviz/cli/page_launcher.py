"""Show the explorer in a browser without a notebook, as a page served on this machine."""

from __future__ import annotations

import contextlib
import hashlib
import html
import json
import logging
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import webbrowser
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn, TypeAlias

import platformdirs

from irviz.cli.desktop_window import chromium, has_webview, own_window
from irviz.errors import IrvizError
from irviz.safe_files import private_folder
from irviz.worker.child_process import Fork, Process, end_process

if TYPE_CHECKING:
    from irviz.loaders.loaded_model import Missing

_log = logging.getLogger(__name__)
Place: TypeAlias = Literal["any", "window", "browser", "nowhere"]
ADDRESS = "127.0.0.1"
BACKLOG = 2048
"""How many connections may wait to be accepted."""
PORT_WORDS = "port {} cannot be used ({}): choose another, or none"
_PASSES_SOCKETS = os.name == "posix"
_LOOK_SECONDS = 0.1
_NO_WINDOW = "irviz: the window ended with code {}: the page is opened in the browser"
_HANGUP = getattr(signal, "SIGHUP", None)  # which Windows has not


class ServeError(IrvizError, RuntimeError):
    """The page cannot be served."""


def serve(request: PageRequest, place: Place = "any", *, is_new: bool = False) -> None:
    """Serve the explorer on the loopback address until interrupted, or its window is closed.

    Args:
        request: What to show.
        place: Where the page is shown: in a desktop "window", in the "browser", in "any" of these
            (a window if pywebview is installed), or "nowhere", which prints its address.
        is_new: Whether to load TVM anew, and not to let a running irviz fork the server.

    Raises:
        ServeError: The server does not start, or exits unexpectedly.
        WindowError: No window can be opened here.
    """
    if place == "window" and not has_webview():
        chromium()
    with (
        contextlib.suppress(KeyboardInterrupt),
        interruptible(),
        started(request, is_new=is_new, is_fork=_can_fork()) as (process, url),
        _redirecting_file(url, request.what) as page,
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
            _answer(process)  # which says that all is open
        else:  # the page says it too, and another file can be chosen there
            _print_failure(process)
        process.wait()
        raise ServeError(f"the page's server ended with code {process.returncode}")


_REDIRECTION = """<!doctype html>
<html lang="en" style="color-scheme: light dark; font: 14px system-ui, sans-serif">
<meta charset="utf-8"><meta http-equiv="refresh" content="0; url={url}">
<title>{name}</title><p role="status">Opening {name} …</p>
"""


@contextlib.contextmanager
def _redirecting_file(url: str, what: str) -> Iterator[Path]:
    """Yield a file that redirects to an address, so that its token is on no command line.

    A browser shows it until the server answers, so it says what is being opened. Only this user may
    read the file and its folder. It is in the user's data folder if that can be used, because a
    sandboxed browser may have no /tmp.
    """
    name = "irviz" if what in (DEMO, START) else Path(what).name
    data = None
    with contextlib.suppress(OSError):
        data = private_folder(platformdirs.user_data_path("irviz"))
    with tempfile.TemporaryDirectory(dir=data, ignore_cleanup_errors=True) as folder:
        page = Path(folder, "irviz.html")
        with os.fdopen(os.open(page, os.O_CREAT | os.O_WRONLY, 0o600), "wb") as file:
            file.write(
                _REDIRECTION.format(url=url, name=html.escape(name)).encode(errors="replace")
            )
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
def served(what: str, *, is_new: bool = True) -> Iterator[tuple[Server, str]]:
    """Serve a page until the block ends; yield process and address once everything is open.

    Raises:
        ServeError: The server does not start, or the file cannot be opened.
    """
    with started(PageRequest(what), is_new=is_new) as (process, url):
        _answer(process)  # which says that all is open
        yield process, url


@contextlib.contextmanager
def started(
    request: PageRequest, *, is_new: bool = True, is_fork: bool = False
) -> Iterator[tuple[Server, str]]:
    """Serve a page until the block ends; yield process and address once it answers.

    `is_fork` lets a new server be a fork of this process.
    """
    settings = {**os.environ, "PYTHONSAFEPATH": "1", "MPLBACKEND": "agg"}
    # in a folder of its own, where `-m` finds no module of the user's, and in a session of its own,
    # so that Ctrl-C in a terminal reaches this process alone
    with contextlib.ExitStack() as stack:
        process: Server | None = None if is_new else _forked(request, settings)
        listener = None
        if isinstance(process, ForkedServer):
            stack.callback(process.close)
        else:
            listener = stack.enter_context(_listening_at(request.port)) if _PASSES_SOCKETS else None
            passed = [listener.fileno()] if listener else []
            request = replace(request, listener=passed[0] if passed else None)
        if process is None and is_fork:
            process = OwnServer(request, settings)
        elif process is None:
            folder = tempfile.TemporaryDirectory(prefix="irviz-", ignore_cleanup_errors=True)
            process = stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-m", "irviz.cli.page_server"],
                    env=settings,
                    cwd=stack.enter_context(folder),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    encoding="utf-8",
                    start_new_session=True,
                    pass_fds=passed,
                )
            )
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError), process.stdin as pipe:
                json.dump(asdict(request), pipe)
        stack.callback(end_process, process)
        if listener:
            with listener:  # this process accepts nothing, also if the server has ended
                port = listener.getsockname()[1]
        else:  # nothing is sent to the port before, because another program may listen there
            port = int(_answer(process)["port"])
        yield process, f"http://{ADDRESS}:{port}/?token={request.token}"


def _listening_at(port: int) -> socket.socket:
    """Return the server's socket, made here so that a browser can start while the server does."""
    try:
        return socket.create_server((ADDRESS, port), backlog=BACKLOG)
    except (OSError, OverflowError) as failure:
        raise ServeError(PORT_WORDS.format(port, failure)) from failure


def _print_failure(process: Server) -> None:
    """Wait until the server has opened what was requested, or print why it cannot."""
    try:
        _answer(process)
    except ServeError as failure:
        if process.poll() is None:
            print(f"irviz: {failure}", file=sys.stderr)  # noqa: T201


def _answer(process: Server) -> dict[str, str]:
    """Return the next thing that the server says; raise ServeError if it says why it fails."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise ServeError(f"the page's server ended with code {process.wait()}")
    said: dict[str, str] = json.loads(line)
    if "error" in said:
        raise ServeError(said["error"])
    return said


# --- A running irviz forks the servers of later commands, for which TVM is loaded already --------

ANSWER_SECONDS = 2.0
"""The time in which a running irviz answers, or it is left alone."""


class ForkedServer(Process):
    """A page's server that a running irviz forked; it ends when the connection is closed."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.stdout = connection.makefile("r", encoding="utf-8")
        self.pid = 0
        self.returncode: int | None = None

    def close(self) -> None:
        """Close the connection."""
        self.stdout.close()
        self._connection.close()

    def poll(self) -> int | None:
        """Return 1 once it has ended, None while it runs: its exit code is not known."""
        if self.returncode is None:
            closed = select.poll()
            closed.register(self._connection, 0)  # an answer that nobody has read is no event
            if closed.poll(0):
                self.returncode = 1
        return self.returncode

    def terminate(self) -> None:
        """Ask it to end."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)

    def kill(self) -> None:
        """Kill it."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


def _can_fork() -> bool:
    """Return whether a fork of this process can do what a new one can.

    It has none of the other threads, and would share the workers.
    """
    is_alone = threading.active_count() == 1 and "irviz.worker.supervisor" not in sys.modules
    return is_alone and sys.platform.startswith("linux")


class OwnServer(Fork):
    """A page's server that is a fork of this process."""

    def __init__(self, request: PageRequest, environment: dict[str, str]) -> None:
        connection, its = socket.socketpair()
        with connection, its:
            super().__init__(partial(_serve_in_fork, its, environment))
            connection.sendall(json.dumps(asdict(request)).encode())
            connection.shutdown(socket.SHUT_WR)
            self.stdout = connection.makefile("r", encoding="utf-8")


def _serve_in_fork(connection: socket.socket, environment: dict[str, str]) -> NoReturn:
    os.setsid()  # Ctrl-C in a terminal is for its parent alone
    for stream in (0, 1):
        os.dup2(connection.fileno(), stream)
    os.environ.update(environment)
    try:
        main: Callable[[], NoReturn] = import_module("irviz.cli.page_server").main
        main()
    except BaseException:  # a fork ends without a word
        sys.excepthook(*sys.exc_info())
        raise


Server: TypeAlias = "subprocess.Popen[str] | ForkedServer | OwnServer"
"""The process of a page's server."""


def _forked(request: PageRequest, environment: dict[str, str]) -> ForkedServer | None:
    """Return a server that a running irviz has forked, None if there is none, or no answer."""
    if not hasattr(socket, "send_fds"):
        return None
    words = json.dumps(asdict(replace(request, environment=environment)))
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(ANSWER_SECONDS)
        connection.connect(str(_meeting_place()))
        socket.send_fds(connection, [b"."], [2])
        connection.sendall(f"{words}\n".encode())
        process = ForkedServer(connection)
        process.pid = int(_answer(process)["pid"])
    except (OSError, ServeError) as failure:
        _log.debug("no running irviz forked a server: %r", failure)
        connection.close()
        return None
    connection.settimeout(None)
    return process


@contextlib.contextmanager
def offered_forks() -> Iterator[socket.socket | None]:
    """Yield a socket for the requests of later commands; None if another process has one."""
    listener = None
    with contextlib.suppress(OSError, AttributeError):  # nothing is kept, or another system
        listener = _listening(_meeting_place())
    try:
        yield listener
    finally:
        if listener is not None:
            place = Path(listener.getsockname())  # code may have been edited, which names another
            listener.close()
            with contextlib.suppress(OSError):
                place.unlink()


def _listening(place: Path) -> socket.socket | None:
    with socket.socket(socket.AF_UNIX) as other:
        if other.connect_ex(str(place)) == 0:
            return None
    place.unlink(missing_ok=True)  # of a process that was killed
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(place))
    listener.listen()
    listener.setblocking(False)
    return listener


def _meeting_place() -> Path:
    """Return the path of the socket, in a private folder; raise OSError if there is none.

    It is another one for other versions of irviz and Python, and where code was edited.
    """
    package = Path(__file__).parents[1]
    edited = 0
    for folder, folders, files in os.walk(package):
        if "__init__.py" not in files:
            folders.clear()  # it is no package of Python
        sources = (Path(folder, one) for one in files if one.endswith(".py"))
        edited = max([edited, *(one.stat().st_mtime_ns for one in sources)])
    found = [os.environ.get(name) for name in ("PYTHONPATH", "LD_LIBRARY_PATH")]
    key = hashlib.sha256(repr((sys.executable, str(package), edited, found)).encode()).hexdigest()
    return private_folder(platformdirs.user_data_path("irviz")) / f"{key[:16]}.socket"


DEMO, START = ":demo:", ":start:"
"""Requests without a file: the course's MLP, and a page for choosing a file."""


@dataclass(frozen=True)
class PageRequest:
    """What to show, and where; sent by a pipe, because arguments of processes are public.

    Attributes:
        what: A file that `irviz.load` takes, DEMO, or START.
        name: A module, where the file defines several.
        function: The function to begin with, where the module has several.
        missing: What to do with calls that TVM's importer does not support, as in `irviz.load`.
        port: A port; 0 for any free one.
        token: The token that requests must have.
        parent: The process whose exit ends the server.
        directory: The current directory, where files are saved.
        environment: The environment of a server that is forked, which ends with its connection.
        listener: The descriptor of a socket that listens already, in place of a port.
    """

    what: str
    name: str = ""
    function: str = ""
    missing: Missing = "error"
    port: int = 0
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    parent: int = field(default_factory=os.getpid)
    directory: str = field(default_factory=os.getcwd)
    environment: dict[str, str] | None = None
    listener: int | None = None
