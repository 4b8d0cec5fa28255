"""The memory limit of a call."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

_SHARE = 0.8
_NO_MEMORY = "std::bad_alloc"
"""The messages with which TVM's C++ code reports out of memory in a RuntimeError."""
CONTAINER = Path("/sys/fs/cgroup")
"""The folder in which Linux keeps the limits of the container that this process is in."""


def default_memory_limit(container: Path = CONTAINER) -> int | None:
    """Return the default memory limit of a call in bytes, None for no limit.

    It is four fifths of the free memory.
    """
    free = free_memory(container)
    return None if free is None else int(free * _SHARE)


def free_memory(container: Path = CONTAINER) -> int | None:
    """Return the free memory in bytes, or that of a limited container; None if unknown."""
    free = [size for size in (_free_in_system(), _free_in_container(container)) if size is not None]
    return min(free, default=None)


@contextlib.contextmanager
def limited_memory(nbytes: int | None) -> Iterator[None]:
    """Limit this process to allocating `nbytes` more; beyond that, MemoryError is raised.

    Inside another limit, the lower one applies. Shared memory and other processes are not counted.
    This has an effect only on Linux.
    """
    if nbytes is None or not sys.platform.startswith("linux"):
        yield
        return
    import resource

    before = resource.getrlimit(resource.RLIMIT_DATA)
    pages = (
        Path("/proc/self/statm").read_text(encoding="ascii").split()[5]
    )  # of this process's data
    most = int(pages) * os.sysconf("SC_PAGE_SIZE") + nbytes
    most = min([most, *(limit for limit in before if limit != resource.RLIM_INFINITY)])
    resource.setrlimit(resource.RLIMIT_DATA, (most, before[1]))
    try:
        yield
    except RuntimeError as failure:
        if _NO_MEMORY in str(failure):
            raise MemoryError(_NO_MEMORY) from failure
        raise
    finally:
        with contextlib.suppress(ValueError):  # the limit of a confined process is final
            resource.setrlimit(resource.RLIMIT_DATA, before)


def _free_in_system() -> int | None:
    kilobytes = _numbers(Path("/proc/meminfo")).get("MemAvailable:")
    return None if kilobytes is None else kilobytes * 1024


def _free_in_container(folder: Path) -> int | None:
    try:
        most = (folder / "memory.max").read_text(encoding="ascii").strip()
        taken = (folder / "memory.current").read_text(encoding="ascii").strip()
    except OSError:
        return None
    # the system frees cached files when it needs memory
    cached = _numbers(folder / "memory.stat").get("inactive_file", 0)
    return min(max(int(most) - int(taken) + cached, 0), int(most)) if most.isdecimal() else None


def _numbers(path: Path) -> dict[str, int]:
    """Return the first number on each line by the word before it, {} if the file does not exist."""
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except OSError:
        return {}
    return {words[0]: int(words[1]) for words in map(str.split, lines)}
