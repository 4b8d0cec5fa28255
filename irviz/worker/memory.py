"""How much memory a call may take."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

_SHARE = 0.8
_CGROUP = Path("/sys/fs/cgroup")


def available() -> int | None:
    """Return the bytes that a call may take when nothing else is said, None for no limit.

    That is four fifths of what is free, in this container if it has a limit of its own.
    """
    free = [found for found in (_free_here(), _free_in_container()) if found is not None]
    return int(min(free) * _SHARE) if free else None


@contextlib.contextmanager
def limited(nbytes: int | None) -> Iterator[None]:
    """Let this process take so many bytes more than it has; what asks for more gets MemoryError.

    What it shares with other processes is not counted, nor what these take. Without effect where
    the system has no such limit, as outside of Linux.
    """
    if nbytes is None or not sys.platform.startswith("linux"):
        yield
        return
    import resource

    before = resource.getrlimit(resource.RLIMIT_DATA)
    most = _taken() + nbytes
    if before[1] != resource.RLIM_INFINITY:
        most = min(most, before[1])
    resource.setrlimit(resource.RLIMIT_DATA, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def _taken() -> int:
    """Return the bytes of data that this process has, as the limit counts them."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[5]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _free_here() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    found = [line.split() for line in lines if line.startswith("MemAvailable:")]
    return int(found[0][1]) * 1024 if found else None


def _free_in_container() -> int | None:
    try:
        most = (_CGROUP / "memory.max").read_text(encoding="ascii").strip()
        taken = (_CGROUP / "memory.current").read_text(encoding="ascii").strip()
    except OSError:
        return None
    if not most.isdecimal():
        return None
    return min(max(int(most) - int(taken) + _kept_of_files(), 0), int(most))


def _kept_of_files() -> int:
    """Return the bytes of files that the system keeps in memory until it needs that."""
    try:
        lines = (_CGROUP / "memory.stat").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("inactive_file "))
