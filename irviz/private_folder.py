"""Folders of this user that no other user can read, write or exchange.

A path is walked from the root by descriptors, and each folder on it is checked when it is open. So
nobody can exchange a folder between its check and its use.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
from contextlib import suppress
from functools import cache
from pathlib import Path

_log = logging.getLogger(__name__)


def open_private_folder(folder: Path) -> int:
    """Return a descriptor of a private folder, which is made with its parents if it is missing.

    Raises:
        OSError: It cannot be made, or another user can read it, or write to it or a folder above.
    """
    if not hasattr(os, "geteuid"):
        raise OSError(errno.ENOSYS, "this system does not tell whose it is", str(folder))
    if not folder.is_absolute():
        raise OSError(errno.ENOENT, "it is no full path, as without a home", str(folder))
    path = Path(os.path.realpath(folder.parent), folder.name)
    inner = os.open(path.anchor, os.O_RDONLY | os.O_DIRECTORY)
    for one in (*reversed(path.parents[:-1]), path):
        outer = inner
        try:
            _check(os.fstat(outer), one.parent)
            inner = _opened(one, outer)
        finally:
            os.close(outer)
    try:
        _check(os.fstat(inner), path, is_inmost=True)
        return os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=inner)
    finally:
        os.close(inner)


def private_folder(folder: Path) -> Path:
    """Return a folder that is made and checked as above; on Windows it is only made."""
    if os.name == "nt":
        folder.mkdir(parents=True, exist_ok=True)
    else:
        os.close(open_private_folder(folder))
    return folder


def say_not_kept(what: str, failure: Exception) -> None:
    """Log once, and why, that something is not kept."""
    words = str(failure)
    if isinstance(failure, OSError):
        words = f"{failure.filename!r} cannot be used ({failure.strerror})"
    _log_once(f"irviz keeps no {what}: {words}")


_log_once = cache(_log.warning)


def _opened(path: Path, outer: int) -> int:
    """Open or make a folder in another one; what may only be entered is opened without reading."""
    flags = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW
    try:
        with suppress(FileNotFoundError):
            return os.open(path.name, flags, dir_fd=outer)
        with suppress(FileExistsError):  # another process made it just now
            os.mkdir(path.name, 0o700, dir_fd=outer)
        return os.open(path.name, flags, dir_fd=outer)
    except OSError as failure:
        raise OSError(failure.errno, failure.strerror, str(path)) from None


def _check(info: os.stat_result, path: Path, *, is_inmost: bool = False) -> None:
    """Raise OSError if other users can change a folder, or enter the inmost one.

    Where there are access control lists, the mode of the group has all that they allow to others.
    """
    own = os.geteuid()
    if info.st_uid not in (own, own if is_inmost else 0):
        raise OSError(errno.EPERM, "it belongs to another user", str(path))
    if is_inmost and info.st_mode & 0o077:
        raise OSError(errno.EPERM, "others may enter it: delete it", str(path))
    if info.st_mode & 0o022 and not info.st_mode & stat.S_ISVTX:
        words = "its group or others may write to it: see chmod go-w"
        raise OSError(errno.EPERM, words, str(path))
