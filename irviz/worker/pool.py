"""Other processes that do what might end a process.

Each is started ahead of need, serves one call after another, and is replaced when it dies, its
time is up or its call is cancelled. Functions and their arguments travel by cloudpickle.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future, wait
from concurrent.futures import CancelledError as _CancelledError
from typing import TypeVar

import loky
from loky.process_executor import ShutdownExecutorError as _ShutdownError

from irviz.worker.inside import prepare, within
from irviz.worker.progress import Progress

Result = TypeVar("Result")
Heard = Callable[[str], None]
"""Is told what the other process does, as often as that changes."""

SECONDS = 60.0
"""How long a call may take when nothing else is said."""
_LOOK_SECONDS = 0.05
_ENVIRONMENT = {
    "PYTHONSAFEPATH": "1",  # else a file of the user's folder could stand in for a module
    "TVM_FFI_DISABLE_TORCH_C_DLPACK": "1",  # which would load torch
}


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


class _TimeUpError(Exception):
    """The time that a call may take is up."""


class Worker:
    """One other process; `prepare` is what it does first, which may take `start_seconds`."""

    def __init__(
        self, prepare: Callable[[int, str], None] = prepare, start_seconds: float = SECONDS
    ) -> None:
        self._prepare, self._start_seconds = prepare, start_seconds
        self._calls, self._changes = threading.RLock(), threading.RLock()
        self._executor: loky.ProcessPoolExecutor | None = None
        self._progress: Progress | None = None
        self._owner = 0
        self._is_cancelled = threading.Event()

    def start(self) -> None:
        """Start the process if there is none, without waiting for it."""
        self._running().submit(os.getpid)

    def call(
        self,
        function: Callable[..., Result],
        *arguments: object,
        seconds: float = SECONDS,
        memory: int | None = None,
        heard: Heard | None = None,
    ) -> Result:
        """Call a function in the other process and return what it returns.

        What the function raises is raised here, such as MemoryError when it takes more than
        `memory` bytes. Raises CrashedError when the process ends before it answers, TimedOutError
        when that takes longer than `seconds`, CancelledError after `cancel`; the next call has a
        new process.
        """
        with self._calls:
            self._is_cancelled.clear()
            executor, progress = self._running(), self._progress
            try:
                self._answer(executor.submit(os.getpid), self._start_seconds, None)
                future = executor.submit(within, memory, function, *arguments)
                answer: Result = self._answer(future, seconds, heard)
                return answer
            except (_TimeUpError, _CancelledError, BrokenExecutor, _ShutdownError) as failure:
                doing = progress.words() if progress else ""
                self.stop()
                if self._is_cancelled.is_set():
                    raise CancelledError("it was cancelled", doing) from None
                if isinstance(failure, _TimeUpError):
                    raise TimedOutError(f"it took longer than {failure}", doing) from None
                words = f"it ended the process that tried it{_signal(failure)}"
                raise CrashedError(words, doing) from None
            except BaseException as failure:
                if not isinstance(failure, Exception):  # Ctrl-C: an answer is still to come
                    self.stop()
                raise

    def cancel(self) -> None:
        """End the call that is under way, if there is one; any thread may ask for it."""
        self._is_cancelled.set()
        self.stop()

    def stop(self) -> None:
        """End the process, whatever it does."""
        with self._changes:
            executor, self._executor = self._executor, None
            progress, self._progress = self._progress, None
        if executor is not None and self._owner == os.getpid():
            with contextlib.suppress(Exception):
                executor.shutdown(wait=True, kill_workers=True)
        if progress is not None:
            progress.close()

    def _answer(self, future: Future[Result], seconds: float, heard: Heard | None) -> Result:
        """Wait for an answer, and pass on meanwhile what the process says that it does."""
        deadline, last = time.monotonic() + seconds, ""
        while not wait([future], min(_LOOK_SECONDS, seconds)).done:
            if self._is_cancelled.is_set():
                raise _CancelledError
            if time.monotonic() >= deadline:
                raise _TimeUpError(f"{seconds:g} s and was stopped")
            progress = self._progress
            words = progress.words() if heard and progress else ""
            if heard and words != last:
                last = words
                heard(words)
        return future.result()

    def _running(self) -> loky.ProcessPoolExecutor:
        with self._changes:
            if self._executor is None or self._owner != os.getpid():  # a fork has no such process
                self._progress = Progress()
                self._executor = loky.ProcessPoolExecutor(
                    max_workers=1,
                    timeout=None,
                    env=_ENVIRONMENT,
                    initializer=self._prepare,
                    initargs=(os.getpid(), self._progress.path),
                )
                self._owner = os.getpid()
            return self._executor


TRIES = Worker()
"""Where transforms and library functions are tried, and single PrimFuncs run."""
RUNS = Worker()
"""Where whole functions run, which may take long: what is tried need not wait for that."""


def _signal(failure: BaseException) -> str:
    """Return the name of the signal that ended a process, as loky tells it."""
    text = str(failure)
    found = [one.name for one in signal.Signals if one.name in text]
    return f" ({found[0]})" if found else ""
