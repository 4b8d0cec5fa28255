"""Limit the time and memory of an operation on stages of an opened file.

A small file can describe something large, such as functions that call each other twice: whatever
is done with it in the user's process ends within these limits, with an error.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import time
from collections.abc import Callable, Generator, Iterator
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

from irviz.errors import LimitError
from irviz.limits import (
    OPERATION_BYTES,
    OPERATION_SECONDS,
    PASSES_SECONDS,
    PassesTime,
    operation_passes,
)
from irviz.transforms.stage import Stage

_POLL_SECONDS = 0.02
_RAISE_AGAIN_SECONDS = 0.2  # Python drops what is raised in a finalizer or a callback of its GC
_STATM = Path("/proc/self/statm")
_raise_in_thread = ctypes.pythonapi.PyThreadState_SetAsyncExc
_raise_in_thread.argtypes = (ctypes.c_ulong, ctypes.py_object)

Value = TypeVar("Value")
Result = TypeVar("Result")
Method = TypeVar("Method", bound=Callable[..., Any])


class _StoppedError(BaseException):
    """Raised in the thread of an operation that exceeds a limit."""


class _OfThread(threading.local):
    """What applies in a thread: whether an operation is limited, and when several end."""

    is_limited = False
    end: float | None = None


_of_thread = _OfThread()


@contextlib.contextmanager
def limited(
    what: str, stage: Stage, *others: Stage, seconds: float | None = None
) -> Iterator[None]:
    """Limit an operation if one of the stages comes from an opened file.

    Inside another limited operation, the limits of that one apply.

    Args:
        what: The operation, as the subject of the error's sentence.
        seconds: The processor time that it may take, by default OPERATION_SECONDS.

    Raises:
        LimitError: It takes too much time or memory, or the module is nested too deeply.
    """
    if _of_thread.is_limited or not any(one.files for one in (stage, *others)):
        yield
        return
    seconds = OPERATION_SECONDS if seconds is None else seconds
    left = seconds if _of_thread.end is None else _of_thread.end - time.monotonic()
    passes = PassesTime(_passes_seconds(stage, *others))
    watch = _Watch(min(seconds, left), passes)
    _of_thread.is_limited = True
    unlimited = operation_passes.set(passes)
    try:
        try:
            watch.start()
            yield
        finally:
            watch.end()
    except (_StoppedError, Exception) as error:
        reason = watch.reason
        if isinstance(error, RecursionError):
            reason = reason or "needs functions, values or types that are nested too deeply"
        if not reason:
            raise
        raise LimitError(f"{what} {reason}: give a smaller module") from None
    finally:
        watch.end()  # once more, in case it was itself stopped
        operation_passes.reset(unlimited)
        _of_thread.is_limited = False


def _passes_seconds(*stages: Stage) -> float:
    """Return how long another process may lower stages: longer for files of many megabytes."""
    files = map(Path, frozenset[str]().union(*(stage.files for stage in stages)))
    size = sum(file.stat().st_size for file in files if file.is_file())
    return min(PASSES_SECONDS, OPERATION_SECONDS * max(1.0, size / 2**20))


def limits(what: str) -> Callable[[Method], Method]:
    """Return a decorator that limits a method of a session, as `limited` does."""

    def decorate(method: Method) -> Method:
        @wraps(method)
        def call(session: Any, *arguments: Any, **named: Any) -> Any:
            with limited(what, *session.stages):
                return method(session, *arguments, **named)

        return cast(Method, call)

    return decorate


def limited_together(
    steps: Generator[Value, None, Result], seconds: float
) -> Generator[Value, None, Result]:
    """Take steps whose limited operations have so much time together.

    It is the time of the wall, as layouts are made in another process. When it is used up, each
    operation raises LimitError at once.
    """
    left = seconds
    while True:
        began, before = time.monotonic(), _of_thread.end
        _of_thread.end = began + left
        try:
            step = next(steps)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        finally:
            _of_thread.end = before
            left -= time.monotonic() - began
        yield step


class _Watch:
    """Stops this thread's operation when it exceeds a limit; `reason` then says which."""

    def __init__(self, seconds: float, passes: PassesTime) -> None:
        self.reason = ""
        self._raised = 0.0
        self._most, self._memory = seconds, 0
        self._passes = passes
        self._thread = threading.get_ident()
        self._clock = _clock_of_this_thread()
        self._began = self._clock()

    def start(self) -> None:
        """Begin to watch; raise _StoppedError if there is no time left."""
        if self._most <= 0:
            self.reason = "is left out, as the operations before it took too long"
            raise _StoppedError
        _watcher.add(self)

    def end(self) -> None:
        """Stop watching; nothing is raised after that."""
        while True:
            try:
                _watcher.remove(self)
                for _ in range(2):  # Python raises what is pending when a loop begins again
                    pass
                return
            except _StoppedError:  # noqa: PERF203 - it is raised once or twice
                continue

    def seconds(self) -> float:
        """Return how long the operation has taken; time for passes counts as its share of that."""
        return self._clock() - self._began + self._passes.used * OPERATION_SECONDS

    def check(self, memory: int) -> None:
        """Stop the operation if it exceeds a limit. Another thread calls this."""
        self._memory = self._memory or memory
        if self.reason:
            pass
        elif self.seconds() > self._most:
            self.reason = f"takes more than {self._most:.2g} s of processor time"
        elif memory - self._memory > OPERATION_BYTES:
            self.reason = f"takes more than {OPERATION_BYTES >> 20} MB of memory"
        now = time.monotonic()
        if self.reason and now - self._raised > _RAISE_AGAIN_SECONDS:
            self._raised = now
            _raise_in_thread(self._thread, _StoppedError)


class _Watcher:
    """The thread that checks all operations; it starts with the first one."""

    def __init__(self) -> None:
        self._watches: list[_Watch] = []
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._is_started = False

    def add(self, watch: _Watch) -> None:
        """Check an operation from now on."""
        with self._changed:
            self._watches.append(watch)
            if not self._is_started:
                self._is_started = True
                threading.Thread(target=self._check_all, name="irviz limits", daemon=True).start()
            elif len(self._watches) == 1:
                self._changed.notify()

    def remove(self, watch: _Watch) -> None:
        """Check an operation no more."""
        with self._lock:  # which, unlike a condition, is never left locked by _StoppedError
            if watch in self._watches:
                self._watches.remove(watch)

    def _check_all(self) -> None:
        while True:
            with self._changed:
                while not self._watches:
                    self._changed.wait()
            memory = _memory()  # without the lock, for which operations wait
            with self._lock:
                for watch in list(self._watches):
                    watch.check(memory)
            time.sleep(_POLL_SECONDS)


def _begin_anew() -> None:
    """Let a forked process start its own thread, as that of its parent is not copied."""
    global _watcher
    _watcher = _Watcher()


_watcher = _Watcher()
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_begin_anew)


def _clock_of_this_thread() -> Callable[[], float]:
    """Return the clock of the processor time of this thread, of the wall if there is none."""
    try:
        clock = time.pthread_getcpuclockid(threading.get_ident())
    except AttributeError:  # macOS and Windows
        return time.monotonic
    return lambda: time.clock_gettime(clock)


def _memory() -> int:
    """Return the resident memory of this process in bytes, 0 if it is unknown."""
    try:
        return int(_STATM.read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
