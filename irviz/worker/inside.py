"""What the other process does first: it loads TVM, is silent, and ends with its parent."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from irviz.worker.memory import limited
from irviz.worker.progress import attach

Result = TypeVar("Result")

_LOOK_SECONDS = 0.5


def prepare(parent: int, page: str) -> None:
    """Make this process ready to be called by `parent`, and to tell what it does in a page."""
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)  # TVM tells the whole stack when it is ended
    os.close(silent)
    attach(page)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    _load_tvm()


def within(memory: int | None, function: Callable[..., Result], *arguments: object) -> Result:
    """Call a function that may take so many bytes of memory."""
    with limited(memory):
        return function(*arguments)


def _end_with(parent: int) -> None:
    """End this process when the parent is gone, however that ended."""
    while os.getppid() == parent:
        time.sleep(_LOOK_SECONDS)
    os._exit(1)


def _load_tvm() -> None:
    """Import TVM without torch, which it would load wherever that is installed."""
    sys.modules.setdefault("torch", None)  # type: ignore[arg-type] # how Python says: there is none
    try:
        import tvm.relax
        import tvm.s_tir  # noqa: F401
    finally:
        if sys.modules["torch"] is None:
            del sys.modules["torch"]
