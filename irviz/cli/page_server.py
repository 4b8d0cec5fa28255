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
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TextIO, TypeVar, cast

import jinja2
import platformdirs
from tornado import web
from tornado.http1connection import HTTP1Connection
from tornado.httpserver import HTTPServer
from tornado.iostream import IOStream
from tornado.netutil import bind_sockets
from tornado.websocket import WebSocketHandler

from irviz.cli.main import FAILURES, demo_session, failure_words
from irviz.cli.page_comms import Pages
from irviz.cli.page_launcher import (
    ADDRESS,
    BACKLOG,
    DEMO,
    PORT_WORDS,
    START,
    PageRequest,
    interruptible,
    offered_forks,
)
from irviz.cli.page_listener import REFUSED, Listener
from irviz.errors import SaveError, UnsupportedOperatorError
from irviz.explorer.viewer import STATIC
from irviz.safe_files import atomic_write, private_folder, say_not_kept
from irviz.view.theme import system_css
from irviz.worker.supervisor import TRIES, fork_main, fork_workers_from_here
from irviz.worker.worker_main import exit_with_parent, load_tvm

if TYPE_CHECKING:
    from irviz.explorer.explorer import Explorer
    from irviz.explorer.viewer.schema import Picture
    from irviz.loaders.loaded_model import Missing
    from irviz.session.session import Session

_Result = TypeVar("_Result")
_log = logging.getLogger(__name__)
_NEVER = 1_000_000
"""More collections of younger garbage than a process makes."""


def main() -> NoReturn:
    """Serve the page requested on standard input, and print its port to standard output."""
    given = os.fdopen(os.dup(0), encoding="utf-8")
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what is printed is not for the parent
    request = PageRequest(**json.loads(given.readline()))
    if request.environment is None:
        exit_with_parent(request.parent)
    else:
        os.environ.clear()
        os.environ.update(request.environment)
        threading.Thread(target=_exit_after, args=[given], daemon=True).start()
        _say(answer, pid=os.getpid())
    # where modules of the user's may be; irviz itself may be there, too, as in a clone
    others = {Path.cwd(), Path(sys.argv[0]).parent} - {Path(__file__).parents[2]}
    sys.path[:] = [place for place in sys.path if place and Path(place) not in others]
    os.chdir(request.directory)
    with contextlib.suppress(KeyboardInterrupt), interruptible():
        asyncio.run(_serve(request, answer))
    atexit._run_exitfuncs()
    os._exit(0)  # TVM's threads, if they work on something, would abort a process that ends orderly


def _exit_after(given: TextIO) -> None:
    """End this process, as Ctrl-C would, when the command has ended."""
    with contextlib.suppress(OSError):
        given.read()
    os.kill(os.getpid(), signal.SIGTERM)


async def _serve(request: PageRequest, answer: TextIO) -> None:
    """Serve until this process ends; report the port, and then what is open or why nothing is.

    TVM is loaded after the page is served, which says meanwhile what is being opened.
    """
    gc.disable()  # while there is much that lasts, and hardly any garbage
    try:
        sockets = _sockets(request)
    except OSError as failure:
        _say(answer, error=PORT_WORDS.format(request.port, failure))
        return
    with _upload_folder() as folder, contextlib.ExitStack() as ends:
        shown = PageSession(request, Pages(), folder, ends)
        server = HTTPServer(page_application(shown), max_body_size=SMALL_BYTES)

        def serve(connection: socket.socket, address: tuple[Any, ...]) -> None:
            server.handle_stream(IOStream(connection, max_buffer_size=MAX_BYTES), address)

        Listener(sockets, request.token, serve)
        if request.listener is None:
            _say(answer, port=sockets[0].getsockname()[1])
        if request.what == START:
            await shown.load()  # it takes a second, in which the reader chooses
            _say(answer)
        else:
            shown.open(request.what)
            why = await shown.opened()
            _say(answer, **({"error": why} if why else {}))
        answer.close()
        await collect_when_idle(lambda: shown.pages.heard)


def _sockets(request: PageRequest) -> list[socket.socket]:
    """Return the sockets that listen for a page; raise OSError if its port cannot be used."""
    if request.listener is None:
        return bind_sockets(request.port, ADDRESS, backlog=BACKLOG)
    listener = socket.socket(fileno=request.listener)
    listener.set_inheritable(False)
    listener.setblocking(False)
    return [listener]


@contextlib.contextmanager
def _upload_folder() -> Iterator[Path]:
    """Yield a new folder; unlike that of tempfile, a fork that ends does not delete it."""
    folder = Path(tempfile.mkdtemp(prefix="irviz-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _accept_other(offered: socket.socket) -> None:
    """Accept the connection of another command, and fork a server for it once it has sent that."""
    with contextlib.suppress(OSError):
        connection, _ = offered.accept()
        asyncio.get_running_loop().add_reader(connection, _fork_other, connection)


def _fork_other(connection: socket.socket) -> None:
    """Fork a server for another command, which gets its request from the connection."""
    asyncio.get_running_loop().remove_reader(connection)
    with contextlib.suppress(OSError), connection:
        _, errors, _, _ = socket.recv_fds(connection, 1, 1)
        connection.setblocking(True)  # its descriptor, which the fork gets, waits
        for each in errors:
            own = connection.fileno()
            fork_main("irviz.cli.page_server", own, own, each)
            os.close(each)


def _import_explorer() -> None:
    load_tvm()
    import_module("irviz.explorer.explorer")


async def in_thread(work: Callable[[], _Result]) -> _Result:
    """Return what a function returns, in a thread that does not keep this process from ending."""
    executor = ThreadPoolExecutor(1, "irviz opens")  # for whose end asyncio does not wait
    try:
        return await asyncio.get_running_loop().run_in_executor(executor, work)
    finally:
        executor.shutdown(wait=False)


async def collect_when_idle(last_used: Callable[[], float], idle_seconds: float = 10.0) -> None:
    """Collect all garbage of this process only while nobody uses it; this does not end.

    A full collection makes everything else wait, for 65 ms after the imports alone, which are
    therefore left out of it.

    Args:
        last_used: Returns when the process was last used, in seconds of `time.monotonic`.
    """
    gc.freeze()
    gc.enable()
    gc.set_threshold(*gc.get_threshold()[:2], _NEVER)
    collected = 0.0
    while True:
        await asyncio.sleep(idle_seconds / 2)
        if collected < last_used() < time.monotonic() - idle_seconds:
            gc.collect()
            collected = time.monotonic()


def _say(answer: TextIO, **said: object) -> None:
    with contextlib.suppress(BrokenPipeError):
        print(json.dumps(said), file=answer, flush=True)


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
MAX_BYTES = 2**30
"""The largest file that can be dropped onto a page, and the largest message of a page, in bytes."""
SMALL_BYTES = 2**16
"""The largest body of any other request, in bytes."""


def page_application(shown: PageSession) -> web.Application:
    """Return the web application."""
    return web.Application(
        [
            ("/", _Document),
            ("/open", _Open),
            ("/opened", _Opened),
            ("/connection", _Connection),
            (r"/static/(viewer\.js)", _Static, {"path": str(STATIC)}),
            (r"/static/(\w+\.\w+)", _Static, {"path": str(PAGE / "static")}),
        ],
        default_handler_class=_Missing,
        websocket_max_message_size=MAX_BYTES,
        log_function=lambda _: None,  # it would log addresses, which have the token
        shown=shown,
    )


class _Private(web.RequestHandler):
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
            raise web.HTTPError(403)
        given = self.get_query_argument("token", "")
        if not hmac.compare_digest(given.encode(), self.shown.request.token.encode()):
            raise web.HTTPError(403)

    def write_error(self, status_code: int, **_: Any) -> None:
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(REFUSED if status_code == 403 else f"{status_code}: {self._reason}")

    def log_exception(
        self, typ: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Log an error without the address, which has the token."""
        if typ and value and not isinstance(value, web.HTTPError):
            _log.error("a request to %s failed", self.request.path, exc_info=(typ, value, tb))


class _Missing(_Private):
    def prepare(self) -> None:
        super().prepare()
        raise web.HTTPError(404)


class _Static(_Private, web.StaticFileHandler):
    """The page's script and style sheet."""


class _Document(_Private):
    """The page, with a picture of what it will show; or the page for choosing a file."""

    def get(self) -> None:
        self.set_header("Cache-Control", "no-store")
        shown, token = self.shown, self.shown.request.token
        if shown.explorer is not None:
            self.finish(template("index").render(initial_picture(shown.explorer), token=token))
        elif shown.opening:
            waiting = {"model": "", "title": shown.opening, "rows": [], "pictures": []}
            self.finish(template("index").render(waiting, token=token))
        else:
            self.finish(start_page(token, shown.failure, shown.refused))


class _Opened(_Private):
    """Tells, as JSON, the widget of what is being opened once it is open; "" if it cannot be."""

    async def get(self) -> None:
        await self.shown.opened()
        explorer = self.shown.explorer
        self.set_header("Cache-Control", "no-store")
        if explorer is None:
            self.finish({"model": "", "title": ""})
        else:
            self.finish({"model": explorer.model_id, "title": explorer.title})


@web.stream_request_body
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
        except OSError as failure:
            self.set_status(400)
            self.set_header("Content-Type", "text/plain; charset=utf-8")
            self.finish(failure_words(failure))
            shutil.rmtree(self.path.parent, ignore_errors=True)
            return
        what = self.get_query_argument("what", str(self.path))
        self.shown.open(what, is_opaque=self.get_query_argument("missing", "") == "opaque")


class _Connection(_Private, WebSocketHandler):
    """A page's web socket. Tornado refuses pages of other origins."""

    def open(self) -> None:
        self.message: dict[str, Any] = {}
        self.buffers: list[memoryview] = []
        self.set_nodelay(True)
        self.shown.pages.sockets.add(self)

    def on_close(self) -> None:
        self.shown.pages.sockets.discard(self)

    def on_message(self, message: str | bytes) -> None:
        if isinstance(message, str):
            self.message, self.buffers = json.loads(message), []
        else:
            self.buffers.append(memoryview(message))
        if len(self.buffers) == self.message["buffers"]:
            self.shown.pages.hear(self.message, self.buffers)


# --- The documents that the page's server sends --------------------------------------------------


PAGE = Path(__file__).parent / "page"


def start_page(token: str, failure: str = "", refused: str = "") -> str:
    """Return the page for choosing a file.

    Args:
        token: The page's token.
        failure: Why another could not be opened.
        refused: That one, if it can be opened with opaque nodes.
    """
    return template("start").render(
        recent=recent_files(), examples=EXAMPLES, failure=failure, refused=refused, token=token
    )


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
        ends: What is to be closed when this process ends.
        explorer: The explorer, None until something is open.
        opening: The name of what is being opened, "" if nothing is.
        failure: Why the last thing could not be opened.
        refused: That one, if it can be opened with opaque nodes for operators that TVM lacks.
    """

    request: PageRequest
    pages: Pages
    folder: Path
    ends: contextlib.ExitStack = dataclasses.field(default_factory=contextlib.ExitStack)
    explorer: Explorer | None = None
    opening: str = ""
    failure: str = ""
    refused: str = ""
    _loading: asyncio.Task[None] | None = None
    _task: asyncio.Task[None] | None = None

    async def load(self) -> None:
        """Load TVM and the explorer, in a thread, and then start what the explorer needs."""
        if self._loading is None:
            self._loading = asyncio.create_task(self._load())
        await asyncio.shield(self._loading)

    async def _load(self) -> None:
        await in_thread(_import_explorer)
        # here, where no other thread works; what is confined cannot use the token that it sees
        fork_workers_from_here()
        offered = self.ends.enter_context(offered_forks())
        if offered is not None:
            asyncio.get_running_loop().add_reader(offered, _accept_other, offered)
        TRIES.start()
        from irviz.view.graph.graphviz_engine import ENGINE

        ENGINE.start()

    def open(self, what: str, *, is_opaque: bool = False) -> None:
        """Begin to open a file or an example, unless something is open or being opened."""
        if self.explorer is None and not self.opening:
            self.opening = EXAMPLES[what].title if what in EXAMPLES else Path(what).name
            self.failure = self.refused = ""
            missing: Missing = "opaque" if is_opaque else self.request.missing
            self._task = asyncio.create_task(self._open(what, missing))

    async def opened(self) -> str:
        """Wait until nothing is being opened; return why it could not be opened, or ""."""
        if self._task is not None:
            await asyncio.shield(self._task)
        return self.failure

    async def _open(self, what: str, missing: Missing) -> None:
        is_sent = self.folder in Path(what).parents
        try:
            await self.load()
            session = await in_thread(lambda: session_of_page(what, self.request, missing))
            self.explorer = explorer_of_page(session, self.pages)
            if what not in EXAMPLES and not is_sent:
                add_recent_file(Path(what))
        except FAILURES as failure:
            self.failure = failure_words(failure)
            if is_sent:
                self.failure = self.failure.replace(f"{Path(what).parent}{os.sep}", "")
            if isinstance(failure, UnsupportedOperatorError):
                self.refused = what
            elif is_sent:
                shutil.rmtree(Path(what).parent, ignore_errors=True)
        finally:
            self.opening = ""

    def new_path(self, name: str) -> Path:
        """Return a path, in a new folder, for a file that a page uploads; raise OSError."""
        return Path(tempfile.mkdtemp(dir=self.folder), Path(name).name or "file")


def session_of_page(what: str, request: PageRequest, missing: Missing) -> Session:
    """Return a file or an example as a session."""
    from irviz.session.open_session import load

    if what in EXAMPLES:
        return EXAMPLES[what].session()
    if request.what not in (START, what):  # which could not be opened; the names are for that
        return load(what, missing=missing)
    return load(what, name=request.name, function=request.function, missing=missing)


def explorer_of_page(session: Session, pages: Pages) -> Explorer:
    """Return an explorer whose widgets are connected to the pages."""
    from irviz.explorer.actions import Say
    from irviz.explorer.explorer import Explorer
    from irviz.runtime.kernel_cache import say_if_none_are_kept

    class PageExplorer(Explorer):
        _esm = "static/viewer"  # `widget_manager.ts` has loaded it while TVM was loaded

    say_if_none_are_kept()
    pages.connect_widgets(Explorer.handle_control_comm_opened)
    explorer = PageExplorer(session, height=0)
    if words := _undefined_words(session):
        explorer.dispatch(Say(words))
    return explorer


def _undefined_words(session: Session) -> str:
    """Return a note on the operators of an imported model that nothing computes, "" if none."""
    from irviz.loaders.loaded_model import missing_notes
    from irviz.model.graph.graph import Resolution

    nodes = session.graph().nodes
    unknown = (node.callee for node in nodes if node.resolution is Resolution.UNKNOWN)
    names = dict.fromkeys(one for one in unknown if one.startswith(("onnx.", "torch.")))
    return "".join(missing_notes([*names], [], ""))


# --- What the start page offers: examples, and the files that were opened last -------------------


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
    # which raises nothing, whatever a name is
    return [path for path in paths[:_MOST] if os.path.isfile(path)]  # noqa: PTH113


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


if __name__ == "__main__":
    main()
