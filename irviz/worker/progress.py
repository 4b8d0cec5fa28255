"""Send progress messages, and finally the answer, from a worker to its parent."""

from __future__ import annotations

import contextlib
import pickle
import threading
from typing import BinaryIO

_MAX_CHARACTERS = 256
_answers: BinaryIO | None = None
"""The pipe to the parent, if this process is a worker."""
_lock = threading.Lock()


def set_answers(answers: BinaryIO) -> None:
    """Make this process a worker that answers through a pipe."""
    global _answers
    _answers = answers


def send(item: str | bytes) -> None:
    """Send a progress message, or the pickle of an answer."""
    assert _answers is not None, "only a worker sends"
    with _lock:
        pickle.dump(item, _answers)
        _answers.flush()


def report_progress(message: str) -> None:
    """Set the progress message, if this process is a worker."""
    if _answers is not None:
        with contextlib.suppress(OSError):  # the parent is gone
            send(message[:_MAX_CHARACTERS].replace("\n", " "))
