"""Write and read a zip archive of known entries, without unpacking it to disk.

The declared names, methods and sizes are checked before anything is read.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from pathlib import Path

from irviz.atomic_write import atomic_write
from irviz.errors import LoadError, SaveError
from irviz.loaders.bounded_read import open_archive, read_file
from irviz.loaders.file_errors import FileError, brief, named, one_line
from irviz.loaders.file_kind import SESSION_ENTRY
from irviz.loaders.file_limits import check_unpacked, max_unpacked, memory_share

INDEX, OBJECTS = "index.json", "objects.json"
_SIGNATURE = b"PK\x03\x04"
_MAX_INDEX = 1 << 24
"""The largest index in bytes; that of a session with a thousand stages has a million."""
_AGAIN = "save the session again, or take a copy of the file"


class SessionFileError(LoadError, SaveError):
    """A session cannot be saved, or a file does not hold one; the message says why."""


def array_entry(index: int) -> str:
    """Return the entry name of an array."""
    return f"arrays/{index}.npy"


def write_archive(path: str | os.PathLike[str], entries: Mapping[str, bytes]) -> Path:
    """Write the entries to a file atomically; raise SaveError on failure."""
    with atomic_write(path) as partial:
        _write(partial, entries, zipfile.ZIP_DEFLATED)
        if sum(map(len, entries.values())) > max_unpacked(partial.stat().st_size):
            # it packs so well that it would be refused as a zip bomb
            _write(partial, entries, zipfile.ZIP_STORED)
    return Path(path)


def _write(path: Path, entries: Mapping[str, bytes], method: int) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in entries.items():
            info = zipfile.ZipInfo(name)  # without the time, so that equal sessions are equal files
            # numbers pack badly, and slowly
            info.compress_type = method if name.endswith(".json") else zipfile.ZIP_STORED
            info.file_size = len(content)  # determines the header that zipfile writes
            with archive.open(info, "w") as file:
                file.write(content)


def read_archive(path: str | os.PathLike[str]) -> dict[str, bytes]:
    """Return the entries of a file; raise SessionFileError for any other file."""
    name = os.fspath(path)
    try:
        with named(name, SessionFileError):
            content = read_file(Path(path), memory_share() // 2)  # arrays are copied once
            if not content.startswith(_SIGNATURE):
                reason = f"it begins with {content[:8]!r}" if content else "it is empty"
                raise SessionFileError(_not_a_session(name, reason))
            with open_archive(content) as archive:
                return _entries(name, archive, len(content))
    except SessionFileError:
        raise
    except Exception as failure:  # zipfile raises errors of any class for damaged archives
        raise SessionFileError(damaged(name, one_line(failure))) from failure


def damaged(name: str, reason: str) -> str:
    """Return the message for a damaged file, in one sentence."""
    return f"{name!r} is damaged or cut short: {' '.join(reason.split())}; {_AGAIN}"


def _not_a_session(name: str, reason: str) -> str:
    return f"{name!r} is not a session: {reason}, where a file that Session.save wrote was expected"


def _entries(name: str, archive: zipfile.ZipFile, size: int) -> dict[str, bytes]:
    members = archive.infolist()
    if all(member.filename != INDEX for member in members):
        raise SessionFileError(_not_a_session(name, f"it is a zip archive without {INDEX!r}"))
    seen: set[str] = set()
    for member in members:
        reason = ""
        if not SESSION_ENTRY.fullmatch(member.filename):
            reason = f"it has the entry {brief(member.filename)}, which no session has"
        elif member.filename in seen:
            reason = f"it has {member.filename!r} more than once"
        seen.add(member.filename)
        if reason:
            raise SessionFileError(damaged(name, reason))
    declared = sum(member.file_size for member in members)
    try:
        check_unpacked(size, declared, _AGAIN)
    except FileError as failure:
        raise SessionFileError(f"{name!r} {failure}") from None
    if (index := archive.getinfo(INDEX).file_size) > _MAX_INDEX:
        raise SessionFileError(
            damaged(name, f"its index has {index:,} bytes, and at most {_MAX_INDEX:,} are read")
        )
    # zipfile reads no more of an entry than the archive declares
    return {member.filename: archive.read(member) for member in members}
