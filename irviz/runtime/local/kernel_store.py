"""Compiled kernels on disk, in a private folder of bounded size; no file is loaded unchecked.

A library is named by the hash of its contents, and for each kernel in it a small file, named by the
kernel's key, has the name of the library. Loading a library runs code, so it is loaded only from a
folder that nobody else can write to, and only if its contents have the hash that its name says.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Collection, Iterator
from pathlib import Path

import platformdirs

from irviz.atomic_write import atomic_write

MOST_BYTES = 256 * 2**20
"""The size limit of the folder; beyond it, the least recently used files are deleted."""
FOLDER_VARIABLE = "IRVIZ_KERNELS"
_KEPT_SHARE = 0.75
_ABANDONED_SECONDS = 3600.0
"""After this time, temporary files are those of a process that ended."""
_KEY, _NAME = ".key", re.compile(r"[0-9a-f]{64}\.(so|ll)")
_MOST_NAME = 67


class KernelStore:
    """The libraries in a folder, which exists and is private; see `kernel_store`."""

    def __init__(self, folder: Path, most: int = MOST_BYTES) -> None:
        self.folder, self._most = folder, most

    def library_of(self, key: str) -> str | None:
        """Return the name of the library that has a kernel, None for none."""
        with contextlib.suppress(OSError, ValueError):
            return _contents(self.folder / f"{key}{_KEY}", _MOST_NAME).decode("ascii")
        return None

    def contents(self, name: str) -> bytes | None:
        """Return the contents of a library if they have the hash in its name."""
        if not _NAME.fullmatch(name):
            return None
        with contextlib.suppress(OSError):
            contents = _contents(self.folder / name, self._most)
            if name.startswith(f"{_digest(contents)}."):
                os.utime(self.folder / name)
                return contents
        return None

    def add(self, keys: Collection[str], contents: bytes, suffix: str) -> None:
        """Keep a library with the kernels of these keys; raise OSError."""
        name = f"{_digest(contents)}{suffix}"
        with atomic_write(self.folder / name) as partial:
            partial.write_bytes(contents)
        for key in keys:
            with atomic_write(self.folder / f"{key}{_KEY}") as partial:
                partial.write_text(name, encoding="ascii")

    @contextlib.contextmanager
    def workspace(self) -> Iterator[Path]:
        """Yield a temporary folder in the folder; raise OSError."""
        with tempfile.TemporaryDirectory(dir=self.folder, ignore_cleanup_errors=True) as path:
            yield Path(path)

    def trim(self) -> None:
        """Delete libraries until the folder is within its limit, the least recently used first."""
        with contextlib.suppress(OSError):
            self._trim()

    def clear(self) -> None:
        """Delete everything."""
        for path in list(self.folder.iterdir()):
            _delete(path)

    def _trim(self) -> None:
        found = [(one, one.lstat()) for one in self.folder.iterdir()]
        libraries = {one: info for one, info in found if _NAME.fullmatch(one.name)}
        for one, info in found:
            is_abandoned = time.time() - info.st_mtime > _ABANDONED_SECONDS
            if one not in libraries and one.suffix != _KEY and is_abandoned:
                _delete(one)
        size = sum(info.st_size for _, info in found)
        if size <= self._most:
            return
        for one, info in sorted(libraries.items(), key=lambda pair: pair[1].st_mtime):
            if size <= self._most * _KEPT_SHARE:
                break
            _delete(one)
            size -= info.st_size
        for one, _ in found:
            if (
                one.suffix == _KEY
                and not (self.folder / one.read_text("ascii", "replace")).exists()
            ):
                _delete(one)


def kernel_store() -> KernelStore | None:
    """Return this user's store; None where no folder is safe from other users.

    The environment variable IRVIZ_KERNELS names another folder, or none if it is empty.
    """
    folder = Path(
        os.environ.get(FOLDER_VARIABLE, platformdirs.user_cache_path("irviz") / "kernels")
    )
    if not folder.is_absolute():
        return None
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return KernelStore(folder) if _is_private(folder) else None
    except OSError:
        return None


def _is_private(folder: Path) -> bool:
    """Tell whether only this user can read and write a folder, and nobody can exchange it."""
    if not hasattr(os, "geteuid"):
        return False
    here, own = folder.lstat(), os.geteuid()
    if not stat.S_ISDIR(here.st_mode) or here.st_uid != own or here.st_mode & 0o077:
        return False
    return not any(_is_shared(one.stat()) for one in folder.resolve().parents)


def _is_shared(folder: os.stat_result) -> bool:
    """Tell whether another user can exchange what is in a folder."""
    is_own_group = folder.st_gid in (0, os.getegid())
    writers = stat.S_IWOTH if is_own_group else stat.S_IWOTH | stat.S_IWGRP
    is_writable = bool(folder.st_mode & writers) and not folder.st_mode & stat.S_ISVTX
    return is_writable or folder.st_uid not in (0, os.geteuid())


def _contents(path: Path, most: int) -> bytes:
    """Return the contents of a regular file of this user; raise OSError for anything else."""
    number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(number, "rb") as file:
        info = os.fstat(number)
        if not stat.S_ISREG(info.st_mode) or info.st_uid != os.geteuid() or info.st_size > most:
            raise OSError(f"{path} is not a file of this user of at most {most} bytes")
        return file.read(most)


def _digest(contents: bytes) -> str:
    return hashlib.sha256(contents).hexdigest()


def _delete(path: Path) -> None:
    with contextlib.suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
