"""Other processes that do what might end a process.

Each is started ahead of need, serves one call after another, and is replaced when it dies, its
time is up or its call is cancelled. Functions and their arguments travel by cloudpickle.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Future, wait
from concurrent.futures import CancelledError as _CancelledError
from typing import TypeVar

from loky.process_executor import ShutdownExecutorError as _ShutdownError

from irviz.worker.inside import load_tvm, ready, within
from irviz.worker.process import Process

Result = TypeVar("Result")
Heard = Callable[[str], None]
"""Is told what the other process does, as often as that changes."""

SECONDS = 60.0
"""How long a call may take when nothing else is said."""
_LOOK_SECONDS = 0.05
_NO_START = "the process for it could not be started"


class WorkerError(RuntimeError):
    """The other process gave no answer; the message says why. This process lives on.

    `doing` is what it was doing at last, in its own words.
    """

    def __init__(self, words: str, doing: str = "") -> None:
        super().__init__(words)
        self.doing = doing


class CrashedError(WorkerError):
    """The other process ended, or was ended from outside."""


class TimedOutError(WorkerError):
    """The other process took longer than allowed, and was ended."""


class CancelledError(WorkerError):
    """The call was cancelled, and the other process ended."""


class StartError(CrashedError):
    """The other process could not be started, or was not ready in time."""


class _TimeUpError(Exception):
    """The time that a call may take is up."""


class Worker:
    """One other process; `prepare` is what it does first, which may take `start_seconds`."""

    def __init__(
        self, prepare: Callable[[], None] = load_tvm, start_seconds: float = SECONDS
    ) -> None:
        self._prepare, self._start_seconds = prepare, start_seconds
        self._calls, self._changes = threading.RLock(), threading.RLock()
        self._process: Process | None = None
        self._is_busy, self._cancels = False, 0
        self.doing = ""
        """What the other process did at last, in its own words."""
        _workers.add(self)

    @property
    def cancels(self) -> int:
        """How often calls were cancelled until now."""
        return self._cancels

    def start(self) -> None:
        """Start the process if there is none, without waiting for it."""
        with contextlib.suppress(Exception):  # the call that needs it tries again, and says why
            self._running()

    def call(
        self,
        function: Callable[..., Result],
        *arguments: object,
        seconds: float = SECONDS,
        memory: int | None = None,
        heard: Heard | None = None,
        printed: Heard | None = None,
        since: int | None = None,
    ) -> Result:
        """Call a function in the other process and return what it returns.

        What the function raises is raised here, such as MemoryError when it takes more than
        `memory` bytes; what it printed is told to `printed`, also when it failed. Raises
        StartError when there is no process to call it, CrashedError when that ends before it
        answers, TimedOutError when that takes longer than `seconds`, CancelledError after
        `cancel`; the next call has a new process. Where a call is a part of something longer,
        `since` is what `cancels` was when that began.
        """
        since = self._cancels if since is None else since
        with self._turn(since):
            process = self._begun(since)
            try:
                future = process.submit(within, memory, function, *arguments)
                answer: Result = self._answer(process, future, seconds, heard)
                return answer
            except (_TimeUpError, _CancelledError, BrokenExecutor, _ShutdownError) as failure:
                self._end(process)
                raise self._told(failure, process, since) from None
            except BaseException as failure:
                if not isinstance(failure, Exception):  # Ctrl-C: an answer is still to come
                    self._end(process)
                raise
            finally:
                self.doing = process.progress.words()
                text = process.printed.take()
                if printed and text:
                    printed(text)

    def cancel(self) -> None:
        """End the call that is under way, and those that wait for it; any thread may ask."""
        with self._changes:
            self._cancels += 1
            if not self._is_busy:
                return
            process, self._process = self._process, None
        if process is not None:
            process.end()

    def stop(self) -> None:
        """End the process, whatever it does."""
        with self._changes:
            self._cancels += self._is_busy
            process, self._process = self._process, None
        if process is not None:
            process.end()

    @contextlib.contextmanager
    def _turn(self, since: int) -> Iterator[None]:
        """Wait until no other call is under way; from then on `cancel` is for this one."""
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
        if self._cancels != since:
            raise CancelledError("it was cancelled")

    def _begun(self, since: int) -> Process:
        """Return the process when it can be called; raise StartError or CancelledError."""
        while True:
            with self._changes:
                self._check(since)
                is_new = self._process is None
                try:
                    process = self._running()
                except (OSError, RuntimeError) as failure:  # no more processes, or Python ends
                    raise StartError(f"{_NO_START}: {_why(failure)}") from None
            try:
                self._answer(process, process.ready, self._start_seconds, None)
                self._answer(process, process.submit(ready), self._start_seconds, None)
            except BaseException as failure:
                self._end(process)
                if not isinstance(failure, Exception):
                    raise
                self._check(since)
                if is_new or not isinstance(failure, BrokenExecutor):
                    why = _why(failure) or f"it ended{process.how()}"
                    raise StartError(f"{_NO_START}: {why}") from None
                continue  # it died while nobody called it: that is no fault of this call
            process.printed.take()  # what is printed between calls is nobody's
            return process

    def _running(self) -> Process:
        with self._changes:
            if self._process is None:
                self._process = Process(self._prepare)
            return self._process

    def _end(self, process: Process) -> None:
        with self._changes:
            if self._process is process:
                self._process = None
        process.end()

    def _told(self, failure: BaseException, process: Process, since: int) -> WorkerError:
        """Say what became of a call that gave no answer."""
        doing = process.progress.words()
        if self._cancels != since:
            return CancelledError("it was cancelled", doing)
        if isinstance(failure, _TimeUpError):
            return TimedOutError(f"it {failure}", doing)
        return CrashedError(process.ending(failure), doing)

    def _answer(
        self, process: Process, future: Future[Result], seconds: float, heard: Heard | None
    ) -> Result:
        """Wait for an answer, and pass on meanwhile what the process says that it does."""
        deadline, last = time.monotonic() + seconds, ""
        while not wait([future], min(_LOOK_SECONDS, seconds)).done:
            if time.monotonic() >= deadline:
                raise _TimeUpError(f"took longer than {seconds:g} s and was stopped")
            process.printed.cut()
            words = process.progress.words() if heard else ""
            if heard and words != last:
                last = words
                heard(words)
        return future.result()

    def _begin_anew(self) -> None:
        """Have no process and no call under way, as in a fork, which has no other threads."""
        self._calls, self._changes = threading.RLock(), threading.RLock()
        self._process, self._is_busy = None, False


_workers: weakref.WeakSet[Worker] = weakref.WeakSet()

TRIES = Worker()
"""Where transforms and library functions are tried."""
RUNS = Worker()
"""Where stages run, which may take long: what is tried need not wait for that."""


def _why(failure: Exception) -> str:
    """Say why there is no process, "" where that has to say it itself."""
    if isinstance(failure, BrokenExecutor | _ShutdownError | _CancelledError):
        return ""
    if isinstance(failure, _TimeUpError):
        return f"that {failure}"
    return f"{type(failure).__name__}: {failure}"


def _forget() -> None:
    for worker in list(_workers):
        worker._begin_anew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
