"""What the other process does first: it loads TVM, is silent, and ends with its parent."""

from __future__ import annotations

import os
import sys
import threading
import time

_LOOK_SECONDS = 0.5


def prepare(parent: int) -> None:
    """Make this process ready to be called by `parent`."""
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)  # TVM tells the whole stack when it is ended
    os.close(silent)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    _load_tvm()


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
