"""Pause Python's cyclic garbage collector where it would make others wait."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
import time
from collections.abc import Callable, Iterator

_NEVER = 1_000_000


@contextlib.contextmanager
def gc_paused() -> Iterator[None]:
    """Pause the cyclic garbage collector, which would traverse all values again and again.

    It is not paused in a thread, where the collection afterwards would make all others wait.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


async def collect_when_idle(last_used: Callable[[], float], idle_seconds: float = 10.0) -> None:
    """Collect all garbage of this process only while nobody uses it; this does not end.

    A full collection makes everything else wait, for 65 ms after the imports alone, which are
    therefore left out of it.

    Args:
        last_used: Returns when the process was last used, in seconds of `time.monotonic`.
    """
    gc.freeze()
    gc.set_threshold(*gc.get_threshold()[:2], _NEVER)
    collected = 0.0
    while True:
        await asyncio.sleep(idle_seconds / 2)
        if collected < last_used() < time.monotonic() - idle_seconds:
            gc.collect()
            collected = time.monotonic()
