"""A zip archive of entries with known names: written whole, and read with nothing unpacked to disk.

What it declares is checked before it is read: how much it unpacks to, and what is in it.
"""

from __future__ import annotations

import os
import re
import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path

from irviz.loaders.numbers import brief
from irviz.loaders.tvm_json import LoadError
from irviz.model.whole_file import whole_file

INDEX, OBJECTS = "index.json", "objects.json"
_NAMES = re.compile(r"index\.json|objects\.json|arrays/(?:0|[1-9][0-9]{0,8})\.npy")
ROOM, RATIO = 1 << 28, 100
"""What an archive may unpack to: this many bytes, or this many times its own size."""
_START = b"PK\x03\x04"
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_IS_ENCRYPTED = 1
_AGAIN = "save the session again, or take a copy of the file"


class SessionFileError(LoadError):
    """A session that cannot be saved, or a file that holds none; the message says why."""


def array_entry(index: int) -> str:
    """Return the name of the entry of an array."""
    return f"arrays/{index}.npy"


def write_archive(path: str | os.PathLike[str], entries: Mapping[str, bytes]) -> Path:
    """Write entries to a file, whole or not at all; raise SessionFileError where that fails."""
    name = os.fspath(path)
    try:
        with whole_file(path) as partial:
            _write(partial, entries, zipfile.ZIP_DEFLATED)
            if not _is_plausible(partial.stat().st_size, sum(map(len, entries.values()))):
                # it packs so well that it would look like a bomb
                _write(partial, entries, zipfile.ZIP_STORED)
    except (OSError, ValueError) as failure:
        reason = getattr(failure, "strerror", None) or failure
        raise SessionFileError(
            f"{name!r} cannot be written ({reason}): give the path of a file in a folder that "
            "this user may write to"
        ) from failure
    return Path(path)


def _write(path: Path, entries: Mapping[str, bytes], method: int) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in entries.items():
            info = zipfile.ZipInfo(name)  # without the time, so that equal sessions are equal files
            # numbers pack badly, and slowly
            info.compress_type = method if name.endswith(".json") else zipfile.ZIP_STORED
            info.file_size = len(content)  # tells zipfile which header it needs
            with archive.open(info, "w") as file:
                file.write(content)


def read_archive(path: str | os.PathLike[str]) -> dict[str, bytes]:
    """Return the entries of a file; raise SessionFileError, in one sentence, for any other file."""
    name = os.fspath(path)
    try:
        # a pipe or a device may never end, so only a file is opened
        kind = Path(path).stat().st_mode
        if not stat.S_ISREG(kind):
            what = "a directory" if stat.S_ISDIR(kind) else "a device or pipe"
            raise SessionFileError(f"{name!r} is {what}: name a file that Session.save wrote")
        with Path(path).open("rb") as file:
            start = file.read(8)
            if not start.startswith(_START):
                what = f"it begins with {start!r}" if start else "it is empty"
                raise SessionFileError(_no_session(name, what))
            with zipfile.ZipFile(file) as archive:
                return _entries(name, archive, Path(path).stat().st_size)
    except SessionFileError:
        raise
    except OSError as failure:
        raise SessionFileError(
            f"{name!r} cannot be read ({failure.strerror or failure}): give the path of a file "
            "that Session.save wrote and that this user may read"
        ) from failure
    except Exception as failure:  # what damaged archives raise, zipfile leaves open
        raise SessionFileError(damaged(name, str(failure) or type(failure).__name__)) from failure


def damaged(name: str, why: str) -> str:
    """Say that a file is damaged, and why, in one sentence."""
    words = " ".join(why.split())
    return f"{name!r} is damaged or cut short: {words}; {_AGAIN}"


def _no_session(name: str, why: str) -> str:
    return f"{name!r} is no session: {why}, where a file that Session.save wrote was expected"


def _entries(name: str, archive: zipfile.ZipFile, size: int) -> dict[str, bytes]:
    members = archive.infolist()
    names = [member.filename for member in members]
    if INDEX not in names:
        raise SessionFileError(_no_session(name, f"it is a zip archive without {INDEX!r}"))
    for member in members:
        if not _NAMES.fullmatch(member.filename):
            raise SessionFileError(
                damaged(name, f"it has the entry {brief(member.filename)}, which no session has")
            )
        if names.count(member.filename) > 1:
            raise SessionFileError(damaged(name, f"it has {member.filename!r} more than once"))
        if member.compress_type not in _METHODS or member.flag_bits & _IS_ENCRYPTED:
            raise SessionFileError(
                damaged(name, f"{member.filename!r} is packed as Session.save never does")
            )
    declared = sum(member.file_size for member in members)
    if not _is_plausible(size, declared):
        raise SessionFileError(
            damaged(name, f"it would unpack from {size:,} to {declared:,} bytes")
        )
    # zipfile reads no more of an entry than the archive declares
    return {member.filename: archive.read(member) for member in members}


def _is_plausible(size: int, declared: int) -> bool:
    return declared <= max(ROOM, RATIO * size)
