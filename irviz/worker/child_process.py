"""What child processes inherit, and how they end: with their parent, after their children."""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, Protocol

_SET_DEATH_SIGNAL, _BECOME_SUBREAPER = 1, 36  # of Linux's prctl
_POLL_SECONDS = 0.01
_libc = ctypes.CDLL(None) if sys.platform.startswith("linux") else None


def end_with_parent(parent: int, by: int = getattr(signal, "SIGKILL", 0)) -> None:
    """Make Linux send this process a signal when the thread that started it ends."""
    _prctl(_SET_DEATH_SIGNAL, by)
    if os.getppid() != parent:  # it ended before that
        os._exit(1)


def adopt_orphans() -> None:
    """Let Linux make what descendants of this process leave behind its own children."""
    _prctl(_BECOME_SUBREAPER, 1)


def kill_children(others: Collection[int] = ()) -> None:
    """Kill the children of this process, except `others`, and their descendants, on Linux."""
    killed = set[int]()
    while found := set(_descendants(os.getpid(), others)) - killed:  # they may have more meanwhile
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        killed |= found


def reap_children(others: Collection[int] = (), options: int = 0) -> None:
    """Wait for the children of this process, except `others`, which were killed."""
    for pid in _children(os.getpid()):
        if pid not in others:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, options)


def _descendants(pid: int, others: Collection[int]) -> Iterator[int]:
    for child in _children(pid):
        if child not in others:
            yield child
            yield from _descendants(child, others)


def _children(pid: int) -> list[int]:
    found, tasks = list[int](), f"/proc/{pid}/task"
    with contextlib.suppress(OSError):  # it has ended
        for task in os.listdir(tasks):  # noqa: PTH208 - this is done for each run
            found += map(int, Path(f"{tasks}/{task}/children").read_bytes().split())
    return found


def _prctl(option: int, value: int) -> None:
    with contextlib.suppress(AttributeError):
        if _libc is not None:
            _libc.prctl(option, value)


# --- End a child process, by force where it does not end by itself -------------------------------


def fork() -> int:
    """Fork this process as `os.fork` does, without Python's warning of threads.

    Those threads wait, such as the one that watches the parent, or end before a fork, as those of
    NumPy's BLAS do.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return os.fork()


class Process(Protocol):
    """What is used of `subprocess.Popen`."""

    pid: int

    def poll(self) -> int | None:
        """Return the exit code, None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended, and return its exit code; raise TimeoutExpired."""
        deadline = time.monotonic() + (math.inf if timeout is None else timeout)
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("a fork", timeout or 0)
            time.sleep(_POLL_SECONDS)
        return code

    def terminate(self) -> None:
        """Ask it to end."""

    def kill(self) -> None:
        """Kill it."""


class Fork(Process):
    """A fork of this process, used as `subprocess.Popen` is; it runs a function, and ends."""

    def __init__(self, run: Callable[[], NoReturn]) -> None:
        self.returncode: int | None = None
        self.pid = fork()
        if not self.pid:
            try:
                run()
            finally:
                os._exit(1)

    def poll(self) -> int | None:
        """Return the exit code, None while it runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def terminate(self) -> None:
        """Ask it to end."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it."""
        self._send(signal.SIGKILL)

    def _send(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


def end_process(process: Process, seconds: float = 10.0) -> None:
    """Ask a process to end, kill it where it has not done so within its time, and reap it."""
    process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


# --- What a worker inherits from its parent, even through a fork server --------------------------


_SETTINGS = {
    "PYTHONSAFEPATH": "1",  # else a file in the user's folder could shadow a module
    "TVM_FFI_DISABLE_TORCH_C_DLPACK": "1",  # which would load torch
}


@dataclass(frozen=True)
class Surroundings:
    """The module path, the current directory (None if deleted) and the environment variables."""

    path: list[str]
    folder: str | None
    environment: dict[str, str]

    @classmethod
    def of_a_worker(cls) -> Surroundings:
        """Return what a worker started by this process would get now."""
        path, folder = [one for one in sys.path if one], None
        with contextlib.suppress(OSError):
            folder = str(Path.cwd())
        if "" in sys.path and folder is not None:
            path.append(folder)  # last: its modules can be imported, but shadow no others
        return cls(path, folder, {**os.environ, **_SETTINGS})

    def adopt(self) -> None:
        """Apply them to this process."""
        sys.path[:] = self.path
        if self.folder is not None:
            with contextlib.suppress(OSError):
                os.chdir(self.folder)
        if os.environ != self.environment:
            os.environ.clear()
            os.environ.update(self.environment)
