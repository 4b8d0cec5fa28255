"""Read a file whole, if it is a regular file of a bounded size."""

from __future__ import annotations

import stat
from pathlib import Path

from irviz.errors import IrvizError

MAX_BYTES = 1 << 31
"""Larger files are not read."""


class FileError(IrvizError, ValueError):
    """A file that cannot be read; the message continues a sentence after the file's name."""


def read_file(path: Path, most: int | None = MAX_BYTES) -> bytes:
    """Return the bytes of a file; raise FileError if it cannot be read or has more than `most`."""
    try:
        size = file_size(path)
        if most is not None and size > most:
            raise FileError(
                f"has {size:,} bytes, and at most {most:,} are read: give a smaller one"
            )
        return path.read_bytes()
    except OSError as failure:
        raise _unreadable(failure) from failure


def file_size(path: Path) -> int:
    """Return the size of a regular file; raise FileError for anything else."""
    try:
        status = path.stat()
    except (OSError, ValueError) as failure:  # ValueError: the name contains a NUL
        raise _unreadable(failure) from failure
    if stat.S_ISDIR(status.st_mode):
        raise FileError("is a directory: give the path of a file in it")
    if not stat.S_ISREG(status.st_mode):  # reading a pipe or a device may never end
        raise FileError("is a device or a pipe: give the path of a regular file")
    return status.st_size


def _unreadable(failure: Exception) -> FileError:
    reason = getattr(failure, "strerror", None) or failure
    return FileError(f"cannot be read ({reason}): check its name and permissions")
