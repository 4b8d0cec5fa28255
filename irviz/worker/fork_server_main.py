"""The main module of the fork server, a process that loads TVM once and forks for each worker."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
from typing import NoReturn

from irviz.worker import worker_main
from irviz.worker.child_process import (
    adopt_orphans,
    end_with_parent,
    fork,
    kill_children,
    reap_children,
)

MESSAGE_BYTES = 64
_DESCRIPTORS = 3
_pids: dict[bytes, int] = {}
"""The process ids of workers, by worker number."""


def main(parent: int) -> None:
    """Load TVM and answer the parent until the parent exits.

    A number with file descriptors requests a worker with these as its standard streams. A number
    alone requests to kill that worker and its children; the answer, sent once it has exited, is the
    number and the worker's exit code, if there was such a worker.
    """
    end_with_parent(parent, signal.SIGTERM)
    adopt_orphans()
    with contextlib.suppress(Exception):  # each worker tries again, and reports the error
        worker_main.load_tvm()
    gc.freeze()  # the collector would write to the memory that the workers share
    signal.signal(signal.SIGTERM, _end_all)
    if os.getppid() != parent:
        _end_all()
    _serve(socket.socket(fileno=os.dup(0)))
    worker_main.main()


def main_of_fork(parent: int, descriptor: int) -> NoReturn:
    """Be the fork server in a fork of a process that has loaded TVM.

    Args:
        parent: The process.
        descriptor: The socket to it; nothing else that was open there stays open here.
    """
    gc.freeze()  # garbage of the parent would close descriptors that are others here
    gc.enable()  # which the parent may have paused
    os.setsid()  # Ctrl-C is for the parent
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream, source in enumerate((descriptor, nothing, nothing)):
        os.dup2(source, stream)
    for number in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208 - names alone
        if number >= _DESCRIPTORS:
            with contextlib.suppress(OSError):  # it was the folder's
                os.close(number)
    main(parent)
    os._exit(0)


def _serve(parent: socket.socket) -> None:
    """Start and end workers; returns only in a worker process."""
    server = os.getpid()
    while True:
        number, descriptors, _, _ = socket.recv_fds(parent, MESSAGE_BYTES, _DESCRIPTORS)
        if not number:
            _end_all()
        if not descriptors:
            parent.send(number + b" " + (_end(_pids.pop(number)) if number in _pids else b""))
            continue
        pid = _fork()
        if pid == 0:
            parent.close()
            _become_worker(server, descriptors)
            return
        if pid is not None:
            _pids[number] = pid
        for descriptor in descriptors:
            os.close(descriptor)


def _fork() -> int | None:
    """Fork; return None on failure, which the parent notices because the worker's pipes close."""
    try:
        return fork()
    except OSError:
        return None


def _become_worker(server: int, descriptors: list[int]) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with_parent(server)
    os.setsid()  # its children can be killed with it
    for stream, descriptor in enumerate(descriptors):
        os.dup2(descriptor, stream)
        os.close(descriptor)


def _end(pid: int) -> bytes:
    """Kill a worker and its children, and return its exit code."""
    _kill(pid)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    _end_orphans()
    return b"%d" % code


def _end_all(*_: object) -> NoReturn:
    for pid in _pids.values():
        _kill(pid)
    _pids.clear()
    _end_orphans()
    os._exit(0)


def _end_orphans() -> None:
    """Kill what workers that have ended have left."""
    kill_children(_pids.values())
    reap_children(_pids.values())


def _kill(pid: int) -> None:
    for kill in (os.killpg, os.kill):  # one that was forked a moment ago is not yet a group
        with contextlib.suppress(ProcessLookupError):
            kill(pid, signal.SIGKILL)
