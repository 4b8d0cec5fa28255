"""What TVM's C++ side writes to standard error, caught and given as text."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import threading
from collections.abc import Iterator

MOST_BYTES = 64 * 1024
"""How much is kept of what is written."""
_lock = threading.RLock()


class Noise:
    """What was written meanwhile; `text` is there when the writing is over."""

    text: str = ""


@contextlib.contextmanager
def caught_noise() -> Iterator[Noise]:
    """Keep what the process writes to standard error meanwhile; at most 64 KB of it.

    The descriptor itself is turned aside, because C++ knows nothing of `sys.stderr`.
    """
    noise = Noise()
    with _lock, tempfile.TemporaryFile() as file:
        with contextlib.suppress(Exception):  # there may be none, or a closed one
            sys.stderr.flush()
        try:
            kept = os.dup(2)
        except OSError:  # a program without standard error has no noise
            yield noise
            return
        os.dup2(file.fileno(), 2)
        try:
            yield noise
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            file.seek(0)
            noise.text = file.read(MOST_BYTES).decode(errors="replace").strip()
