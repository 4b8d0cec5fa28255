"""Workers: processes for anything that might crash, hang, or take too much memory.

Each is started ahead of need, serves calls in sequence, and is replaced if it crashes, times out or
its call is cancelled. Functions and arguments are sent by cloudpickle; answers are data.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import pickle
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any, BinaryIO, TypeAlias, TypeVar, cast

import cloudpickle

from irviz.errors import IrvizError, LoadError
from irviz.limits import CALL_SECONDS
from irviz.worker import responses
from irviz.worker.captured_output import StdoutCapture
from irviz.worker.child_process import Fork, Process, Surroundings, end_process
from irviz.worker.fork_server_main import MESSAGE_BYTES, main_of_fork
from irviz.worker.one_shot_process import CAN_FORK, FreshProcessEndedError
from irviz.worker.shared_arrays import Place, answer_place
from irviz.worker.worker_main import call_with_limit, initialize, load_tvm

Result = TypeVar("Result")
OnProgress = Callable[[str], None]
"""Gets each new progress message."""

_POLL_SECONDS = 0.05
PING_SECONDS = 5.0
"""How long a ready process may take to answer a ping before it is replaced."""
_ENDED = "it ended the process that tried it"
_NO_START = "the process for it could not be started"


class WorkerError(IrvizError, RuntimeError):
    """The worker gave no answer; `doing` is its last progress message."""

    def __init__(self, words: str, doing: str = "") -> None:
        super().__init__(words)
        self.doing = doing


class CrashedError(WorkerError):
    """The worker crashed, or was killed."""


class TimedOutError(WorkerError):
    """The call exceeded its time limit, and the worker was killed."""


class CancelledError(WorkerError):
    """The call was cancelled, and the worker was killed."""


class StartError(CrashedError):
    """The worker could not be started, or was not ready in time."""


class _TimeUpError(Exception):
    """A time limit was exceeded."""


class Worker:
    """A process that is replaced whenever it ends, with `ends_on_error` by any exception, too.

    `prepare` is called first in each new process, with a limit of `start_seconds`.
    """

    def __init__(
        self,
        prepare: Callable[[], None] = load_tvm,
        start_seconds: float = CALL_SECONDS,
        *,
        ends_on_error: bool = False,
    ) -> None:
        self._prepare, self._start_seconds = prepare, start_seconds
        self._ends_on_error = ends_on_error
        self._calls, self._changes = threading.RLock(), threading.RLock()
        self._process: WorkerHandle | None = None
        self._is_busy, self.cancels = False, 0
        self.doing = ""
        """The last progress message of the last call; `cancels` counts cancelled calls."""
        _workers.add(self)

    def start(self) -> None:
        """Start a process if there is none, without waiting for it."""
        with contextlib.suppress(Exception):  # the next call tries again, and raises
            self._running()

    def call(
        self,
        function: Callable[..., Result],
        *arguments: object,
        seconds: float = CALL_SECONDS,
        memory: int | None = None,
        on_progress: OnProgress | None = None,
        on_output: OnProgress | None = None,
        since: int | None = None,
        answer: Any = None,
        is_run: bool = False,
    ) -> Result:
        """Call a function in the worker and return its result.

        Args:
            function: It and its arguments are pickled by cloudpickle.
            memory: The memory limit in bytes; beyond it, the function gets MemoryError.
            on_progress: Gets each new progress message.
            on_output: Gets the printed output, even if the call failed.
            since: The value of `cancels` when an operation began that this call is part of;
                cancelling that operation cancels the call.
            answer: The type of the result, by default the return type in the function's annotation.
            is_run: Whether it runs what the worker has made ready before, in a fresh process.

        Raises:
            StartError, CrashedError, TimedOutError, CancelledError: There is no answer; the next
                call gets a new process.
            Exception: Whatever the function raises.
        """
        since = self.cancels if since is None else since
        with self._turn(since):
            process = self._ready_process(since)
            try:
                kind = responses.answer_type(function) if answer is None else answer
                future: Future[Result] = process.submit(
                    call_with_limit, memory, function, *arguments, answer=kind, is_run=is_run
                )
                return self._wait(process, future, seconds, on_progress)
            except (_TimeUpError, EndedError, responses.UnreadableAnswerError) as failure:
                self._end(process)
                raise self._error(failure, process, since) from None
            except FreshProcessEndedError as failure:
                status = exit_status(int(failure.args[0]))
                raise CrashedError(f"{_ENDED}{status}", process.doing) from None
            except BaseException as failure:
                # after Ctrl-C the call is still running
                if self._ends_on_error or not isinstance(failure, Exception):
                    self._end(process)
                raise
            finally:
                self.doing = process.doing
                text = process.output.take()
                if on_output and text:
                    on_output(text)

    def cancel(self) -> None:
        """Cancel the running call and the calls waiting for it, from any thread."""
        with self._changes:
            self.cancels += 1
            if not self._is_busy:
                return
            process, self._process = self._process, None
        if process is not None:
            process.end()

    def stop(self) -> None:
        """Kill the process, whatever it is doing."""
        with self._changes:
            self.cancels += self._is_busy
            process, self._process = self._process, None
        if process is not None:
            process.end()

    @contextlib.contextmanager
    def _turn(self, since: int) -> Iterator[None]:
        """Wait until no other call is running; from then on `cancel` applies to this one."""
        with self._calls:
            with self._changes:
                self._check(since)
                self._is_busy = True
            try:
                yield
            finally:
                with self._changes:
                    self._is_busy = False

    def _check(self, since: int) -> None:
        if self.cancels != since:
            raise CancelledError("it was cancelled")

    def _ready_process(self, since: int) -> WorkerHandle:
        """Return a ready process; raise StartError or CancelledError."""
        while True:
            with self._changes:
                self._check(since)
                is_new = self._process is None
                try:
                    process = self._running()
                except (OSError, RuntimeError) as failure:  # too many processes, or Python exits
                    raise StartError(f"{_NO_START}: {_why(failure)}") from None
            try:
                self._wait(process, process.ready, self._start_seconds)
                self._wait(process, process.submit(os.getpid, answer=int), PING_SECONDS)
            except BaseException as failure:
                self._end(process)
                if not isinstance(failure, Exception):
                    raise
                self._check(since)
                if is_new:
                    why = _why(failure) or f"it ended{exit_status(process.exit_code)}"
                    raise StartError(f"{_NO_START}: {why}") from None
                continue  # it died between calls: start a new one
            process.output.take()  # drop output from between calls
            return process

    def _running(self) -> WorkerHandle:
        with self._changes:
            if self._process is None:
                self._process = WorkerHandle(self._prepare)
            return self._process

    def _end(self, process: WorkerHandle) -> None:
        with self._changes:
            if self._process is process:
                self._process = None
        process.end()

    def _error(self, failure: BaseException, process: WorkerHandle, since: int) -> WorkerError:
        """Return the error for a call without an answer, whose process has ended."""
        doing = process.doing
        if self.cancels != since:
            return CancelledError("it was cancelled", doing)
        if isinstance(failure, _TimeUpError):
            return TimedOutError(f"it {failure}", doing)
        if isinstance(failure, responses.UnreadableAnswerError):
            return CrashedError("it gave an answer that cannot be read", doing)
        return CrashedError(f"{_ENDED}{exit_status(process.exit_code)}", doing)

    def _wait(
        self,
        process: WorkerHandle,
        future: Future[Result],
        seconds: float,
        on_progress: OnProgress | None = None,
    ) -> Result:
        """Wait for a result, passing on progress messages."""
        deadline, last = time.monotonic() + seconds, ""
        while not wait([future], min(_POLL_SECONDS, seconds)).done:
            if time.monotonic() >= deadline:
                raise _TimeUpError(f"took longer than {seconds:g} s and was stopped")
            process.output.truncate()
            message = process.doing
            if on_progress and message and message != last:
                last = message
                on_progress(message)
        return future.result()

    def _reset_after_fork(self) -> None:
        """Forget the process and the running call: a fork has neither."""
        self._calls, self._changes = threading.RLock(), threading.RLock()
        self._process, self._is_busy = None, False


_workers: weakref.WeakSet[Worker] = weakref.WeakSet()

TRIES = Worker()
"""The worker that tries transforms and library functions."""
RUNS = Worker()
"""The worker that runs stages, so that trials need not wait for long runs."""


def _why(failure: Exception) -> str:
    """Return why there is no process, "" if the exit status says it."""
    if isinstance(failure, EndedError):
        return ""
    if isinstance(failure, _TimeUpError):
        return f"that {failure}"
    return f"{type(failure).__name__}: {failure}"


# --- A parent's handle of a worker process: starting, calling and killing it ---------------------


_alive: weakref.WeakSet[WorkerHandle] = weakref.WeakSet()
_server: ForkServer | None = None
_numbers = itertools.count(1)
_starter = ThreadPoolExecutor(1, "irviz-starts")
"""The thread that starts processes: Linux kills what a thread has started when that ends."""
_lock = threading.RLock()
_ahead: list[str] = []
"""The modules that a fork server loads after TVM."""
_inherited: list[object] = []
"""The processes of a fork's parent, kept so that they are not finalized here."""


class EndedError(Exception):
    """The process ended before it answered."""


class WorkerTraceback(Exception):  # noqa: N818 - only ever the cause of an error
    """The traceback of an exception in the worker, as text."""


_Request = tuple[Future[Any], Callable[[], Any]]
"""A future, and what returns its result."""


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
        self.exit_code: int | None = None
        self._started: Started = _starter.submit(_start, prepare, self.output.descriptor).result()
        with _lock:
            _alive.add(self)
        threading.Thread(target=self._serve_requests, daemon=True).start()
        self.ready: Future[None] = self.submit(
            initialize, prepare, self._started.parent, Surroundings.of_a_worker(), answer=None
        )

    def submit(
        self,
        function: Callable[..., object],
        *arguments: object,
        answer: Any,
        is_run: bool = False,
    ) -> Future[Any]:
        """Request a call, and return a future of its result; raise what pickling raises.

        The result has the type `answer`. The future raises what the function raises, EndedError or
        UnreadableAnswerError.
        """
        future: Future[Any] = Future()
        call = cloudpickle.dumps((function, arguments))
        self._requests.put((future, partial(self._answer, call, answer, is_run=is_run)))
        return future

    def end(self) -> None:
        """Kill the process and its children; can be called from any thread, repeatedly."""
        with self._ending:
            if self._is_ended:
                return
            self._is_ended = True
            self.exit_code = self._started.end()
            self._requests.put(None)

    def _serve_requests(self) -> None:
        # which are closed in the end
        with contextlib.suppress(OSError), self._started.answers, self._started.requests:
            for future, answer in iter(self._requests.get, None):
                try:
                    future.set_result(answer())
                except Exception as failure:  # noqa: PERF203 - each request has its own
                    future.set_exception(failure)

    def _answer(self, call: bytes, kind: Any, *, is_run: bool) -> Any:
        """Return the result of a pickled call, as this type."""
        with answer_place() as place:
            try:
                packed = self._exchange(call, place, is_run=is_run)
            except ValueError as failure:
                raise responses.UnreadableAnswerError(str(failure)) from None
            except Exception:  # a pipe that is closed or cut off
                raise EndedError from None
            value, failed = responses.unpack_answer(packed, place, kind)
        if failed is not None:
            raised = responses.exception(failed)
            # where code of the user's failed helps; of a file that is refused, the message says all
            is_plain = isinstance(raised, LoadError)
            raise raised from (None if is_plain else WorkerTraceback(failed.text))
        return value

    def _exchange(self, call: bytes, place: Place | None, *, is_run: bool) -> bytes:
        """Send a request and receive the packed answer; raise ValueError for a malformed one."""
        requests, answers = self._started.requests, self._started.answers
        self.doing = ""
        pickle.dump((is_run, call, place), requests)
        requests.flush()
        while True:
            kind, content = responses.receive_frame(answers)
            if kind != responses.PROGRESS:
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
    global _server
    if prepare is not load_tvm or not CAN_FORK:
        return DirectProcess(printed)
    if _server is not None and not _server.is_alive:
        _server.end()
        _server = None
    if _server is None:
        _server = ForkServer()
    with contextlib.suppress(OSError):  # it ended a moment ago
        return ForkedProcess(_server, printed)
    return DirectProcess(printed)


def load_ahead(module: str) -> None:
    """Let a fork server load a module that workers need, so that not each of them has to."""
    _ahead.append(module)


def fork_workers_from_here() -> None:
    """Let workers be forks of this process, which has loaded TVM, so that it is not loaded twice.

    It is called while no other thread works, as a fork has none of them, and in a thread that lives
    as long as the process, as Linux kills what a thread has started when that ends. Workers see
    what the memory holds by then.
    """
    global _server
    if CAN_FORK and _server is None:
        _server = ForkServer(is_loaded=True)


def fork_main(module: str, *descriptors: int) -> None:
    """Start a module's `main` in a process that has loaded TVM and lives on when this one ends.

    It inherits what workers do, and the descriptors are its standard streams. Raises OSError where
    no process can be forked.
    """
    if _server is None:
        raise OSError("there is no process to fork")
    _server.start(module, *descriptors)


@atexit.register
def _end_all() -> None:
    for process in list(_alive):
        process.end()
    if _server is not None:
        _server.end()


def _reset_after_fork() -> None:
    """Forget the parent's processes; the lock may be held by a thread that the fork lacks."""
    global _lock, _server, _starter
    _inherited.extend([*_alive, _server, _starter])
    _lock, _server, _starter = threading.RLock(), None, ThreadPoolExecutor(1, "irviz-starts")
    _alive.clear()
    for worker in list(_workers):
        worker._reset_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


_START = """
import sys
sys.path[:] = sys.argv[1:]
del sys.argv[1:]
from irviz.worker.{module} import main
main({arguments})
"""


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

    Args:
        patience: How many seconds it may take to end a worker, and to end; only loading TVM keeps
            it busy.
        is_loaded: Whether this process has loaded TVM, so that the server can be a fork of it.
    """

    def __init__(self, patience: float = 10.0, *, is_loaded: bool = False) -> None:
        self._patience = patience
        self._lock = threading.Lock()
        self._socket, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(patience)
        with its:
            if is_loaded:
                self._popen: Process = Fork(partial(main_of_fork, os.getpid(), its.fileno()))
            else:
                null = subprocess.DEVNULL
                arguments = f"{os.getpid()}, {_ahead}", its.fileno(), null, null
                self._popen = _python("fork_server_main", *arguments)
        self.pid = self._popen.pid

    @property
    def is_alive(self) -> bool:
        """Whether it can start workers."""
        return self._popen.poll() is None

    def start(self, what: str, *descriptors: int) -> None:
        """Request a process with these standard streams, a worker by its number; do not wait."""
        with self._lock:
            socket.send_fds(self._socket, [what.encode()], list(descriptors))

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
        self._server, self.parent, self._number = server, server.pid, next(_numbers)
        its_requests, requests = os.pipe()
        answers, its_answers = os.pipe()
        self.requests: BinaryIO = os.fdopen(requests, "wb")
        self.answers: BinaryIO = os.fdopen(answers, "rb")
        try:
            server.start(str(self._number), its_requests, its_answers, printed)
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


Started: TypeAlias = DirectProcess | ForkedProcess
"""A process that reads requests from one pipe and writes answers to another.

`parent` is the process whose exit must end it.
"""


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
