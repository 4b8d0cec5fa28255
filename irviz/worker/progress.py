"""What the other process is doing, in a few words: it writes them, this one reads them.

The words stand in a page of memory that both have. So they can be read while the other process is
busy, and after it has ended.
"""

from __future__ import annotations

import mmap
import os

from irviz.worker.shared_file import made, remove

_SIZE = 256
_END = b"\n"
_page: mmap.mmap | None = None
"""The page that this process writes into, where it is a worker."""


class Progress:
    """The page as the process that reads it has it."""

    def __init__(self) -> None:
        descriptor, self.path = made()
        os.write(descriptor, b"\0" * _SIZE)
        self._page = mmap.mmap(descriptor, _SIZE, access=mmap.ACCESS_READ)
        os.close(descriptor)

    def words(self) -> str:
        """Return what was told last, "" when nothing was."""
        told, end, _ = self._page[:].partition(_END)
        return told.decode(errors="replace") if end else ""

    def close(self) -> None:
        """Take the page's name; what stands in it can still be read."""
        remove(self.path)


def attach(path: str) -> None:
    """Let this process tell what it does in the page at `path`, which nobody else can open then."""
    global _page
    with open(path, "r+b") as file:  # noqa: PTH123 - a descriptor is what mmap wants
        _page = mmap.mmap(file.fileno(), _SIZE)
    remove(path)


def tell(words: str) -> None:
    """Say what this process does now; nobody hears it where it is no worker."""
    if _page is not None:
        told = words.encode(errors="replace").replace(_END, b" ")[: _SIZE - 1] + _END
        _page[: len(told)] = told
