"""Compiled kernels on disk, in a private folder of bounded size; no file is loaded unchecked.

A library is named by the hash of its contents, and for each kernel in it a small file, named by the
kernel's key, has the name of the library. Loading a library runs code, so it is loaded only from a
folder that nobody else can write to, and only if its contents have the hash that its name says. The
folder is opened once, and the library that is loaded is a copy of the hashed one, in memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import stat
import tempfile
import time
from collections.abc import Collection, Iterator
from functools import cache
from itertools import count
from pathlib import Path

import platformdirs

from irviz.private_folder import open_private_folder, say_not_kept

MOST_BYTES = 256 * 2**20
"""The size limit of the folder; beyond it, the least recently used files are deleted."""
FOLDER_VARIABLE = "IRVIZ_KERNELS"
_KEPT_SHARE = 0.75
_ABANDONED_SECONDS = 3600.0
"""After this time, temporary files are those of a process that ended."""
_KEY, _NAME = ".key", re.compile(r"[0-9a-f]{64}\.(so|ll)")
_MOST_NAME = 67
_numbers = count()


class KernelStore:
    """The libraries in a private folder, which is open; see `kernel_store`."""

    def __init__(self, folder: int, path: Path, most: int = MOST_BYTES) -> None:
        here = Path(f"/proc/{os.getpid()}/fd/{folder}")
        self._folder, self._path = folder, here if here.exists() else path
        self._most = most

    def library_of(self, key: str) -> str | None:
        """Return the name of the library that has a kernel, None for none."""
        with contextlib.suppress(OSError, ValueError):
            return self.read(f"{key}{_KEY}", _MOST_NAME).decode("ascii")
        return None

    def contents(self, name: str) -> bytes | None:
        """Return the contents of a library if they have the hash in its name."""
        if not _NAME.fullmatch(name):
            return None
        with contextlib.suppress(OSError):
            contents = self.read(name)
            if name.startswith(f"{_digest(contents)}."):
                os.utime(name, dir_fd=self._folder, follow_symlinks=False)
                return contents
        return None

    def add(self, keys: Collection[str], contents: bytes, suffix: str) -> None:
        """Keep a library with the kernels of these keys; raise OSError."""
        name = f"{_digest(contents)}{suffix}"
        self._write(name, contents)
        for key in keys:
            self._write(f"{key}{_KEY}", name.encode())

    @contextlib.contextmanager
    def temporary(self) -> Iterator[tuple[str, Path]]:
        """Yield the name of a new file in the folder and a path of it, and delete it at the end."""
        name = f".{secrets.token_hex(16)}"
        try:
            yield name, self._path / name
        finally:
            self._delete(name)

    def read(self, name: str, most: int = 0) -> bytes:
        """Return the contents of a regular file of this user; raise OSError for anything else."""
        most = most or self._most
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        with os.fdopen(os.open(name, flags, dir_fd=self._folder), "rb") as file:
            info = os.fstat(file.fileno())
            if not stat.S_ISREG(info.st_mode) or info.st_uid != os.geteuid() or info.st_size > most:
                raise OSError(f"{name} is not a file of this user of at most {most} bytes")
            return file.read(most)

    def trim(self) -> None:
        """Delete libraries until the folder is within its limit, the least recently used first."""
        with contextlib.suppress(OSError):
            self._trim()

    def clear(self) -> None:
        """Delete everything."""
        for name in self._files():
            self._delete(name)

    def _trim(self) -> None:
        found = self._files()
        libraries = {name: info for name, info in found.items() if _NAME.fullmatch(name)}
        for name, info in found.items():
            is_abandoned = time.time() - info.st_mtime > _ABANDONED_SECONDS
            if name not in libraries and not name.endswith(_KEY) and is_abandoned:
                self._delete(name)
        size = sum(info.st_size for info in found.values())
        if size <= self._most:
            return
        for name, info in sorted(libraries.items(), key=lambda pair: pair[1].st_mtime):
            if size <= self._most * _KEPT_SHARE:
                break
            self._delete(name)
            del libraries[name]
            size -= info.st_size
        for name in found:
            if name.endswith(_KEY) and self.library_of(name.removesuffix(_KEY)) not in libraries:
                self._delete(name)

    def _files(self) -> dict[str, os.stat_result]:
        with os.scandir(self._folder) as found:
            return {one.name: one.stat(follow_symlinks=False) for one in found}

    def _write(self, name: str, contents: bytes) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with self.temporary() as (partial, _):
            with os.fdopen(os.open(partial, flags, 0o600, dir_fd=self._folder), "wb") as file:
                file.write(contents)
            os.rename(partial, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)

    def _delete(self, name: str) -> None:
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=self._folder)


@contextlib.contextmanager
def kernel_store() -> Iterator[KernelStore | None]:
    """Yield this user's store; None where no folder is safe from other users.

    The environment variable IRVIZ_KERNELS names another folder, or none if it is empty.
    """
    folder = _folder()
    try:
        descriptor = open_private_folder(folder) if folder else None
    except OSError:
        descriptor = None
    if folder is None or descriptor is None:
        yield None
        return
    try:
        yield KernelStore(descriptor, folder)
    finally:
        os.close(descriptor)


@cache
def say_if_none_are_kept() -> None:
    """Log once why compiled kernels are not kept, unless nobody wants them to be."""
    if folder := _folder():
        try:
            os.close(open_private_folder(folder))
        except OSError as failure:
            say_not_kept("compiled kernels", failure)


def sealed(contents: bytes) -> int:
    """Return a descriptor of a file in memory that nobody can change; raise OSError."""
    import fcntl  # which Windows has not

    descriptor = os.memfd_create("irviz", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            file.write(contents)
        seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def path_of(descriptor: int) -> str:
    """Return a new path of an open file: to dlopen, what has an equal path is the same library."""
    steps = f"{next(_numbers):b}".replace("0", "./").replace("1", ".//")
    return f"/proc/self/fd/{steps}{descriptor}"


@contextlib.contextmanager
def path_with(contents: bytes) -> Iterator[str]:
    """Yield a path of a file with these contents that no other user can change; raise OSError."""
    if hasattr(os, "memfd_create"):
        descriptor = sealed(contents)
        try:
            yield path_of(descriptor)
        finally:
            os.close(descriptor)
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "library")
            path.write_bytes(contents)
            yield str(path)


def _folder() -> Path | None:
    name = os.environ.get(FOLDER_VARIABLE)
    if name == "":
        return None
    return Path(name) if name else platformdirs.user_cache_path("irviz") / "kernels"


def _digest(contents: bytes) -> str:
    return hashlib.sha256(contents).hexdigest()
