"""Do slow work in threads, while the kernel handles messages."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tvm_ffi import _ffi_api

from irviz.errors import CancelledRunError
from irviz.worker.supervisor import RUNS, TRIES, CancelledError, Worker

_LOOK_SECONDS = 0.05
_SWITCH_SECONDS = 0.001
"""How long a thread may keep the GIL: the kernel needs it several times for each message."""
_ACCESSORS = (
    *("ArrayGetItem", "ArraySize", "MapGetItem", "MapSize", "MapCount"),
    *("MapGetItemOrMissing", "MapForwardIterFunctor"),
)
for _name in _ACCESSORS:
    # TVM releases the GIL for each element that is read, and takes it back before another thread
    # has woken up, so the kernel would wait for as long as a thread reads a module
    getattr(_ffi_api, _name).release_gil = False


class AbandonedError(BaseException):
    """The job of this thread is no longer wanted; nothing failed."""


class Line:
    """Jobs that are done one at a time, in order, because they use the same worker process.

    All explorers of a kernel share the process: their jobs wait for each other, and each explorer
    cancels only its own.
    """

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.turn = threading.Lock()
        """Held by the job whose turn it is."""
        self.ending = threading.Lock()
        """Held while a turn ends or is cancelled, so that the right job is cancelled."""


RUN, CHANGE = Line(RUNS), Line(TRIES)
"""Jobs that run stages, and those that transform or open modules."""


class Jobs(NamedTuple):
    """The current job of a line, its progress, and the waiting jobs."""

    name: str = ""
    progress: str = ""
    waiting: int = 0
    key: Hashable = None
    keys: frozenset[Hashable] = frozenset()


def _ignore(_value: object) -> None:
    """Do nothing with a value."""


@dataclass(eq=False)
class Job:
    """Work that a runner does; the work gets the job, to report progress and to notice its end."""

    key: Hashable
    work: Work
    done: Callable[[Any], None] = _ignore
    told: Callable[[Any], None] = _ignore
    name: str = ""
    line: Line | None = None
    progress: str = ""
    has_turn: bool = False
    cancelled: threading.Event = field(default_factory=threading.Event)
    pass_on: Callable[..., None] = _ignore
    """Passes what the job tells on to the kernel's thread."""

    @property
    def place(self) -> Hashable:
        """The line, or else the key: only one job at a time is done for a place."""
        return self.line or self.key

    def check(self) -> None:
        """Raise AbandonedError if the job is no longer wanted."""
        if self.cancelled.is_set():
            raise AbandonedError

    def tell(self, value: object) -> None:
        """Report progress, or a part of the result; raise AbandonedError if it is not wanted."""
        self.check()
        self.pass_on(value)

    def cancel(self) -> None:
        """End the job; only if it has its turn, the worker does something for it."""
        self.cancelled.set()
        if self.line is not None:
            with self.line.ending:
                if self.has_turn:
                    self.line.worker.cancel()


Work = Callable[[Job], object]


def in_steps(steps: Iterator[object]) -> Work:
    """Return work that tells each of these values, and ends after any step if not wanted."""

    def work(job: Job) -> None:
        for value in steps:
            job.tell(value)

    return work


class Runner:
    """Does jobs in threads if a kernel's event loop runs, else at once.

    Progress and results are delivered in the thread that began the job, between its other work.
    `changed` is called whenever a job of a line begins, reports progress or ends. `failed` gets the
    exceptions that no other function gets. `lock` is held while the explorer's state changes and is
    shown: JupyterLab lets the kernel answer widgets in one thread while another runs cells.
    """

    def __init__(
        self, changed: Callable[[Line], None], failed: Callable[[Exception], None]
    ) -> None:
        self.lock = threading.RLock()
        self._changed, self._failed = changed, failed
        self._waiting: defaultdict[Line, deque[Job]] = defaultdict(deque)
        self._current: dict[Hashable, Job] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def pending(self, line: Line) -> list[Job]:
        """Return the running and the waiting jobs of a line that were not cancelled."""
        current = self._current.get(line)
        jobs = [*([current] if current else []), *self._waiting[line]]
        return [job for job in jobs if not job.cancelled.is_set()]

    def jobs(self, line: Line) -> Jobs:
        """Describe the running and the waiting jobs of a line."""
        current, waiting = self._current.get(line), len(self._waiting[line])
        keys = frozenset(job.key for job in self.pending(line))
        if current is None:
            return Jobs(waiting=waiting, keys=keys)
        return Jobs(current.name, current.progress, waiting, current.key, keys)

    def queue(
        self,
        line: Line,
        key: Hashable,
        name: str,
        work: Work,
        done: Callable[[object], None],
        *,
        wait: float = 0.0,
        first: bool = False,
    ) -> None:
        """Do a job after the others of the line, and call `done` with what it returns or raises.

        Jobs with the same key are the same: one that is running or waiting is not queued again.

        Args:
            wait: For how many seconds the kernel waits for the job: switching threads takes longer
                than some jobs.
            first: Whether it is done before the jobs that wait.
        """
        self._forget_if_closed()
        if key in self.jobs(line).keys:
            return

        def told(words: str) -> None:
            job.progress = words
            self._changed(line)

        job = Job(key, work, done, told, name, line)
        add = self._waiting[line].appendleft if first else self._waiting[line].append
        add(job)
        if line in self._current:
            self._safely(self._changed, line)
        else:
            self._next(line, wait)

    def replace(
        self,
        key: Hashable,
        work: Work,
        done: Callable[[Any], None] = _ignore,
        told: Callable[[Any], None] = _ignore,
        *,
        wait: float = 0.0,
        delay: float | None = None,
    ) -> None:
        """Do a job in place of an earlier one with the same key, which reports nothing more.

        `done` gets the result, and `told` what the work tells before that.
        Work with a `delay` begins after this many seconds, and is not done without a loop.
        """
        self._forget_if_closed()
        self.drop(key)
        job = Job(key, work, done, told)
        if delay is None:
            self._begin(job, wait)
            return
        with contextlib.suppress(RuntimeError):  # no kernel: nobody looks meanwhile
            asyncio.get_running_loop().call_later(delay, self._in_lock, self._begin, job)
            self._current[key] = job

    def drop(self, key: Hashable) -> None:
        """Forget the job with this key."""
        if job := self._current.pop(key, None):
            job.cancel()

    def cancel(self, line: Line) -> None:
        """Cancel the running job of a line and forget the waiting ones."""
        self._waiting[line].clear()
        if job := self._current.get(line):
            job.progress = "cancelling"
            job.cancel()
        self._safely(self._changed, line)

    def close(self) -> None:
        """Cancel everything."""
        self._waiting.clear()
        for job in self._current.values():
            job.cancel()

    def _next(self, line: Line, wait: float = 0.0) -> None:
        while self._waiting[line] and line not in self._current:
            self._begin(self._waiting[line].popleft(), wait)

    def _begin(self, job: Job, wait: float = 0.0) -> None:
        if job.cancelled.is_set():  # while it was delayed
            return
        self._current[job.place] = job
        if job.line is not None:
            self._safely(self._changed, job.line)
        try:
            self._loop = loop = asyncio.get_running_loop()
        except RuntimeError:  # no kernel: nothing else is to be done meanwhile
            self._do_at_once(job)
            return
        job.pass_on = lambda value: self._soon(loop, self._hear, job, value)
        thread = threading.Thread(target=self._do, args=(loop, job), name="irviz job", daemon=True)
        thread.start()
        if wait:
            thread.join(wait)

    def _do_at_once(self, job: Job) -> None:
        job.pass_on = lambda value: self._hear(job, value)
        try:
            answer = _answer(job)
        except BaseException:  # Ctrl-C: nothing is under way any more
            self._waiting.clear()
            self._current.clear()
            raise
        self._end(job, answer)

    def _do(self, loop: asyncio.AbstractEventLoop, job: Job) -> None:
        answer: object
        try:
            with _often_switched:
                answer = _answer(job)
        except BaseException as failure:  # a function may end its thread: not the explorer
            answer = failure
        self._soon(loop, self._end, job, answer)

    def _soon(
        self, loop: asyncio.AbstractEventLoop, call: Callable[..., None], *given: Any
    ) -> None:
        """Call a method in the loop's thread, unless the kernel is ending."""
        with contextlib.suppress(RuntimeError):  # it is closed
            loop.call_soon_threadsafe(self._in_lock, call, *given)

    def _in_lock(self, call: Callable[..., None], *given: Any) -> None:
        with self.lock:
            call(*given)

    def _hear(self, job: Job, value: object) -> None:
        if not job.cancelled.is_set():
            self._safely(job.told, value)

    def _end(self, job: Job, answer: object) -> None:
        if self._current.get(job.place) is not job:  # another one took its place
            return
        del self._current[job.place]
        is_cancelled = job.cancelled.is_set()
        if job.line is not None:
            failure = CancelledError("it was cancelled")
            self._safely(job.done, failure if is_cancelled else answer)
            self._safely(self._changed, job.line)
            self._next(job.line)
        elif isinstance(answer, Exception) and not is_cancelled:
            self._failed(answer)
        elif not isinstance(answer, BaseException) and not is_cancelled:
            self._safely(job.done, answer)

    def _safely(self, call: Callable[[Any], None], value: object) -> None:
        """Call a function and report what it raises, which would otherwise be lost."""
        try:
            call(value)
        except Exception as failure:
            self._failed(failure)

    def _forget_if_closed(self) -> None:
        """Start over if the kernel's loop has ended; running jobs are not reported."""
        if self._loop is not None and self._loop.is_closed():
            self._loop = None
            self._waiting.clear()
            self._current.clear()


def was_cancelled(answer: object) -> bool:
    """Tell whether a result means that the job was cancelled."""
    return isinstance(answer, CancelledError | CancelledRunError)


def _answer(job: Job) -> object:
    """Return what a job returns or raises, once it is its turn."""
    try:
        return job.work(job) if job.line is None else _in_turn(job, job.line)
    except (Exception, AbandonedError) as failure:  # whatever it is, the explorer lives on
        return failure


def _in_turn(job: Job, line: Line) -> object:
    if not line.turn.acquire(blocking=False):
        job.tell("waiting for what another explorer runs")
        while not line.turn.acquire(timeout=_LOOK_SECONDS):
            job.check()
    try:
        job.has_turn = True
        job.check()
        return job.work(job)
    finally:
        with line.ending:
            job.has_turn = False
        line.turn.release()


class _OftenSwitched:
    """A block in which Python switches threads often; blocks of several threads may overlap."""

    def __init__(self) -> None:
        self._lock, self._blocks, self._usual = threading.Lock(), 0, sys.getswitchinterval()

    def __enter__(self) -> None:
        with self._lock:
            if not self._blocks:
                self._usual = sys.getswitchinterval()
                sys.setswitchinterval(_SWITCH_SECONDS)
            self._blocks += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._blocks -= 1
            if not self._blocks:
                sys.setswitchinterval(self._usual)


_often_switched = _OftenSwitched()
