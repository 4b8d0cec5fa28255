"""A parent's handle of a worker process: starting, calling and killing it."""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import queue
import signal
import sys
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import cloudpickle

from irviz.errors import LoadError
from irviz.worker.answers import (
    UnreadableAnswerError,
    answer_place,
    answer_type,
    exception,
    unpack_answer,
)
from irviz.worker.captured_output import StdoutCapture
from irviz.worker.inherited_environment import Surroundings
from irviz.worker.progress import PROGRESS, receive
from irviz.worker.shared_arrays import Place
from irviz.worker.start_methods import (
    DirectProcess,
    ForkedProcess,
    ForkServer,
    Started,
)
from irviz.worker.worker_main import initialize, load_tvm

Result = TypeVar("Result")

_CAN_FORK = sys.platform.startswith("linux")
"""Other systems lack fork, or their libraries do not work after it."""
_alive: weakref.WeakSet[WorkerHandle] = weakref.WeakSet()
_starters: dict[int, ThreadPoolExecutor] = {}
_servers: dict[int, ForkServer] = {}
_lock = threading.RLock()
_inherited: list[object] = []
"""The processes of a fork's parent, kept so that they are not finalized here."""


class EndedError(Exception):
    """The process ended before it answered."""


class WorkerTraceback(Exception):  # noqa: N818 - only ever the cause of an error
    """The traceback of an exception in the worker, as text."""


class _Request(NamedTuple):
    """A pickled call, if a spare process can serve it, and the type and future of its result."""

    call: bytes
    is_run: bool
    kind: Any
    future: Future[Any]


class WorkerHandle:
    """A process that serves calls in sequence; `ready` is done once it is prepared.

    Requests are pickled and written to its standard input; progress messages and answers are read
    from its standard output, as data. `doing` is the last message of the last call, also after a
    crash.
    """

    def __init__(self, prepare: Callable[[], None]) -> None:
        self.output = StdoutCapture()
        self.doing = ""
        self._ending, self._is_ended = threading.Lock(), False
        self._requests: queue.SimpleQueue[_Request | None] = queue.SimpleQueue()
        self._exit_code: int | None = None
        self._started: Started = _starter().submit(_start, prepare, self.output.descriptor).result()
        with _lock:
            _alive.add(self)
        threading.Thread(target=self._serve_requests, daemon=True).start()
        self.ready: Future[None] = self.submit(
            initialize, prepare, self._started.parent, Surroundings.of_a_worker()
        )

    def submit(
        self,
        function: Callable[..., object],
        *arguments: object,
        answer: Any = None,
        is_run: bool = False,
    ) -> Future[Any]:
        """Request a call, and return a future of its result; raise what pickling raises.

        The result has the type `answer`, by default the one that the function's annotation says.
        The future raises what the function raises, EndedError or UnreadableAnswerError.
        """
        future: Future[Any] = Future()
        kind = answer_type(function) if answer is None else answer
        self._requests.put(_Request(cloudpickle.dumps((function, arguments)), is_run, kind, future))
        return future

    def end(self) -> None:
        """Kill the process and its children; can be called from any thread, repeatedly."""
        with self._ending:
            if self._is_ended:
                return
            self._is_ended = True
            self._exit_code = self._started.end()
            self._requests.put(None)

    @property
    def exit_status(self) -> str:
        """How the process ended, such as " (SIGSEGV)" or " (exit code 3)"."""
        return exit_status(self._exit_code)

    def _serve_requests(self) -> None:
        # which are closed in the end
        with contextlib.suppress(OSError), self._started.answers, self._started.requests:
            for request in iter(self._requests.get, None):
                try:
                    request.future.set_result(self._answer(request))
                except Exception as failure:  # noqa: PERF203 - each request has its own
                    request.future.set_exception(failure)

    def _answer(self, request: _Request) -> Any:
        with answer_place() as place:
            try:
                packed = self._exchange(request, place)
            except ValueError as failure:
                raise UnreadableAnswerError(str(failure)) from None
            except Exception:  # a pipe that is closed or cut off
                raise EndedError from None
            value, failed = unpack_answer(packed, place, request.kind)
        if failed is not None:
            raised = exception(failed)
            # where code of the user's failed helps; of a file that is refused, the message says all
            is_plain = isinstance(raised, LoadError)
            raise raised from (None if is_plain else WorkerTraceback(failed.text))
        return value

    def _exchange(self, request: _Request, place: Place | None) -> bytes:
        """Send a request and receive the packed answer; raise ValueError for what is none."""
        requests, answers = self._started.requests, self._started.answers
        self.doing = ""
        pickle.dump((request.is_run, request.call, place), requests)
        requests.flush()
        while True:
            kind, content = receive(answers)
            if kind != PROGRESS:
                return content
            self.doing = content.decode(errors="replace")


def exit_status(code: int | None) -> str:
    """Return how a process ended, such as " (SIGSEGV)" or " (exit code 3)", "" if unknown."""
    if code is None:
        return ""
    with contextlib.suppress(ValueError):
        return f" ({signal.Signals(-code).name})"
    return f" (exit code {code})"


def _start(prepare: Callable[[], None], printed: int) -> Started:
    if prepare is not load_tvm or not _CAN_FORK:
        return DirectProcess(printed)
    server = _servers.get(os.getpid())
    if server is not None and not server.is_alive:
        server.end()
        server = None
    if server is None:
        server = _servers[os.getpid()] = ForkServer()
    with contextlib.suppress(OSError):  # it ended a moment ago
        return ForkedProcess(server, printed)
    return DirectProcess(printed)


def _starter() -> ThreadPoolExecutor:
    """Return the thread that starts processes, which lives as long as this process.

    Linux kills a process when the thread that started it ends, if the process asks for that.
    """
    with _lock:
        if os.getpid() not in _starters:
            _starters[os.getpid()] = ThreadPoolExecutor(1, "irviz-starts")
        return _starters[os.getpid()]


@atexit.register
def _end_all() -> None:
    for process in list(_alive):
        process.end()
    if server := _servers.pop(os.getpid(), None):
        server.end()


def _reset_after_fork() -> None:
    """Forget the parent's processes; the lock may be held by a thread that the fork lacks."""
    global _lock
    _lock = threading.RLock()
    _inherited.extend([*_alive, *_servers.values()])
    _alive.clear()
    _servers.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
