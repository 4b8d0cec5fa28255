"""Limit what a process may do: the memory of a call, and in a sandbox all but computing.

A sandbox is for code which nobody trusts, with what Linux offers to every user. Landlock without
any rule refuses every file, a seccomp filter every system call that computing does not need, and
limits of resources bound the rest. A confined process computes, and writes to the descriptors that
it kept; it starts nothing, opens nothing and reaches nobody. Where one of these is missing, nothing
is confined, and `can_confine` says so.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
import struct
import sys
from collections.abc import Collection, Iterator
from functools import lru_cache
from pathlib import Path

from irviz.errors import memory_errors

if sys.platform != "win32":
    import resource  # a confined process cannot

VARIABLE = "IRVIZ_SANDBOX"
"""The environment variable that switches the sandbox off, if it is "0"."""

_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""The column of a machine in the tables of numbers, and its name for a filter."""
_FREE = {
    "read": (0, 63), "write": (1, 64), "close": (3, 57), "fstat": (5, 80), "lseek": (8, 62),
    "mprotect": (10, 226), "munmap": (11, 215), "brk": (12, 214), "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139), "pread64": (17, 67),
    "pwrite64": (18, 68), "readv": (19, 65), "writev": (20, 66), "sched_yield": (24, 124),
    "mremap": (25, 216), "madvise": (28, 233), "nanosleep": (35, 101), "getpid": (39, 172),
    "exit": (60, 93), "uname": (63, 160), "gettimeofday": (96, 169), "getrusage": (98, 165),
    "sysinfo": (99, 179), "sigaltstack": (131, 132), "gettid": (186, 178), "time": (201, None),
    "futex": (202, 98), "sched_getaffinity": (204, 123), "clock_gettime": (228, 113),
    "clock_getres": (229, 114), "clock_nanosleep": (230, 115), "exit_group": (231, 94),
    "openat": (257, 56), "newfstatat": (262, 79), "set_robust_list": (273, 99),
    "get_robust_list": (274, 100), "fallocate": (285, 47), "getrandom": (318, 278),
    "membarrier": (324, 283), "rseq": (334, 293),
}  # fmt: skip
"""The numbers of the calls that are always allowed; `openat` is left to Landlock."""
_SOME: dict[str, tuple[tuple[int, int], int, tuple[int, ...]]] = {
    "ioctl": ((16, 29), 1, (0x5401,)),  # TCGETS
    "fcntl": ((72, 25), 1, (1, 2, 3, 4, 1030, 1034)),  # of flags, F_DUPFD_CLOEXEC, F_GET_SEALS
    "prctl": ((157, 167), 0, (15, 16, 0x53564D41)),  # names of threads and of memory
    "prlimit64": ((302, 261), 0, (0,)),  # of this process
}
"""The numbers of the calls with one argument that has only these values."""
_OWN = {"kill": (62, 129), "tgkill": (234, 131)}
"""The numbers of the calls whose first argument must be this process."""
_MMAP, _CLONE, _SECCOMP, _CAPSET = (9, 222), (56, 220), (317, 277), (126, 91)
_CLONE3, _CLOSE_RANGE, _CREATE_RULES, _RESTRICT = 435, 436, 444, 446
_NEWEST = 424
"""The first call that is answered as an older kernel would."""
_MAP_SHARED, _CLONE_THREAD = 1, 0x10000
_NO_NEW_PRIVILEGES, _DROP_CAPABILITY, _MOST_CAPABILITIES = 38, 24, 64
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x50000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06


class SandboxError(OSError):
    """This process could not be confined."""


@lru_cache(maxsize=1)
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return libc


def can_confine() -> bool:
    """Tell whether this machine can confine a process, and nobody has switched that off."""
    return os.environ.get(VARIABLE) != "0" and _landlock() > 0


def _landlock() -> int:
    """Return the version of Landlock, 0 if it or the machine's numbers are missing."""
    if not sys.platform.startswith("linux") or platform.machine() not in _ARCHITECTURES:
        return 0
    if sys.maxsize < 2**32:  # a Python of 32 bits has other numbers
        return 0
    return max(0, int(_libc().syscall(_CREATE_RULES, None, ctypes.c_long(0), ctypes.c_long(1))))


def confine(kept: Collection[int]) -> None:
    """Confine this process, which has one thread, to computing and to the descriptors `kept`.

    Its limits of memory and of written bytes are final. Raises SandboxError on failure.
    """
    column, _ = _ARCHITECTURES[platform.machine()]
    most, _ = resource.getrlimit(resource.RLIMIT_DATA)
    for limit in (resource.RLIMIT_DATA, resource.RLIMIT_FSIZE):
        resource.setrlimit(limit, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    last = -1
    for number in [*sorted({0, 1, 2, *kept}), 1 << 31]:
        if number > last + 1:
            _call(_CLOSE_RANGE, last + 1, number - 1, 0)
        last = number
    if _libc().prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise SandboxError(ctypes.get_errno(), "no_new_privs")
    for one in range(_MOST_CAPABILITIES):
        if _libc().prctl(_DROP_CAPABILITY, one, 0, 0, 0):
            break  # there are no more, or this user has none
    _call(_CAPSET[column], struct.pack("Ii", 0x20080522, 0), bytes(24))
    _refuse_files()
    code = filter_code(os.getpid())
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(buffer))
    _call(_SECCOMP[column], 1, 1, program)


def _refuse_files() -> None:
    """Let Landlock refuse every file, TCP, signals to others, and abstract sockets."""
    version = _landlock()
    files = (1 << {1: 13, 2: 14, 3: 15, 4: 15}.get(version, 16)) - 1
    attributes = struct.pack("QQQ", files, 3 * (version >= 4), 3 * (version >= 6))
    size = 8 if version < 4 else 16 if version < 6 else 24
    rules = _call(_CREATE_RULES, attributes, size, 0)
    _call(_RESTRICT, rules, 0)
    os.close(rules)


@lru_cache(maxsize=1)
def filter_code(own: int) -> bytes:
    """Return the filter of system calls for a process."""
    return b"".join(_filter(*_ARCHITECTURES[platform.machine()], own))


def _filter(column: int, name: int, own: int) -> Iterator[bytes]:
    """Yield the instructions of a filter."""
    refuse, lacking = _ERROR | errno.EPERM, _ERROR | errno.ENOSYS
    yield from _load(4)
    yield struct.pack("HBBI", _EQUAL, 1, 0, name)
    yield _return(_KILL)  # a call of another architecture
    yield from _load(0)
    yield from _if(_AT_LEAST, 0x40000000, [_return(_KILL)])  # x32
    for free in _FREE.values():
        number = free[column]
        if number is not None:
            yield from _if(_EQUAL, number, [_return(_ALLOW)])
    own_calls = {key: (numbers, 0, (own,)) for key, numbers in _OWN.items()}
    for numbers, argument, values in {**_SOME, **own_calls}.values():
        admitted = [part for one in values for part in _if(_EQUAL, one, [_return(_ALLOW)])]
        chosen = [*_load(16 + 8 * argument), *admitted, _return(refuse)]
        yield from _if(_EQUAL, numbers[column], chosen)
    shared = _if(_ANY_BIT, _MAP_SHARED, [_return(refuse)])  # which no limit of memory counts
    yield from _if(_EQUAL, _MMAP[column], [*_load(16 + 8 * 3), *shared, _return(_ALLOW)])
    thread = _if(_ANY_BIT, _CLONE_THREAD, [_return(_ALLOW)])
    yield from _if(_EQUAL, _CLONE[column], [*_load(16), *thread, _return(refuse)])
    yield from _if(_EQUAL, _CLONE3, [_return(lacking)])  # its flags are out of sight
    yield from _if(_AT_LEAST, _NEWEST, [_return(lacking)])
    yield _return(refuse)


def _load(offset: int) -> list[bytes]:
    return [struct.pack("HBBI", _LOAD, 0, 0, offset)]


def _return(value: int) -> bytes:
    return struct.pack("HBBI", _RETURN, 0, 0, value)


def _if(test: int, value: int, then: list[bytes]) -> list[bytes]:
    """Return instructions that do `then`, which ends in a return, if what was loaded is so."""
    return [struct.pack("HBBI", test, 0, len(then), value), *then]


def _call(number: int, *arguments: int | bytes | None) -> int:
    """Make a system call; raise SandboxError."""
    given = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    found = int(_libc().syscall(ctypes.c_long(number), *given))
    if found < 0:
        raise SandboxError(ctypes.get_errno(), f"system call {number}")
    return found


# --- The memory limit of a call -------------------------------------------------------------------


_SHARE = 0.8
CONTAINER = Path("/sys/fs/cgroup")
"""The folder in which Linux keeps the limits of the container that this process is in."""


def default_memory_limit(container: Path = CONTAINER) -> int | None:
    """Return the default limit of a call in bytes: a share of the free memory, None if unknown."""
    free = free_memory(container)
    return None if free is None else int(free * _SHARE)


def free_memory(container: Path = CONTAINER) -> int | None:
    """Return the free memory in bytes, or that of a limited container; None if unknown."""
    kilobytes = _numbers(Path("/proc/meminfo")).get("MemAvailable:")
    in_system = None if kilobytes is None else kilobytes * 1024
    free = [size for size in (in_system, _free_in_container(container)) if size is not None]
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

    before = resource.getrlimit(resource.RLIMIT_DATA)
    *_, data_pages, _ = Path("/proc/self/statm").read_text(encoding="ascii").split()
    most = int(data_pages) * os.sysconf("SC_PAGE_SIZE") + nbytes
    most = min([most, *(limit for limit in before if limit != resource.RLIM_INFINITY)])
    resource.setrlimit(resource.RLIMIT_DATA, (most, before[1]))
    try:
        with memory_errors():
            yield
    finally:
        with contextlib.suppress(ValueError):  # the limit of a confined process is final
            resource.setrlimit(resource.RLIMIT_DATA, before)


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
