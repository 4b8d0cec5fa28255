"""One other process that does what might end a process.

It is started ahead of need, serves one call after another, and is replaced when it dies or its
time is up. Functions and their arguments travel by cloudpickle.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import TypeVar

import loky

from irviz.worker.inside import prepare

Result = TypeVar("Result")

SECONDS = 60.0
"""How long a call may take when nothing else is said."""
_ENVIRONMENT = {
    "PYTHONSAFEPATH": "1",  # else a file of the user's folder could stand in for a module
    "TVM_FFI_DISABLE_TORCH_C_DLPACK": "1",  # which would load torch
}


class WorkerError(RuntimeError):
    """The other process gave no answer; the message says why. This process lives on."""


class CrashedError(WorkerError):
    """The other process ended, or was ended from outside."""


class TimedOutError(WorkerError):
    """The other process took longer than allowed, and was ended."""


_lock = threading.RLock()
_executor: loky.ProcessPoolExecutor | None = None
_owner = 0


def start() -> None:
    """Start the process if there is none, without waiting for it."""
    with _lock:
        _running().submit(os.getpid)


def call(function: Callable[..., Result], *arguments: object, seconds: float = SECONDS) -> Result:
    """Call a function in the other process and return what it returns.

    What the function raises is raised here. Raises CrashedError when the process ends before it
    answers and TimedOutError when that takes longer than `seconds`; the next call has a new one.
    """
    with _lock:
        executor = _running()
        try:
            executor.submit(os.getpid).result(SECONDS)  # the start is not counted
            result: Result = executor.submit(function, *arguments).result(seconds)
            return result
        except FutureTimeoutError:
            stop()
            raise TimedOutError(f"it took longer than {seconds:g} s and was stopped") from None
        except BrokenExecutor as failure:
            stop()
            raise CrashedError(f"it ended the process that tried it{_signal(failure)}") from None
        except BaseException as failure:
            if not isinstance(failure, Exception):  # Ctrl-C: an answer is still to come
                stop()
            raise


def stop() -> None:
    """End the process, whatever it does."""
    global _executor
    with _lock:
        executor, _executor = _executor, None
        if executor is not None and _owner == os.getpid():
            with contextlib.suppress(Exception):
                executor.shutdown(wait=True, kill_workers=True)


def _running() -> loky.ProcessPoolExecutor:
    global _executor, _owner
    if _executor is None or _owner != os.getpid():  # a fork has the variable, not the process
        _executor = loky.ProcessPoolExecutor(
            max_workers=1,
            timeout=None,
            env=_ENVIRONMENT,
            initializer=prepare,
            initargs=(os.getpid(),),
        )
        _owner = os.getpid()
    return _executor


def _signal(failure: BaseException) -> str:
    """Return the name of the signal that ended a process, as loky tells it."""
    text = str(failure)
    found = [one.name for one in signal.Signals if one.name in text]
    return f" ({found[0]})" if found else ""
