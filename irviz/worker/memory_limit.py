"""The memory limit of a call."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

_SHARE = 0.8
_CGROUP = Path("/sys/fs/cgroup")


def default_memory_limit() -> int | None:
    """Return the default memory limit of a call in bytes, None for no limit.

    It is four fifths of the free memory, that of the container if it has a limit.
    """
    free = [size for size in (_free_memory(), _free_in_container()) if size is not None]
    return int(min(free) * _SHARE) if free else None


@contextlib.contextmanager
def limited_memory(nbytes: int | None) -> Iterator[None]:
    """Let this process allocate so many more bytes; beyond that, allocations raise MemoryError.

    Shared memory and other processes are not counted. This has an effect only on Linux.
    """
    if nbytes is None or not sys.platform.startswith("linux"):
        yield
        return
    import resource

    before = resource.getrlimit(resource.RLIMIT_DATA)
    most = _data_bytes() + nbytes
    if before[1] != resource.RLIM_INFINITY:
        most = min(most, before[1])
    resource.setrlimit(resource.RLIMIT_DATA, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def _data_bytes() -> int:
    """Return the size of this process's data, as RLIMIT_DATA counts it."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[5]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _free_memory() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    available = [line.split() for line in lines if line.startswith("MemAvailable:")]
    return int(available[0][1]) * 1024 if available else None


def _free_in_container() -> int | None:
    try:
        most = (_CGROUP / "memory.max").read_text(encoding="ascii").strip()
        taken = (_CGROUP / "memory.current").read_text(encoding="ascii").strip()
    except OSError:
        return None
    if not most.isdecimal():
        return None
    return min(max(int(most) - int(taken) + _reclaimable(), 0), int(most))


def _reclaimable() -> int:
    """Return the bytes of cached files, which the system frees when it needs memory."""
    try:
        lines = (_CGROUP / "memory.stat").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("inactive_file "))
