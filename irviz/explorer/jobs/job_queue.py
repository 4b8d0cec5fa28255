"""What takes long is done beside the kernel, so that it can be watched and cancelled."""

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
"""Does something, and tells in words how far it is."""
Done = Callable[[object], None]
"""Is given what a job returned, or the exception that it raised."""

_LOOK_SECONDS = 0.05
_turn = threading.Lock()
"""Whose turn it is: all explorers of a kernel run stages in one other process."""
_turns = threading.Lock()
"""Held while a turn ends, and while what has it is cancelled: else another's might be."""


@dataclass(frozen=True)
class Jobs:
    """What is being done beside the kernel: the current job, its progress, and what waits."""

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
    """Does one job after another in a thread, where a kernel's event loop runs; else at once.

    Jobs of several such wait for each other, and each can be cancelled by its own alone. What is
    told, and what is done with an answer, happens in the kernel's own thread, between its other
    work. `changed` is called whenever a job begins, tells something or ends, `failed` with an
    exception of this or of what is done with an answer.
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
        """What is under way, and what waits."""
        current, waiting = self._current, self._waiting
        tasks = [*waiting, current] if current else waiting
        keys = frozenset(task.key for task in tasks if not task.is_cancelled)
        if current is None:
            return Jobs(waiting=len(waiting), keys=keys)
        return Jobs(current.name, self._words, len(waiting), current.key, keys)

    def do(self, key: Hashable, name: str, job: Job, done: Done) -> None:
        """Do a job when those before it are done, and then something with its answer.

        Jobs of one key are the same: one that is under way or waits is not asked for again.
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
        """Cancel the job that is under way, and forget those that wait."""
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
        """Call something; nobody else would hear of what it raises."""
        try:
            call(*arguments)
        except Exception as failure:
            self._failed(failure)

    def _forget_if_closed(self) -> None:
        """Begin anew where the kernel's loop ended: what was under way is told to nobody."""
        if self._loop is not None and self._loop.is_closed():
            self._loop, self._current, self._words = None, None, ""
            self._waiting.clear()


def was_cancelled(answer: object) -> bool:
    """Tell whether an answer says that the job was cancelled, by whomever."""
    return isinstance(answer, CancelledError | CancelledRunError)


def _in_turn(task: _Task, on_progress: OnProgress) -> object:
    """Return what a job returns or raises, when no other explorer does anything."""
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
