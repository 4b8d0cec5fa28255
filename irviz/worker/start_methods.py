"""Start and end worker processes, by `subprocess` or by forking a process that has loaded TVM."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import socket
import subprocess
import sys
import threading
from typing import BinaryIO, Protocol, cast

from irviz.worker.child_process import Surroundings, end_process
from irviz.worker.fork_server_main import MESSAGE_BYTES

_START = """
import sys
sys.path[:] = sys.argv[1:]
del sys.argv[1:]
from irviz.worker.{module} import main
main({arguments})
"""


class Started(Protocol):
    """A process that reads requests from one pipe and writes answers to another."""

    requests: BinaryIO
    answers: BinaryIO
    parent: int
    """The process whose exit must end this one."""

    def end(self) -> int | None:
        """Kill the process and its children; return its exit code, None if unknown."""


class DirectProcess:
    """A process that this process starts; `printed` gets its output."""

    def __init__(self, printed: int) -> None:
        self.parent = os.getpid()
        self._popen = _python("worker_main", "", subprocess.PIPE, subprocess.PIPE, printed)
        self.pid = self._popen.pid
        self.requests = cast(BinaryIO, self._popen.stdin)
        self.answers = cast(BinaryIO, self._popen.stdout)

    def end(self) -> int | None:
        """Kill it and its children; return its exit code."""
        with contextlib.suppress(OSError, AttributeError):  # Windows has no process groups
            os.killpg(self.pid, signal.SIGKILL)
        self._popen.kill()
        return self._popen.wait()


class ForkServer:
    """A process that has loaded TVM and forks for each worker, which takes milliseconds.

    `patience` is how many seconds it may take to end a worker, and to end; only loading TVM keeps
    it busy.
    """

    def __init__(self, patience: float = 10.0) -> None:
        self._patience = patience
        self._numbers, self._lock = itertools.count(1), threading.Lock()
        self._socket, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(patience)
        with its:
            null = subprocess.DEVNULL
            self._popen = _python("fork_server_main", str(os.getpid()), its.fileno(), null, null)
        self.pid = self._popen.pid

    @property
    def is_alive(self) -> bool:
        """Whether it can start workers."""
        return self._popen.poll() is None

    def start_worker(self, *descriptors: int) -> int:
        """Request a worker with these standard streams without waiting; return its number."""
        with self._lock:
            number = next(self._numbers)
            socket.send_fds(self._socket, [b"%d" % number], list(descriptors))
            return number

    def end_worker(self, number: int) -> int | None:
        """Kill a worker and its children; return its exit code, None if unknown."""
        with self._lock:
            try:
                self._socket.send(b"%d" % number)
                code = self._socket.recv(MESSAGE_BYTES)
            except OSError:  # it has ended, or hangs
                code = b""
            if not code:
                self.end()  # with which its workers end
        _, _, status = code.partition(b" ")
        return int(status) if status else None

    def end(self) -> None:
        """End the server, which ends its workers."""
        end_process(self._popen, self._patience)
        self._socket.close()


class ForkedProcess:
    """A process that a fork server starts; `printed` gets its output."""

    def __init__(self, server: ForkServer, printed: int) -> None:
        self._server, self.parent = server, server.pid
        its_requests, requests = os.pipe()
        answers, its_answers = os.pipe()
        self.requests: BinaryIO = os.fdopen(requests, "wb")
        self.answers: BinaryIO = os.fdopen(answers, "rb")
        try:
            self._number = server.start_worker(its_requests, its_answers, printed)
        except OSError:
            self.requests.close()
            self.answers.close()
            raise
        finally:
            os.close(its_requests)
            os.close(its_answers)

    def end(self) -> int | None:
        """Kill the process and its children; return its exit code, None if unknown."""
        return self._server.end_worker(self._number)


def _python(
    module: str, arguments: str, stdin: int, stdout: int, stderr: int
) -> subprocess.Popen[bytes]:
    """Start `main` of a module next to this one in another Python process."""
    surroundings = Surroundings.of_a_worker()
    start = _START.format(module=module, arguments=arguments)
    return subprocess.Popen(  # noqa: S603 - Python itself
        [sys.executable, "-c", start, *surroundings.path],
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env=surroundings.environment,
        start_new_session=True,  # Ctrl-C is for the parent, and the group can be killed
    )
