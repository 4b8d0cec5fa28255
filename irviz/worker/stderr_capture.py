"""Capture what TVM's C++ code writes to standard error."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
import threading
from collections.abc import Iterator

MOST_BYTES = 64 * 1024
"""The limit for captured output."""
_WARNING = re.compile(r"\[\d+:\d+:\d+\] \S+:\d+: Warning: (?P<words>.+)")
_lock = threading.RLock()


class StderrCapture:
    """The captured text, set when the block has ended."""

    text: str = ""


def warnings_in(text: str) -> tuple[str, ...]:
    """Return the warnings of TVM's C++ code in captured text, each once, without time and place."""
    found = (_WARNING.search(line) for line in text.splitlines())
    return tuple(dict.fromkeys(one["words"] for one in found if one))


@contextlib.contextmanager
def captured_stderr() -> Iterator[StderrCapture]:
    """Capture what the process writes to standard error inside the block, at most 64 KB.

    The file descriptor itself is redirected, because C++ does not use `sys.stderr`.
    """
    captured = StderrCapture()
    with _lock, tempfile.TemporaryFile() as file:
        with contextlib.suppress(Exception):  # there may be no stream, or a closed one
            sys.stderr.flush()
        try:
            kept = os.dup(2)
        except OSError:  # the program has no standard error
            yield captured
            return
        os.dup2(file.fileno(), 2)
        try:
            yield captured
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            file.seek(0)
            captured.text = file.read(MOST_BYTES).decode(errors="replace").strip()
