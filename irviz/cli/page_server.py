"""The process that serves the page and holds the explorer and its session.

So a reloaded page shows what it showed before, and its first picture needs no kernel.
"""

from __future__ import annotations

import asyncio
import atexit
import base64
import contextlib
import dataclasses
import gc
import hmac
import json
import logging
import os
import re
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO, cast

import comm
import jinja2
import platformdirs
from comm.base_comm import BaseComm, CommManager
from tornado.http1connection import HTTP1Connection
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.iostream import IOStream
from tornado.netutil import bind_sockets
from tornado.web import (
    Application,
    HTTPError,
    RequestHandler,
    StaticFileHandler,
    stream_request_body,
)
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from irviz.atomic_write import atomic_write
from irviz.cli.commands import FAILURES, demo_session, failure_words
from irviz.cli.page_launcher import DEMO, START, PageRequest, interruptible
from irviz.errors import SaveError
from irviz.explorer.viewer.schema import Picture
from irviz.private_folder import private_folder, say_not_kept
from irviz.view.theme import system_css
from irviz.worker.supervisor import TRIES
from irviz.worker.worker_main import exit_with_parent

if TYPE_CHECKING:
    from irviz.explorer.explorer import Explorer
    from irviz.session.session import Session


def main() -> None:
    """Serve the page requested on standard input, and print its port to standard output."""
    answer = _own_stdout()
    request = PageRequest(**json.load(sys.stdin))
    exit_with_parent(request.parent)
    sys.path[:] = [place for place in sys.path if place and Path(place) != Path.cwd()]
    os.chdir(request.directory)
    with contextlib.suppress(KeyboardInterrupt), interruptible():
        asyncio.run(_serve(request, answer))
    atexit._run_exitfuncs()
    os._exit(0)  # TVM's threads, if they work on something, would abort a process that ends orderly


async def _serve(request: PageRequest, answer: TextIO) -> None:
    """Serve until this process ends; report the port, or why the page cannot be served."""
    try:
        sockets = bind_sockets(request.port, ADDRESS, backlog=BACKLOG)
    except OSError as failure:
        words = f"port {request.port} cannot be used ({failure}): choose another, or none"
        _say(answer, error=words)
        return
    with tempfile.TemporaryDirectory(prefix="irviz-", ignore_cleanup_errors=True) as folder:
        TRIES.start()  # which reads files; it loads TVM while this process does
        shown = PageSession(request, Pages(), Path(folder))
        try:
            if request.what != START:
                shown.open(request)
        except FAILURES as failure:
            _say(answer, error=failure_words(failure))
            return
        server = HTTPServer(page_application(shown), max_body_size=SMALL_BYTES)

        def serve(connection: socket.socket, address: tuple[Any, ...]) -> None:
            server.handle_stream(IOStream(connection, max_buffer_size=MAX_BYTES), address)

        Listener(sockets, request.token, serve)
        _say(answer, port=sockets[0].getsockname()[1])
        if request.what == START:
            import_module("irviz.explorer.explorer")  # takes a second, in which the reader chooses
        gc.freeze()  # else each full collection of what the imports left takes 65 ms
        await asyncio.Event().wait()


def _say(answer: TextIO, **said: object) -> None:
    with contextlib.suppress(BrokenPipeError), answer:
        json.dump(said, answer)


def _own_stdout() -> TextIO:
    """Return the pipe to the parent, and redirect standard output to standard error."""
    pipe = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return pipe


ADDRESS = "127.0.0.1"
_POLICY = {
    "default-src": "'none'",
    "script-src": "'self' blob:",  # anywidget imports from blobs
    "style-src": "'self' 'unsafe-inline'",  # anywidget and CodeMirror add style sheets
    "img-src": "'self' data: blob:",
    "connect-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
}
_HEADERS = {
    "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in _POLICY.items()),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",  # the address has the token
    "X-Content-Type-Options": "nosniff",
}
_log = logging.getLogger(__name__)
MAX_BYTES = 2**30
"""The largest file that can be dropped onto a page, and the largest message of a page, in bytes."""
SMALL_BYTES = 2**16
"""The largest body of any other request, in bytes."""


def page_application(shown: PageSession) -> Application:
    """Return the web application."""
    return Application(
        [
            ("/", _Document),
            ("/open", _Open),
            ("/connection", _Connection),
            (r"/static/(\w+\.\w+)", _Static, {"path": str(PAGE / "static")}),
        ],
        default_handler_class=_Missing,
        websocket_max_message_size=MAX_BYTES,
        log_function=lambda _: None,  # it would log addresses, which have the token
        shown=shown,
    )


class _Private(RequestHandler):
    """Refuses requests without the token, or for another host name, as DNS rebinding makes them.

    The first request of a connection had the token, or it would not be here. Cookies would reach
    other ports too.
    """

    @property
    def shown(self) -> PageSession:
        """The state behind the page."""
        return cast(PageSession, self.settings["shown"])

    def set_default_headers(self) -> None:
        for name, value in _HEADERS.items():
            self.set_header(name, value)
        self.clear_header("Server")

    def prepare(self) -> None:
        if self.request.host_name not in (ADDRESS, "localhost"):
            raise HTTPError(403)
        given = self.get_query_argument("token", "")
        if not hmac.compare_digest(given.encode(), self.shown.request.token.encode()):
            raise HTTPError(403)

    def write_error(self, status_code: int, **_: Any) -> None:
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(REFUSED if status_code == 403 else f"{status_code}: {self._reason}")

    def log_exception(
        self, typ: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Log an error without the address, which has the token."""
        if typ and value and not isinstance(value, HTTPError):
            _log.error("a request to %s failed", self.request.path, exc_info=(typ, value, tb))


class _Missing(_Private):
    def prepare(self) -> None:
        super().prepare()
        raise HTTPError(404)


class _Static(_Private, StaticFileHandler):
    """The page's script and style sheet."""


class _Document(_Private):
    """The page, with a picture of what it will show; or the page for choosing a file."""

    def get(self) -> None:
        self.set_header("Cache-Control", "no-store")
        if self.shown.explorer is None:
            self.finish(start_page(self.shown.request.token))
        else:
            token = self.shown.request.token
            self.finish(template("index").render(initial_picture(self.shown.explorer), token=token))


@stream_request_body
class _Open(_Private):
    """Opens a file: one that is chosen in the page (`what`), or the body, which is one of a `name`.

    The body goes to the disk as it comes, after the token was checked.
    """

    def prepare(self) -> None:
        super().prepare()
        cast(HTTP1Connection, self.request.connection).set_max_body_size(MAX_BYTES)
        self.path = self.shown.new_path(self.get_query_argument("name", ""))
        self.file = self.path.open("wb")
        self.failure: OSError | None = None

    def data_received(self, chunk: bytes) -> None:
        if self.failure is None:
            try:
                self.file.write(chunk)
            except OSError as failure:
                self.failure = failure

    def post(self) -> None:
        try:
            with self.file:
                if self.failure is not None:
                    raise self.failure
            if self.shown.explorer is None:
                self.shown.open_chosen(self.get_query_argument("what", str(self.path)))
        except FAILURES as failure:
            words = failure_words(failure).replace(f"{self.path.parent}{os.sep}", "")
            self.set_status(400)
            self.set_header("Content-Type", "text/plain; charset=utf-8")
            self.finish(words)
            shutil.rmtree(self.path.parent, ignore_errors=True)


class _Connection(_Private, WebSocketHandler):
    """A page's web socket. Tornado refuses pages of other origins."""

    def open(self) -> None:
        self.message: dict[str, Any] = {}
        self.buffers: list[memoryview] = []
        self.set_nodelay(True)
        self.shown.pages.add(self)

    def on_close(self) -> None:
        self.shown.pages.remove(self)

    def on_message(self, message: str | bytes) -> None:
        if isinstance(message, str):
            self.message, self.buffers = json.loads(message), []
        else:
            self.buffers.append(memoryview(message))
        if len(self.buffers) == self.message["buffers"]:
            self.shown.pages.hear(self.message, self.buffers)


# --- The documents that the page's server sends --------------------------------------------------


PAGE = Path(__file__).parent / "page"


def start_page(token: str) -> str:
    """Return the page for choosing a file."""
    return template("start").render(token=token, recent=recent_files(), examples=EXAMPLES)


def template(name: str) -> jinja2.Template:
    """Return a template, which escapes every value."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(PAGE), autoescape=True, undefined=jinja2.StrictUndefined
    )
    return environment.get_template(f"{name}.html.j2")


# --- Prerender the explorer for the document of the page, until its script has run ---------------


def initial_picture(explorer: Explorer) -> dict[str, object]:
    """Return the values for the page's template."""
    sides = [explorer.scene.get("reference"), explorer.scene.get("current")]
    return {
        "model": explorer.model_id,
        "title": explorer.title,
        "rows": explorer.rows,
        "pictures": [_picture(side) for side in sides if side and side["svg"]],
    }


def _picture(side: Picture) -> dict[str, str]:
    """Return a picture's label and data URL; an image runs no scripts, whatever it contains."""
    start, closed, rest = side["svg"].partition(">")
    svg = f"{start}{closed}<style>{system_css()}</style>{rest}"
    data = base64.b64encode(svg.encode()).decode()
    return {"label": side["label"], "address": f"data:image/svg+xml;base64,{data}"}


@dataclasses.dataclass
class PageSession:
    """The state behind the pages.

    Attributes:
        request: The request of the command.
        pages: The open pages.
        folder: The folder for files that a page uploads; only this user may read it.
        explorer: The explorer, None until something is opened.
    """

    request: PageRequest
    pages: Pages
    folder: Path
    explorer: Explorer | None = None

    def open(self, request: PageRequest) -> None:
        """Open what was requested, after connecting widgets to the pages."""
        from irviz.explorer.explorer import Explorer
        from irviz.runtime.kernels import say_if_none_are_kept

        say_if_none_are_kept()
        self.pages.connect_widgets(Explorer.handle_control_comm_opened)
        self.explorer = explorer_of_page(request)
        if request.what not in EXAMPLES and self.folder not in Path(request.what).parents:
            add_recent_file(Path(request.what))

    def open_chosen(self, what: str) -> None:
        """Open a file chosen in a page."""
        self.open(dataclasses.replace(self.request, what=what))

    def new_path(self, name: str) -> Path:
        """Return a path, in a new folder, for a file that a page uploads; raise OSError."""
        return Path(tempfile.mkdtemp(dir=self.folder), Path(name).name or "file")


def explorer_of_page(request: PageRequest) -> Explorer:
    """Return the explorer for a page request."""
    from irviz.explorer.explorer import explore

    if request.what in EXAMPLES:
        return explore(EXAMPLES[request.what].session(), height=0)
    return explore(request.what, name=request.name, function=request.function, height=0)


# --- Accept connections, and close those that do not begin with the token ------------------------


REFUSED = "This is not the address that irviz printed, which ends with a token: open that one."
BACKLOG = 2048
"""How many connections may wait to be accepted."""
MOST_WAITING = 256
"""How many accepted connections may have sent nothing; beyond it, the oldest is closed."""
SILENT_SECONDS = 5.0
"""How long an accepted connection may send nothing."""
_AT_ONCE = 16
"""How many connections are accepted before others, which have the token, are served."""
_TOKEN = re.compile(rb"[A-Z]+ /[^\s?]*\?(?:[^\s&]*&)*token=([\w-]+)[& ]")
_LINE_BYTES, _HEAD_BYTES = 2048, 65536
_ANSWER = (
    "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\nConnection: close\r\n"
    f"Content-Length: {len(REFUSED)}\r\n\r\n{REFUSED}"
).encode()


class Listener:
    """Passes on the connections whose first request has the token; the others cost next to nothing.

    Args:
        sockets: They listen.
        token: The token; browsers and HTTP libraries send the line with it at once.
        serve: Gets each connection that has the token, and its address.
    """

    def __init__(
        self,
        sockets: Sequence[socket.socket],
        token: str,
        serve: Callable[[socket.socket, tuple[Any, ...]], object],
    ) -> None:
        self._token, self._serve = token.encode(), serve
        self._waiting: dict[socket.socket, asyncio.TimerHandle] = {}
        self._loop, self._has_logged = IOLoop.current(), False
        for one in sockets:
            self._loop.add_handler(one, self._accept, IOLoop.READ)

    def _accept(self, listening: socket.socket, _: int) -> None:
        for _ in range(_AT_ONCE):
            try:
                connection, address = listening.accept()
            except BlockingIOError:
                return
            except OSError:  # it was closed meanwhile, or this process has too many files
                self._make_room(0)
                return
            connection.setblocking(False)
            self._make_room(MOST_WAITING - 1)
            end = partial(self._close, connection)
            self._waiting[connection] = asyncio.get_running_loop().call_later(SILENT_SECONDS, end)
            self._loop.add_handler(connection, partial(self._look, address), IOLoop.READ)

    def _look(self, address: tuple[Any, ...], connection: socket.socket, _: int) -> None:
        """Pass on a connection that has sent the token, and close any other."""
        begin = b""
        with suppress(OSError):
            begin = connection.recv(_LINE_BYTES, socket.MSG_PEEK)
        given = _TOKEN.match(begin)
        if given and hmac.compare_digest(given[1], self._token):
            self._forget(connection)
            self._serve(connection, address)
            return
        with suppress(OSError):
            if begin:
                connection.recv(_HEAD_BYTES)  # else the system would drop the answer
                connection.send(_ANSWER)
        self._close(connection)

    def _make_room(self, most: int) -> None:
        while len(self._waiting) > most:
            if not self._has_logged:
                self._has_logged = True
                _log.warning("irviz: many connections without the token of the page are closed")
            self._close(next(iter(self._waiting)))

    def _close(self, connection: socket.socket) -> None:
        self._forget(connection)
        connection.close()

    def _forget(self, connection: socket.socket) -> None:
        self._loop.remove_handler(connection)
        self._waiting.pop(connection).cancel()


_TYPES = ("comm_open", "comm_msg", "comm_close")


# --- Comms between this process's widgets and the pages that show them ---------------------------


class Pages:
    """The open pages: each receives the messages of all widgets, and any may answer.

    A message is JSON, followed by its buffers. The page numbers its messages; messages caused by
    one have its number as `parent`, and "idle" reports that it has been handled.
    """

    def __init__(self) -> None:
        self._sockets: set[WebSocketHandler] = set()
        self._loop = asyncio.get_running_loop()
        self._manager = CommManager()
        self._parent = ""

    def connect_widgets(self, control: Callable[[BaseComm, dict[str, Any]], None]) -> None:
        """Connect widgets created from now on to the pages.

        Args:
            control: Handles a page's request for the state of all widgets.
        """
        self._manager.register_target("jupyter.widget.control", control)
        comm.get_comm_manager = lambda: self._manager
        comm.create_comm = lambda *given, **options: PageComm(self, *given, **options)

    def add(self, socket: WebSocketHandler) -> None:
        """Start sending messages of widgets to a page."""
        self._sockets.add(socket)

    def remove(self, socket: WebSocketHandler) -> None:
        """Stop sending messages to a page."""
        self._sockets.discard(socket)

    def hear(self, message: dict[str, Any], buffers: list[memoryview]) -> None:
        """Deliver a page's message to its widget."""
        if message["type"] not in _TYPES:
            raise ValueError(f"a page sends no {message['type']!r}, but one of {_TYPES}")
        full = {**message, "header": {"msg_id": message["id"]}, "buffers": buffers}
        with self._because_of(message["id"]):
            getattr(self._manager, message["type"])(None, "", full)
            self._tell({"type": "idle", "parent": message["id"], "buffers": 0}, [])

    def say(self, message: dict[str, Any], buffers: list[bytes]) -> None:
        """Send a widget's message to every page, from any thread."""
        message["parent"] = self._parent
        try:
            is_here = asyncio.get_running_loop() is self._loop
        except RuntimeError:  # as where a widget is deleted by another thread
            is_here = False
        if is_here:
            self._tell(message, buffers)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._tell, message, buffers)

    def _tell(self, message: dict[str, Any], buffers: list[bytes]) -> None:
        if not self._sockets:
            return
        text = json.dumps(message, allow_nan=False)  # NaN is no JSON: the page could not read it
        for page in tuple(self._sockets):
            with suppress(WebSocketClosedError):  # it removes itself
                parts: list[str | bytes] = [text, *map(bytes, buffers)]
                for part in parts:
                    sent = page.write_message(part, binary=isinstance(part, bytes))
                    asyncio.ensure_future(sent).add_done_callback(asyncio.Future.exception)

    @contextmanager
    def _because_of(self, parent: str) -> Iterator[None]:
        self._parent = parent
        try:
            yield
        finally:
            self._parent = ""


class PageComm(BaseComm):
    """A comm whose other end is every page."""

    def __init__(self, pages: Pages, *given: Any, **options: Any) -> None:
        self._pages = pages
        super().__init__(*given, **options)

    def publish_msg(
        self,
        msg_type: str,
        data: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
        buffers: list[bytes] | None = None,
        **keys: Any,
    ) -> None:
        """Send a message."""
        content = {"comm_id": self.comm_id, "data": data or {}, **keys}
        message = {"type": msg_type, "content": content, "metadata": metadata or {}}
        self._pages.say({**message, "buffers": len(buffers or [])}, buffers or [])


# --- What the start page offers: examples, and files that were opened lately ---------------------


class Example(NamedTuple):
    """A session that can be opened: what it shows, and what to do with it."""

    title: str
    words: str
    session: Callable[[], Session]


def _pipeline() -> Session:
    session = demo_session("MyModuleHighLevel")
    for name in ("LegalizeOps", "AnnotateTIROpPattern", "FuseOps", "FuseTIR"):
        session = session.apply(name)
    return session


EXAMPLES: Mapping[str, Example] = {
    DEMO: Example(
        "A small neural network",
        "Bind its weights, replace a kernel, and press Run: are the digits still right?",
        demo_session,
    ),
    ":pipeline:": Example(
        "Four passes",
        "Step through the stages with Alt and the arrows; press d to see what each pass changed.",
        _pipeline,
    ),
    ":loops:": Example(
        "The loops of a matrix product",
        "Split and reorder them in Schedule, and see what each step does to the time.",
        lambda: demo_session("MyModuleStatic", "linear0"),
    ),
}
"""The examples by the names that requests have for them."""


_MOST = 10


def recent_files() -> list[Path]:
    """Return the recently opened files that still exist, latest first."""
    try:
        names = json.loads(_list().read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):  # it is damaged
        return []
    if not isinstance(names, list):
        return []
    paths = [Path(name) for name in names if isinstance(name, str)]
    return [path for path in paths[:_MOST] if _is_file(path)]


def add_recent_file(path: Path) -> None:
    """Put a file at the head of the list; if it cannot be written, this is logged once."""
    path = path.resolve()
    paths = [path, *(other for other in recent_files() if other != path)]
    try:
        private_folder(_list().parent)
        with atomic_write(_list()) as partial:
            partial.write_text(json.dumps([str(one) for one in paths[:_MOST]]), encoding="utf-8")
    except (OSError, SaveError) as failure:
        say_not_kept("list of opened files", failure)


def _list() -> Path:
    return platformdirs.user_state_path("irviz") / "recent.json"


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


if __name__ == "__main__":
    main()
