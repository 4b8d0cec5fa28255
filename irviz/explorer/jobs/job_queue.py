"""Run slow work next to the kernel, with progress and cancellation."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial

from irviz.errors import CancelledRunError
from irviz.worker.supervisor import CancelledError, OnProgress

Job = Callable[[OnProgress], object]
"""A job, which gets a function that reports progress as text."""
Done = Callable[[object], None]
"""Gets the result of a job, or the exception that it raised."""

_LOOK_SECONDS = 0.05
_turn = threading.Lock()
"""Held by the queue whose turn it is: all explorers of a kernel share one worker process."""
_turns = threading.Lock()
"""Held while a turn ends, and while a turn is cancelled, so that the right job is cancelled."""


@dataclass(frozen=True)
class Jobs:
    """The current job, its progress, and the waiting jobs."""

    name: str = ""
    progress: str = ""
    waiting: int = 0
    key: Hashable = None
    keys: frozenset[Hashable] = frozenset()


@dataclass(eq=False)
class _Task:
    key: Hashable
    name: str
    job: Job
    done: Done
    has_turn: bool = False
    is_cancelled: bool = False


class JobQueue:
    """Runs jobs in sequence, in a thread if a kernel's event loop runs, else immediately.

    Jobs of several queues wait for each other, and each queue cancels only its own. Progress and
    results are delivered in the kernel's thread, between its other work. `changed` is called
    whenever a job begins, reports progress or ends; `failed` gets exceptions raised by it or by
    handling a result.
    """

    def __init__(
        self,
        cancel: Callable[[], None],
        changed: Callable[[], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._cancel, self._changed, self._failed = cancel, changed, failed
        self._waiting: deque[_Task] = deque()
        self._current: _Task | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._words = ""

    @property
    def jobs(self) -> Jobs:
        """The running and the waiting jobs."""
        current, waiting = self._current, self._waiting
        tasks = [*waiting, current] if current else waiting
        keys = frozenset(task.key for task in tasks if not task.is_cancelled)
        if current is None:
            return Jobs(waiting=len(waiting), keys=keys)
        return Jobs(current.name, self._words, len(waiting), current.key, keys)

    def do(self, key: Hashable, name: str, job: Job, done: Done) -> None:
        """Queue a job, and call `done` with its result.

        Jobs with the same key are the same: one that is running or waiting is not queued again.
        """
        self._forget_if_closed()
        if key in self.jobs.keys:
            return
        self._waiting.append(_Task(key, name, job, done))
        if self._current is not None:
            self._safely(self._changed)
            return
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:  # no kernel: nothing else is to be done meanwhile
            self._do_all()
        else:
            self._next(self._loop)

    def cancel(self) -> None:
        """Cancel the running job and forget the waiting ones."""
        self._waiting.clear()
        task = self._current
        if task is not None:
            task.is_cancelled, self._words = True, "cancelling"
            with _turns:
                if task.has_turn:
                    self._cancel()
        self._safely(self._changed)

    def _do_all(self) -> None:
        while self._waiting:
            task = self._begin()
            try:
                answer = _in_turn(task, partial(self._hear, task))
            except BaseException:  # Ctrl-C: nothing is under way any more
                self._waiting.clear()
                self._current = None
                raise
            self._end(task, answer)

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        task = self._begin()

        def on_progress(words: str) -> None:
            if task.is_cancelled:  # before the other process was called
                self._cancel()
            soon(loop, self._hear, task, words)

        def work() -> None:
            answer: object
            try:
                answer = _in_turn(task, on_progress)
            except BaseException as failure:  # a function may end its thread: not the explorer
                answer = failure
            soon(loop, self._finish, loop, task, answer)

        threading.Thread(target=work, name="irviz run", daemon=True).start()

    def _finish(self, loop: asyncio.AbstractEventLoop, task: _Task, answer: object) -> None:
        self._end(task, answer)
        if self._waiting and self._current is None:
            self._next(loop)

    def _begin(self) -> _Task:
        self._current, self._words = self._waiting.popleft(), ""
        self._safely(self._changed)
        return self._current

    def _end(self, task: _Task, answer: object) -> None:
        self._current, self._words = None, ""
        self._safely(task.done, CancelledError("it was cancelled") if task.is_cancelled else answer)
        self._safely(self._changed)

    def _hear(self, task: _Task, words: str) -> None:
        if task is self._current and not task.is_cancelled:
            self._words = words
            self._safely(self._changed)

    def _safely(self, call: Callable[..., None], *arguments: object) -> None:
        """Call a function and report what it raises, which would otherwise be lost."""
        try:
            call(*arguments)
        except Exception as failure:
            self._failed(failure)

    def _forget_if_closed(self) -> None:
        """Start over if the kernel's loop has ended; running jobs are not reported."""
        if self._loop is not None and self._loop.is_closed():
            self._loop, self._current, self._words = None, None, ""
            self._waiting.clear()


def was_cancelled(answer: object) -> bool:
    """Tell whether a result means that the job was cancelled."""
    return isinstance(answer, CancelledError | CancelledRunError)


def _in_turn(task: _Task, on_progress: OnProgress) -> object:
    """Wait for this queue's turn; return what a job returns or raises."""
    if not _turn.acquire(blocking=False):
        on_progress("waiting for what another explorer runs")
        while not _turn.acquire(timeout=_LOOK_SECONDS):
            if task.is_cancelled:
                return None
    try:
        task.has_turn = True
        return None if task.is_cancelled else task.job(on_progress)
    except Exception as failure:  # whatever it is, the explorer lives on
        return failure
    finally:
        with _turns:
            task.has_turn = False
        _turn.release()


def soon(loop: asyncio.AbstractEventLoop, call: Callable[..., None], *arguments: object) -> None:
    """Call something in the loop's thread, unless the kernel is ending."""
    with contextlib.suppress(RuntimeError):  # it is closed
        loop.call_soon_threadsafe(call, *arguments)
