"""Connections to TVM's RPC servers: opened, kept, and opened again when they are lost."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import count
from typing import TypeVar

import tvm
from tvm import rpc

from irviz.errors import RunError
from irviz.runtime.local.run_errors import error_summary
from irviz.runtime.run_target import RemoteAddress
from irviz.worker.progress import report_progress

Result = TypeVar("Result")

CONNECT_SECONDS = 10.0
"""The time limit for an answer of a server."""
_LIFE_SECONDS = 60.0
"""How long a server keeps an idle session before it serves others."""


@dataclass(eq=False)
class Connection:
    """A connection to a server, which the server ends at `until`, and what was loaded there."""

    remote: RemoteAddress
    session: rpc.RPCSession
    until: float
    loaded: OrderedDict[Hashable, object] = field(default_factory=OrderedDict)
    waiting: threading.Thread | None = None
    files: count[int] = field(default_factory=count)

    @property
    def device(self) -> tvm.runtime.Device:
        """The server's CPU."""
        return self.session.cpu()

    @property
    def is_known(self) -> bool:
        """Whether this connection is the one to use for its server."""
        return _connections.get(self.remote) is self

    def has(self, name: str) -> bool:
        """Tell whether the server has a function of this name."""
        try:
            return self.session.get_function(name) is not None
        except AttributeError:
            return False

    def answers(self) -> bool:
        """Tell whether the server still answers."""
        try:
            return _call_in_time(lambda: self.has("ffi.Shape"), CONNECT_SECONDS)
        except _HangsError as failure:
            self.waiting = failure.waiting
            return False
        except Exception:  # any error means that there is no answer
            return False

    def close(self) -> None:
        """End the connection and release what was loaded, which keeps it open.

        Releasing sends requests, so for a server that hangs it waits until the server answers.
        """
        if self.is_known:
            del _connections[self.remote]
        if self.waiting is not None and self.waiting.is_alive():
            _hanging.append(self)
        else:
            self.loaded.clear()

    def request(self, doing: str, send: Callable[[], Result]) -> Result:
        """Send a request; raise RunError when the connection is lost by that."""
        try:
            return send()
        except Exception as failure:
            if self.answers():
                raise
            self.close()
            raise RunError(
                f"the connection to {self.remote} was lost while {doing}: the server ended, or its "
                "process crashed, as by a function that writes outside of its buffers. Start it "
                "again if it is not there, and run again"
            ) from failure


_connections: dict[RemoteAddress, Connection] = {}
_hanging: list[Connection] = []
"""Connections to servers that hang; releasing them would block all threads until they answer."""


class _HangsError(TimeoutError):
    """A request took too long; `waiting` is the thread in which it still runs."""

    def __init__(self, waiting: threading.Thread) -> None:
        super().__init__("it takes too long")
        self.waiting = waiting


def connect(remote: RemoteAddress, seconds: float | None) -> Connection:
    """Return an open connection or a new one, which lasts as long as the work may take.

    The server gets a session timeout, because it serves one session at a time, and would be
    blocked forever by a function that does not end.
    """
    known = _connections.get(remote)
    needed = time.monotonic() + (seconds or 0.0)
    if known is not None and needed < known.until and known.answers():
        return known
    if known is not None:
        known.close()
        del known  # a server serves the next session when the last reference is gone
    _close_hanging()
    report_progress(f"connecting to {remote}")
    life = 0.0 if seconds is None else seconds + _LIFE_SECONDS
    until = time.monotonic() + life if life else float("inf")
    _connections[remote] = Connection(remote, _open_session(remote, life), until)
    return _connections[remote]


def _close_hanging() -> None:
    """Close the connections to servers that have answered meanwhile, and forget them on return."""
    waiting = _hanging[:]
    _hanging.clear()
    for one in waiting:
        one.close()


def _open_session(remote: RemoteAddress, life: float) -> rpc.RPCSession:
    address = (remote.host, remote.port, remote.key)
    try:
        return _call_in_time(lambda: rpc.connect(*address, session_timeout=life), CONNECT_SECONDS)
    except _HangsError:
        raise RunError(
            f"{remote} does not answer within {CONNECT_SECONDS:g} s: it may serve another session, "
            "of which a server has one at a time, or have ended after one that crashed (start it "
            "again), or not be a server of TVM"
        ) from None
    except Exception as failure:  # TVM raises what its C++ side threw, of any class
        raise RunError(
            _connection_error(remote, str(failure)) + f" ({error_summary(failure)})"
        ) from None


def _connection_error(remote: RemoteAddress, message: str) -> str:
    command = f"python -m tvm.exec.rpc_server --host 0.0.0.0 --port {remote.port}"
    start = f"start one there with {command}"
    if "cannot find server that matches key" in message:
        given = f"the key {remote.key!r}" if remote.key else "no key"
        return (
            f"the server at {remote.host}:{remote.port} has another key than was given, which is "
            f"{given}: give the key that it was started with, as host:port/key"
        )
    if "version mismatch" in message:
        return (
            f"the server at {remote} runs another version of TVM, and here is {tvm.__version__}: "
            "install the same there"
        )
    if "cannot obtain address" in message:
        return f"no machine is known as {remote.host!r}: give its address, such as 192.168.0.7"
    if "Connect to" in message:
        return f"there is no server at {remote}: {start}"
    return f"what answers at {remote} is not a server of TVM: {start}"


def _call_in_time(send: Callable[[], Result], seconds: float) -> Result:
    """Call a function in a thread, because a wait in C++ cannot be interrupted."""
    answer: Future[Result] = Future()

    def work() -> None:
        try:
            answer.set_result(send())
        except Exception as failure:
            answer.set_exception(failure)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise _HangsError(thread)
    return answer.result()
