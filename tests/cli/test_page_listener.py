"""Whoever has no token costs the page's server nothing, and its owner no time."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple
from urllib.parse import SplitResult, urlsplit

import pytest
from tornado.ioloop import IOLoop
from tornado.websocket import websocket_connect

from irviz.cli import page_listener
from irviz.cli.page_launcher import START, served

pytestmark = [
    pytest.mark.worker,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc"),
]
UPLOAD = b"POST /open?%s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 500000000\r\n\r\n"


class Server(NamedTuple):
    """A server of a page, with its process, its address and the file that it logs to."""

    pid: int
    address: SplitResult
    log: BinaryIO

    def ask(self, method: str, path: str, query: str = "", body: bytes = b"") -> tuple[int, str]:
        """Return the status and text of the answer to its owner."""
        connection = http.client.HTTPConnection(self.address.netloc, timeout=60)
        with contextlib.closing(connection):
            connection.request(method, f"{path}?{self.address.query}{query}", body)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def connected(self) -> socket.socket:
        """Return a connection of anybody."""
        return socket.create_connection((self.address.hostname, self.address.port), timeout=60)

    def megabytes(self) -> float:
        """Return the most memory that it had so far."""
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii")
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024

    def logged(self) -> str:
        """Return what it logged since this was asked last."""
        text = os.pread(self.log.fileno(), 10**6, 0).decode()
        self.log.seek(0)  # for both processes
        self.log.truncate()
        return text


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    kept = os.dup(2)
    with tempfile.TemporaryFile() as log, contextlib.ExitStack() as stack:
        os.dup2(log.fileno(), 2)
        try:
            process, url = stack.enter_context(served(START))
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        server = Server(process.pid, urlsplit(url), log)
        assert server.ask("GET", "/")[0] == 200
        yield server


@pytest.mark.parametrize("query", [b"", b"token=wrong", b"name=a&token=" + b"x" * 32])
def test_a_body_is_not_read_before_the_token(server: Server, query: bytes) -> None:
    before = server.megabytes()
    for _ in range(20):
        with server.connected() as stranger:
            stranger.sendall(UPLOAD % query)
            with pytest.raises((BrokenPipeError, ConnectionResetError)):  # it does not listen
                stranger.sendall(bytes(50 * 2**20))
    assert server.megabytes() - before < 10
    assert server.ask("GET", "/")[0] == 200


def test_connections_that_send_nothing_are_closed_and_the_owner_is_served(server: Server) -> None:
    before = server.megabytes()
    with contextlib.ExitStack() as strangers:
        many = range(2 * page_listener.MOST_WAITING)
        waiting = [strangers.enter_context(server.connected()) for _ in many]
        assert server.ask("GET", "/")[0] == 200
        files = list(Path(f"/proc/{server.pid}/fd").iterdir())
        assert len(files) < page_listener.MOST_WAITING + 100
        assert waiting[0].recv(1) == b""  # the oldest had to make room
        waiting[-1].settimeout(page_listener.SECONDS / 2)
        with pytest.raises(TimeoutError):
            waiting[-1].recv(1)
        waiting[-1].settimeout(3 * page_listener.SECONDS)
        assert waiting[-1].recv(1) == b""  # it sent nothing in time
    assert server.megabytes() - before < 10
    assert server.logged() == "irviz: many connections without the token of the page are closed\n"


def test_only_a_file_that_is_opened_may_be_large_and_it_goes_to_the_disk(server: Server) -> None:
    with contextlib.suppress(ConnectionError):  # it may be closed before all is sent
        assert server.ask("POST", "/", body=bytes(2**17))[0] == 400
    before = server.megabytes()
    assert server.ask("POST", "/open", "&name=large.py", b"#" * 150 * 2**20)[0] == 200
    assert server.ask("GET", "/opened") == (200, '{"model": "", "title": ""}')
    assert "&#39;large.py&#39;" in server.ask("GET", "/")[1]
    assert server.megabytes() - before < 50


def test_a_malformed_message_logs_no_token(server: Server) -> None:
    async def send(message: str) -> None:
        url = f"ws://{server.address.netloc}/connection?{server.address.query}"
        connection = await websocket_connect(url)
        await connection.write_message(message)
        while await connection.read_message() is not None:
            pass
        connection.close()

    for message in ("{", "[]", "{}", json.dumps({"type": "shutdown", "id": "1", "buffers": 0})):
        IOLoop().run_sync(lambda message=message: send(message), timeout=60)  # type: ignore[misc]
    said = server.logged()
    assert "a request to /connection failed" in said
    assert server.address.query.partition("=")[2] not in said


@pytest.mark.parametrize("path", ["/static/%00", "/static/a%00.js", "/static/..", "/static/"])
def test_a_file_that_is_not_there_is_not_found_and_not_logged(server: Server, path: str) -> None:
    server.logged()
    assert server.ask("GET", path) == (404, "404: Not Found")
    time.sleep(0.1)
    assert server.logged() == ""


# the last test, as the server keeps the limit
def test_at_the_limit_of_open_files_the_owner_is_served(server: Server) -> None:
    import resource

    server.logged()
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (100, 100))
    with contextlib.ExitStack() as stack:
        for _ in range(300):
            stack.enter_context(server.connected())
        assert server.ask("GET", "/")[0] == 200
        assert len(server.logged().splitlines()) <= 1
