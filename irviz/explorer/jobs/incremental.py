"""Take the steps of slow work in a thread, while the kernel does other things."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Generic, TypeVar

from tvm_ffi import _ffi_api

from irviz.explorer.jobs.job_queue import soon

Value = TypeVar("Value")

_ACCESSORS = (
    *("ArrayGetItem", "ArraySize", "MapGetItem", "MapSize", "MapCount"),
    *("MapGetItemOrMissing", "MapForwardIterFunctor"),
)
for _name in _ACCESSORS:
    # TVM releases the GIL for each element that is read, and takes it back before another thread
    # has woken up, so the kernel would wait for as long as a thread reads a module
    getattr(_ffi_api, _name).release_gil = False

_thread = threading.local()
"""In a thread that takes steps, `is_wanted` tells whether they are still wanted."""


_SWITCH_SECONDS = 0.001
"""How long a thread may keep the GIL: the kernel needs it several times for each message."""


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


class AbandonedError(BaseException):
    """The step that this thread takes is no longer wanted; nothing failed."""


def check_wanted() -> None:
    """Raise AbandonedError in a thread whose steps are no longer wanted."""
    is_wanted: Callable[[], bool] | None = getattr(_thread, "is_wanted", None)
    if is_wanted is not None and not is_wanted():
        raise AbandonedError


class Incremental(Generic[Value]):
    """Takes the steps of the latest request, in a thread if a kernel's event loop runs.

    Without a loop, all steps are taken immediately. The results of steps are passed on in the
    kernel's thread until there is another request; the running step then ends at its next call of
    `check_wanted`.
    """

    def __init__(self, shown: Callable[[Value], None]) -> None:
        self._shown = shown
        self._wanted: Iterator[Value] = iter(())

    def follow(self, steps: Iterator[Value], at_once: int = 1, wait: float = 0.0) -> None:
        """Pass on the results of these steps, and nothing more of earlier ones.

        `at_once` steps are taken before this returns, and any that finish within `wait` seconds.
        """
        self._wanted = steps
        for value in islice(steps, at_once):
            self._shown(value)
        if not self._begin(steps, wait):  # no kernel: nothing else is to be done meanwhile
            for value in steps:
                self._shown(value)

    def follow_later(self, steps: Iterator[Value]) -> None:
        """Like `follow`, but take no step immediately, and none without a loop."""
        self._wanted = steps
        self._begin(steps)

    def leave(self) -> None:
        """Stop passing on results."""
        self._wanted = iter(())

    def _begin(self, steps: Iterator[Value], wait: float = 0.0) -> bool:
        """Take the steps in a thread, if there is a loop."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return False
        work = threading.Thread(
            target=self._go_on, args=(loop, steps), name="irviz steps", daemon=True
        )
        work.start()
        if wait:
            work.join(wait)
        return True

    def _go_on(self, loop: asyncio.AbstractEventLoop, steps: Iterator[Value]) -> None:
        _thread.is_wanted = lambda: self._wanted is steps
        try:
            with _often_switched:
                for value in steps:
                    soon(loop, self._pass_on, steps, value)
                    check_wanted()
        except AbandonedError:
            return
        except Exception as failure:  # told by the loop, as what its own calls raise
            soon(loop, _raise, failure)

    def _pass_on(self, steps: Iterator[Value], value: Value) -> None:
        if self._wanted is steps:
            self._shown(value)


def _raise(failure: Exception) -> None:
    raise failure
