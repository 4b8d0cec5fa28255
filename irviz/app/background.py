"""What takes long is done beside the kernel, so that it can be watched and cancelled."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from irviz.worker.pool import Heard

Job = Callable[[Heard], object]
"""Does something, and tells in words how far it is."""
Done = Callable[[object], None]
"""Is given what a job returned, or the exception that it raised."""


class _Task(NamedTuple):
    name: str
    job: Job
    done: Done


class Background:
    """Does one job after another in a thread, where a kernel's event loop runs; else at once.

    What is told, and what is done with an answer, happens in the kernel's own thread, between its
    other work. `changed` is called whenever a job begins, tells something or ends.
    """

    def __init__(self, cancel: Callable[[], None], changed: Callable[[], None]) -> None:
        self._cancel, self._changed = cancel, changed
        self._waiting: deque[_Task] = deque()
        self._current: _Task | None = None
        self.words = ""

    @property
    def name(self) -> str:
        """The name of the job that is under way, "" for none."""
        return self._current.name if self._current else ""

    @property
    def names(self) -> frozenset[str]:
        """The names of the jobs that are under way or wait."""
        waiting = {task.name for task in self._waiting}
        return frozenset(waiting | {self.name} if self.name else waiting)

    def do(self, name: str, job: Job, done: Done) -> None:
        """Do a job when those before it are done, and then something with its answer."""
        task = _Task(name, job, done)
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # no kernel: nothing else is to be done meanwhile
            self._begin(task)
            self._end(_answer(job, self._hear))
            return
        self._waiting.append(task)
        if self._current is None:
            self._next(loop)
        else:
            self._changed()

    def cancel(self) -> None:
        """Cancel the job that is under way, and forget those that wait."""
        self._waiting.clear()
        if self._current is not None:
            self._cancel()
        self._changed()

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        task = self._waiting.popleft()
        self._begin(task)

        def work() -> None:
            def heard(words: str) -> None:
                _soon(loop, self._hear, words)

            _soon(loop, self._finish, loop, _answer(task.job, heard))

        threading.Thread(target=work, name="irviz run", daemon=True).start()

    def _finish(self, loop: asyncio.AbstractEventLoop, answer: object) -> None:
        try:
            self._end(answer)
        finally:
            if self._waiting and self._current is None:
                self._next(loop)

    def _begin(self, task: _Task) -> None:
        self._current, self.words = task, ""
        self._changed()

    def _end(self, answer: object) -> None:
        task, self._current, self.words = self._current, None, ""
        assert task is not None, "it was begun"
        task.done(answer)
        self._changed()

    def _hear(self, words: str) -> None:
        self.words = words
        self._changed()


def _answer(job: Job, heard: Heard) -> object:
    """Return what a job returns or raises."""
    try:
        return job(heard)
    except Exception as failure:  # whatever it is, the explorer lives on
        return failure


def _soon(loop: asyncio.AbstractEventLoop, call: Callable[..., None], *arguments: object) -> None:
    """Call something in the loop's thread, unless the kernel is ending."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(call, *arguments)
