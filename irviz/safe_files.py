"""Write files completely or not at all, and keep folders that no other user can enter."""

from __future__ import annotations

import errno
import logging
import os
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from irviz.errors import SaveError


def target_path(path: str | os.PathLike[str], suffixes: Sequence[str]) -> Path:
    """Return the path of a file that can be written.

    Raises:
        SaveError: Its suffix is none of these, its directory does not exist, or it is something
            else than a regular file.
    """
    target = Path(path)
    if target.suffix.lower() not in suffixes:
        known = " or ".join(suffixes)
        raise SaveError(f"cannot save {str(target)!r}: give a name ending in {known}")
    if not target.parent.is_dir():
        folder = str(target.parent)
        raise SaveError(f"cannot save {str(target)!r}: there is no directory {folder!r}")
    _regular_file(target)
    return target


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a new file in the folder of a file, and replace the file by it at the end of the block.

    Its name cannot be guessed, and it is never a link. It gets the file's mode, or that of any new
    file. A link to a file stays a link. After an exception the file is unchanged, and the new one
    is deleted.

    Raises:
        SaveError: The file cannot be written, or is not a regular file.
    """
    try:
        target = _regular_file(Path(path))
        number, name = tempfile.mkstemp(f"{target.suffix}.part", ".", target.parent)
        os.close(number)
        partial = Path(name)
        try:
            yield partial
            partial.chmod(target.stat().st_mode if target.exists() else 0o666 & ~_umask())
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
    except SaveError:
        raise
    except (OSError, ValueError) as failure:
        reason = getattr(failure, "strerror", None) or str(failure)
        raise _refusal(Path(path), reason) from failure


def _regular_file(path: Path) -> Path:
    """Return the file that is at a path or behind a link there, or will be; raise SaveError."""
    if path.is_symlink() and (owner := path.lstat().st_uid) and owner != os.geteuid():
        raise _refusal(path, "it is a link of another user")
    target = Path(os.path.realpath(path))
    if target.is_symlink() or (path.exists() and not path.is_file()):
        raise _refusal(path, "it is not a regular file")
    return target


def _refusal(path: Path, reason: str) -> SaveError:
    return SaveError(
        f"{str(path)!r} cannot be written ({reason}): give the path of a file in a folder that "
        "this user may write to, on a disk that has room for it"
    )


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


# --- Folders of this user that no other user can read, write or exchange -------------------------


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
