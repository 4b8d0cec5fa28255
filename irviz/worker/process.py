"""One other process, and what it shares with this one."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import loky
from loky.backend.process import LokyProcess
from loky.backend.utils import kill_process_tree
from loky.process_executor import TerminatedWorkerError

from irviz.worker.inside import begin, ready
from irviz.worker.printed import Printed
from irviz.worker.progress import Progress

Result = TypeVar("Result")

_ENVIRONMENT = {
    "PYTHONSAFEPATH": "1",  # else a file of the user's folder could stand in for a module
    "TVM_FFI_DISABLE_TORCH_C_DLPACK": "1",  # which would load torch
    "LOKY_MAX_MEMORY_LEAK_SIZE": "1e18",  # what is built is kept: that is no leak
}
_alive: weakref.WeakSet[Process] = weakref.WeakSet()
_threads: dict[int, ThreadPoolExecutor] = {}
_lock = threading.RLock()
_inherited: list[object] = []
"""What belongs to the process that this one was forked from, kept so that nothing ends it."""


class Process:
    """A process that was started; `ready` is done as soon as it can be called."""

    def __init__(self, prepare: Callable[[], None]) -> None:
        self.progress, self.printed = Progress(), Printed()
        self._ending, self._is_ended = threading.Lock(), False
        self._others: list[LokyProcess] = []
        self._executor = loky.ProcessPoolExecutor(
            max_workers=1,
            timeout=None,
            env=_ENVIRONMENT,
            initializer=begin,
            initargs=(prepare, os.getpid(), self.progress.path, self.printed.path),
        )
        try:
            self.ready: Future[None] = _lasting_thread().submit(self._started).result()
        except BaseException:
            self.end()
            raise

    def submit(self, function: Callable[..., Result], *arguments: object) -> Future[Result]:
        """Ask for a call."""
        future: Future[Result] = self._executor.submit(function, *arguments)
        return future

    def end(self) -> None:
        """End the process and all that it started, whatever they do; any thread may."""
        with self._ending:
            if self._is_ended:
                return
            self._is_ended = True
            for one in self._others:
                with contextlib.suppress(Exception):  # it is gone already
                    kill_process_tree(one)
            with contextlib.suppress(Exception):
                self._executor.shutdown(wait=True, kill_workers=True)
            self.progress.close()
            self.printed.close()

    def ending(self, failure: BaseException) -> str:
        """Say in one half of a sentence why a call has no answer, after `end`."""
        cause = str(failure.__cause__)
        is_cut_off = "EOFError" in cause or "end of file" in cause
        if not isinstance(failure, TerminatedWorkerError) and not is_cut_off:
            return "it gave an answer that cannot be read"
        return f"it ended the process that tried it{self.how()}"

    def how(self) -> str:
        """Return the signal that ended the process, or its exit code, in brackets."""
        codes = [one.exitcode for one in self._others if one.exitcode is not None]
        return "".join(f" ({_named(code)})" for code in codes)

    def _started(self) -> Future[None]:
        future: Future[None] = self._executor.submit(ready)
        self._others = list(self._executor._processes.values())
        # only the other process writes answers: else one that is cut off would never end
        self._executor._result_queue._writer.close()
        with _lock:
            if not _alive:
                threading._register_atexit(_end_all)  # type: ignore[attr-defined]
            _alive.add(self)
        return future


def _named(code: int) -> str:
    """Return the name of a signal, which is a code below zero, or tell the exit code."""
    with contextlib.suppress(ValueError):
        return signal.Signals(-code).name
    return f"exit code {code}"


def _lasting_thread() -> ThreadPoolExecutor:
    """Return a thread that lasts as long as this process: what it starts ends when it does."""
    with _lock:
        if os.getpid() not in _threads:
            _threads[os.getpid()] = ThreadPoolExecutor(1, "irviz-starts")
        return _threads[os.getpid()]


def _end_all() -> None:
    """End what runs: loky would wait for it when Python ends.

    What is told first here is done last, so this is told after loky told the same.
    """
    for process in list(_alive):
        process.end()


def _forget() -> None:
    """Begin anew in a fork, which has neither the threads nor the processes."""
    global _lock
    _lock = threading.RLock()
    _inherited.extend(_alive)
    _alive.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
