"""What the other process does: it loads TVM, tells what it does, and ends with its parent."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import TypeVar

import cloudpickle

from irviz.worker import printed, progress
from irviz.worker.memory import limited

Result = TypeVar("Result")

_LOOK_SECONDS = 0.5
_SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux
_failure: Exception | None = None
"""What kept this process from being ready."""


def begin(prepare: Callable[[], None], parent: int, page: str, output: str) -> None:
    """Make this process one of `parent`'s, which reads its page and what it prints."""
    global _failure
    _end_with(parent)
    printed.attach(output)
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 2)  # TVM tells the whole stack when it is ended
    os.close(silent)
    progress.attach(page)
    try:
        prepare()
    except BaseException as failure:  # what is asked first says it: here nobody would hear it
        _failure = _told(failure)


def ready() -> None:
    """Raise what kept this process from being ready."""
    if _failure is not None:
        raise _failure


def load_tvm() -> None:
    """Import TVM without torch, which it would load wherever that is installed."""
    sys.modules.setdefault("torch", None)  # type: ignore[arg-type] # how Python says: there is none
    try:
        import tvm.relax
        import tvm.s_tir  # noqa: F401
    finally:
        if sys.modules["torch"] is None:
            del sys.modules["torch"]


def within(memory: int | None, function: Callable[..., Result], *arguments: object) -> Result:
    """Call a function that may take so many bytes of memory."""
    try:
        with limited(memory):
            return function(*arguments)
    except BaseException as failure:
        _let_go(failure)
        raise _told(failure) from failure.__cause__
    finally:
        printed.flush()


def _told(failure: BaseException) -> Exception:
    """Return an exception that can be raised elsewhere: some cannot be sent, or would end that."""
    if isinstance(failure, Exception):
        with contextlib.suppress(Exception):  # whatever is wrong with it
            pickle.loads(cloudpickle.dumps(failure))  # noqa: S301 - it was made here
            return failure
    return RuntimeError(f"{type(failure).__name__}: {failure}")


def _let_go(failure: BaseException) -> None:
    """Free what the functions that failed held, which may be most of the memory."""
    chain: list[BaseException | None] = [failure]
    met = set[int]()
    while chain:
        one = chain.pop()
        if one is not None and id(one) not in met:
            met.add(id(one))
            traceback.clear_frames(one.__traceback__)
            chain += [one.__cause__, one.__context__]


def _end_with(parent: int) -> None:
    """End this process when the parent is gone, however that ended.

    A thread that looks is too little: it waits while a call holds Python's lock. So the system is
    asked for a signal, where it has such a one; that comes when the thread ends which started this
    process, and lasts therefore (`process.py`).
    """
    if sys.platform.startswith("linux"):
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:  # it was gone before that
        os._exit(1)
    threading.Thread(target=_look_after, args=(parent,), daemon=True).start()


def _look_after(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_SECONDS)
    os._exit(1)
