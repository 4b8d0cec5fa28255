"""What the other process prints: it writes a file, this one reads it.

So what was printed before a process died is there as well.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
import weakref

from irviz.worker.noise import MOST_BYTES
from irviz.worker.shared_file import made, remove

_LINE_BUFFERED = 1  # _IOLBF of C's stdio


class Printed:
    """The file as the process that reads it has it."""

    def __init__(self) -> None:
        self._descriptor, self.path = made()
        self._first: bytes | None = None
        self._lock = threading.Lock()
        # not as Python ends: a call may still be under way in another thread
        weakref.finalize(self, os.close, self._descriptor).atexit = False

    def cut(self) -> None:
        """Drop what is past the first 64 KB, so that a flood does not fill the disk."""
        with self._lock:
            self._cut()

    def take(self) -> str:
        """Return what was printed since this was asked last, at most 64 KB of it."""
        with self._lock:
            self._cut()
            first, self._first = self._first, None
            told = os.pread(self._descriptor, MOST_BYTES, 0) if first is None else first
            os.ftruncate(self._descriptor, 0)
        end = "" if first is None else f"\n… only the first {MOST_BYTES // 1024} KB are shown\n"
        return told.decode(errors="replace") + end

    def close(self) -> None:
        """Take the file's name; what is in it can still be read."""
        remove(self.path)

    def _cut(self) -> None:
        if os.fstat(self._descriptor).st_size > MOST_BYTES:
            if self._first is None:
                self._first = os.pread(self._descriptor, MOST_BYTES, 0)
            os.ftruncate(self._descriptor, 0)


def attach(path: str) -> None:
    """Let all that this process prints go to the file at `path`, each line at once.

    Nobody else can open the file then.
    """
    file = os.open(path, os.O_WRONLY | os.O_APPEND)
    os.dup2(file, 1)
    os.close(file)
    remove(path)
    with contextlib.suppress(AttributeError):  # there may be no such stream
        sys.stdout.reconfigure(  # type: ignore[union-attr]
            encoding="utf-8", errors="replace", line_buffering=True
        )
    with contextlib.suppress(OSError, ValueError, AttributeError):  # a C library of another kind
        libc = ctypes.CDLL(None)
        libc.setvbuf(ctypes.c_void_p.in_dll(libc, "stdout"), None, _LINE_BUFFERED, 0)


def flush() -> None:
    """Write what C and Python still hold back of what was printed."""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # a closed stream, or none
        sys.stdout.flush()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).fflush(None)
