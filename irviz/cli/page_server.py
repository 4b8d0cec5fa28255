"""The process that serves the page and holds the explorer and its session.

So a reloaded page shows what it showed before, and its first picture needs no kernel.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import gc
import json
import os
import socket
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

from tornado.httpserver import HTTPServer
from tornado.iostream import IOStream
from tornado.netutil import bind_sockets

from irviz.cli.options import FAILURES, failure_words
from irviz.cli.page_connection import Pages
from irviz.cli.page_launcher import interruptible
from irviz.cli.page_listener import BACKLOG, Listener
from irviz.cli.page_request import START, PageRequest
from irviz.cli.page_routes import ADDRESS, MAX_BYTES, SMALL_BYTES, page_application
from irviz.cli.page_session import PageSession
from irviz.worker.supervisor import TRIES
from irviz.worker.worker_main import exit_with_parent


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
            import_module("irviz.cli.open_explorer")  # takes a second, in which the reader chooses
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


if __name__ == "__main__":
    main()
