"""Do work in child processes, as TVM's passes and readers can end theirs."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Sequence
from typing import Any

_SECONDS = 60


def in_children(work: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Return the result for each item, as JSON has it, or None for one that ends its process."""
    done = _in_child(lambda: [work(item) for item in items])
    if done is not None or len(items) < 2:
        return done or [None] * len(items)
    half = len(items) // 2
    return in_children(work, items[:half]) + in_children(work, items[half:])


def _in_child(work: Callable[[], list[Any]]) -> list[Any] | None:
    """Return the result, as JSON has it, or None if the process ends or takes too long."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(_SECONDS)
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        with os.fdopen(writes, "w", encoding="utf-8") as answer:
            json.dump(work(), answer)
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads, encoding="utf-8") as answer:
        content = answer.read()
    _, status = os.waitpid(child, 0)
    return json.loads(content) if status == 0 else None
