"""Capture what TVM's C++ code writes to standard error."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import sys
import tempfile
import threading
import weakref
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


# --- Capture what a worker prints in a file that its parent can read even after a crash ----------


_LINE_BUFFERED = 1  # _IOLBF of C's stdio


class StdoutCapture:
    """An anonymous file whose descriptor a worker gets."""

    def __init__(self) -> None:
        descriptor, path = tempfile.mkstemp(prefix="irviz-")
        os.close(descriptor)
        # a worker writes at the end, wherever that is after the parent has emptied the file
        self.descriptor = os.open(path, os.O_RDWR | os.O_APPEND)
        os.unlink(path)  # noqa: PTH108
        self._first: bytes | None = None
        self._lock = threading.RLock()
        # not at exit, when a call may still be running in another thread
        weakref.finalize(self, os.close, self.descriptor).atexit = False

    def truncate(self) -> None:
        """Drop everything past the first 64 KB, so that the disk does not fill up."""
        with self._lock:
            if os.fstat(self.descriptor).st_size > MOST_BYTES:
                if self._first is None:
                    self._first = os.pread(self.descriptor, MOST_BYTES, 0)
                os.ftruncate(self.descriptor, 0)

    def take(self) -> str:
        """Return the output since the last call, at most 64 KB of it."""
        with self._lock:
            self.truncate()
            first, self._first = self._first, None
            text = os.pread(self.descriptor, MOST_BYTES, 0) if first is None else first
            os.ftruncate(self.descriptor, 0)
        end = "" if first is None else f"\n… only the first {MOST_BYTES // 1024} KB are shown\n"
        return text.decode(errors="replace") + end


def buffer_lines() -> None:
    """Make Python and C write standard output line by line."""
    with contextlib.suppress(AttributeError):  # there may be no stream
        sys.stdout.reconfigure(  # type: ignore[union-attr]
            encoding="utf-8", errors="replace", line_buffering=True
        )
    with contextlib.suppress(OSError, ValueError, AttributeError):  # another C library
        libc = ctypes.CDLL(None)
        libc.setvbuf(ctypes.c_void_p.in_dll(libc, "stdout"), None, _LINE_BUFFERED, 0)


def flush_stdout() -> None:
    """Flush the output buffers of C and Python."""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # a closed stream, or none
        sys.stdout.flush()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).fflush(None)
