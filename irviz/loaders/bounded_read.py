"""Read a whole file, or open an archive, within the limits for files."""

from __future__ import annotations

import re
import stat
import zipfile
from io import BytesIO
from itertools import islice
from pathlib import Path

from irviz.loaders.file_errors import FileError, brief, one_line
from irviz.loaders.file_limits import MAX_ARRAYS, MAX_BYTES, memory_share

ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06")
"""The first bytes of a zip archive with entries, and of an empty one."""
_ENTRY = re.compile(rb"PK\x01\x02")
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_IS_ENCRYPTED = 1


def read_file(path: Path, most: int = MAX_BYTES) -> bytes:
    """Return the bytes of a file; raise FileError if it is unreadable or longer than `most`.

    Also raises FileError if the file would take too much of the free memory.
    """
    size = file_size(path)
    most = min(most, memory_share())
    if size > most:
        raise FileError(f"has {size:,} bytes, and at most {most:,} are read: give a smaller one")
    try:
        return path.read_bytes()
    except OSError as failure:
        raise _unreadable(failure) from failure


def open_archive(content: bytes) -> zipfile.ZipFile:
    """Open a zip archive; raise FileError if it would take too long to unpack for its size.

    The entries are counted before `zipfile` makes an object of each.
    """
    entries = list(islice(_ENTRY.finditer(content), MAX_ARRAYS + 1))
    if len(entries) > MAX_ARRAYS:
        raise FileError(f"has more than {MAX_ARRAYS:,} entries: save fewer arrays")
    archive = zipfile.ZipFile(BytesIO(content))
    for member in archive.infolist():
        if member.compress_type not in _METHODS or member.flag_bits & _IS_ENCRYPTED:
            raise FileError(
                f"has {brief(member.filename)} packed in another way than deflated: save it again"
            )
    return archive


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
    return FileError(f"cannot be read ({one_line(failure)}): check its name and permissions")
