"""Progress messages of a worker, in a page of memory that it shares with its parent.

The parent can read the last message while the worker is busy, and after it has crashed.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import tempfile

_SIZE = 256
_END = b"\n"
_page: mmap.mmap | None = None
"""The page that this process writes to, if it is a worker."""


class ProgressReader:
    """The parent's side of the page; its file is at `path` until the worker has opened it."""

    def __init__(self) -> None:
        descriptor, self.path = tempfile.mkstemp(prefix="irviz-")
        os.write(descriptor, b"\0" * _SIZE)
        self._page = mmap.mmap(descriptor, _SIZE, access=mmap.ACCESS_READ)
        os.close(descriptor)

    def message(self) -> str:
        """Return the last message, "" if there is none."""
        message, end, _ = self._page[:].partition(_END)
        return message.decode(errors="replace") if end else ""

    def close(self) -> None:
        """Delete the file; the page can still be read."""
        unlink(self.path)


def attach_progress(path: str) -> None:
    """Write progress messages of this process to the page at `path`, and delete the file."""
    global _page
    with open(path, "r+b") as file:  # noqa: PTH123 - mmap needs a descriptor
        _page = mmap.mmap(file.fileno(), _SIZE)
    unlink(path)


def report_progress(message: str) -> None:
    """Set the progress message, if this process is a worker."""
    if _page is not None:
        line = message.encode(errors="replace").replace(_END, b" ")[: _SIZE - 1] + _END
        _page[: len(line)] = line


def unlink(path: str) -> None:
    """Delete a file whose content two processes share, if that has not happened yet."""
    with contextlib.suppress(OSError):  # deleted already, or still open on Windows
        os.unlink(path)  # noqa: PTH108
