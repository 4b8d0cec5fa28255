"""Connections to TVM's RPC servers: made, kept, lost and made again."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from itertools import count
from typing import TypeVar

import tvm
from tvm import rpc

from irviz.runtime.address import Remote
from irviz.runtime.machine import RunError, said
from irviz.worker.progress import tell

Result = TypeVar("Result")

CONNECT_SECONDS = 10.0
"""How long a server may take to answer."""
_LIFE_SECONDS = 60.0
"""How long a server waits for more work after the first, before it serves others."""


@dataclass(eq=False)
class Link:
    """A connection to a server, until the server ends it, and what was loaded there."""

    remote: Remote
    session: rpc.RPCSession
    until: float
    loaded: OrderedDict[Hashable, object] = field(default_factory=OrderedDict)
    waiting: threading.Thread | None = None
    files: count[int] = field(default_factory=count)

    @property
    def device(self) -> tvm.runtime.Device:
        """The CPU there."""
        return self.session.cpu()

    @property
    def is_known(self) -> bool:
        """Whether it is the connection that would be used again."""
        return _links.get(self.remote) is self

    def has(self, name: str) -> bool:
        """Tell whether a function of this name is registered there."""
        try:
            return self.session.get_function(name) is not None
        except AttributeError:
            return False

    def answers(self) -> bool:
        """Tell whether the server is still there."""
        try:
            return _in_time(lambda: self.has("ffi.Shape"), CONNECT_SECONDS)
        except _HangsError as failure:
            self.waiting = failure.waiting
            return False
        except Exception:  # whatever it is: there is no answer
            return False

    def close(self) -> None:
        """End the connection and forget what was loaded, which holds it.

        To forget it the server is asked, so that one which hangs is let go once it answers.
        """
        if self.is_known:
            del _links[self.remote]
        if self.waiting is not None and self.waiting.is_alive():
            _hanging.append(self)
        else:
            self.loaded.clear()

    def asked(self, doing: str, ask: Callable[[], Result]) -> Result:
        """Ask the server for something; raise RunError when the connection is lost by that."""
        try:
            return ask()
        except Exception as failure:
            if self.answers():
                raise
            self.close()
            raise RunError(
                f"the connection to {self.remote} was lost while {doing}: the server ended, or its "
                "process crashed, as by a function that writes outside of its buffers. Start it "
                "again if it is not there, and run again"
            ) from failure


_links: dict[Remote, Link] = {}
_hanging: list[Link] = []
"""Connections to servers that gave no answer; to free them would wait for it, with all threads."""


class _HangsError(TimeoutError):
    """Something that takes too long, and the thread in which it still goes on."""

    def __init__(self, waiting: threading.Thread) -> None:
        super().__init__("it takes too long")
        self.waiting = waiting


def linked(remote: Remote, seconds: float | None) -> Link:
    """Return the connection there is, or a new one, which lasts as long as the work may take.

    The server is told when to end it, because it serves one at a time, and would never serve
    again after a function that does not end.
    """
    known = _links.get(remote)
    needed = time.monotonic() + (seconds or 0.0)
    if known is not None and needed < known.until and known.answers():
        return known
    if known is not None:
        known.close()
        del known  # a server serves the next when the last that holds it lets go
    _let_go()
    tell(f"connecting to {remote}")
    life = 0.0 if seconds is None else seconds + _LIFE_SECONDS
    until = time.monotonic() + life if life else float("inf")
    _links[remote] = Link(remote, _connected(remote, life), until)
    return _links[remote]


def _let_go() -> None:
    """Close the connections to servers that have answered since."""
    waiting = _hanging[:]
    _hanging.clear()
    for one in waiting:
        one.close()


def _connected(remote: Remote, life: float) -> rpc.RPCSession:
    def connect() -> rpc.RPCSession:
        return rpc.connect(remote.host, remote.port, remote.key, session_timeout=life)

    try:
        return _in_time(connect, CONNECT_SECONDS)
    except _HangsError:
        raise RunError(
            f"{remote} does not answer within {CONNECT_SECONDS:g} s: it may serve another session, "
            "of which a server has one at a time, or have ended after one that crashed (start it "
            "again), or be no server of TVM's"
        ) from None
    except Exception as failure:  # TVM raises what its C++ side threw, of any class
        raise RunError(_unconnected(remote, str(failure)) + f" ({said(failure)})") from None


def _unconnected(remote: Remote, words: str) -> str:
    """Say why there is no connection, which TVM's words tell."""
    start = (
        f"start one there with python -m tvm.exec.rpc_server --host 0.0.0.0 --port {remote.port}"
    )
    if "cannot find server that matches key" in words:
        given = f"the key {remote.key!r}" if remote.key else "no key"
        return (
            f"the server at {remote.host}:{remote.port} has another key than was given, which is "
            f"{given}: give the key that it was started with, as host:port/key"
        )
    if "version mismatch" in words:
        return (
            f"the server at {remote} runs another version of TVM, and here is {tvm.__version__}: "
            "install the same there"
        )
    if "cannot obtain address" in words:
        return f"no machine is known as {remote.host!r}: give its address, such as 192.168.0.7"
    if "Connect to" in words:
        return f"there is no server at {remote}: {start}"
    return f"what answers at {remote} is no server of TVM's: {start}"


def _in_time(ask: Callable[[], Result], seconds: float) -> Result:
    """Do something in a thread, because nothing else ends a wait in C++; raise _HangsError."""
    found: list[Result] = []
    failures: list[Exception] = []

    def work() -> None:
        try:
            found.append(ask())
        except Exception as failure:
            failures.append(failure)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise _HangsError(thread)
    if failures:
        raise failures[0]
    return found[0]
