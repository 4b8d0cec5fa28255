"""Accept connections to the page's server, and close those that do not begin with the token."""

from __future__ import annotations

import asyncio
import hmac
import logging
import re
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from tornado.ioloop import IOLoop

REFUSED = "This is not the address that irviz printed, which ends with a token: open that one."
MOST_WAITING = 256
"""How many accepted connections may have sent nothing; beyond it, the oldest is closed."""
SECONDS = 5.0
"""How long an accepted connection may send nothing."""
_AT_ONCE = 16
"""How many connections are accepted before others, which have the token, are served."""
_TOKEN = re.compile(rb"[A-Z]+ /[^\s?]*\?(?:[^\s&]*&)*token=([\w-]+)[& ]")
_LINE_BYTES, _HEAD_BYTES = 2048, 65536
_ANSWER = (
    "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\nConnection: close\r\n"
    f"Content-Length: {len(REFUSED)}\r\n\r\n{REFUSED}"
).encode()
_log = logging.getLogger(__name__)


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
            self._waiting[connection] = asyncio.get_running_loop().call_later(SECONDS, end)
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
