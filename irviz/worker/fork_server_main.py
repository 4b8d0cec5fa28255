"""The main module of the fork server, a process that loads TVM once and forks for each worker."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import signal
import socket
from collections.abc import Callable, Collection
from typing import NoReturn

from irviz.worker import child_process, worker_main

MESSAGE_BYTES = 64
_DESCRIPTORS = 3
_pids: dict[bytes, int] = {}
"""The process ids of workers, by worker number."""
_others: set[int] = set()
"""The process ids of what lives on when this process ends."""


def main(parent: int, modules: Collection[str] = ()) -> None:
    """Load TVM, then these modules, and answer the parent until the parent exits.

    A number with file descriptors requests a worker with these as its standard streams. A number
    alone requests to kill that worker and its children; the answer, sent once it has exited, is the
    number and the worker's exit code, if there was such a worker. The name of a module with file
    descriptors requests a process that runs the module's `main`, and that nothing here ends.
    """
    child_process.end_with_parent(parent, signal.SIGTERM)
    child_process.adopt_orphans()
    with contextlib.suppress(Exception):  # each worker tries again, and reports the error
        worker_main.load_tvm()
        for module in modules:
            importlib.import_module(module)
    gc.freeze()  # the collector would write to the memory that the workers share
    signal.signal(signal.SIGTERM, _end_all)
    if os.getppid() != parent:
        _end_all()
    _serve(socket.socket(fileno=os.dup(0)))()


def main_of_fork(parent: int, descriptor: int) -> NoReturn:
    """Be the fork server in a fork of a process that has loaded TVM.

    The descriptor is the socket to it; nothing else that was open there stays open here.
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


def _serve(parent: socket.socket) -> Callable[[], None]:
    """Start and end processes; in a process that was started, return what it is to do."""
    server = os.getpid()
    while True:
        number, descriptors, _, _ = socket.recv_fds(parent, MESSAGE_BYTES, _DESCRIPTORS)
        if not number:
            _end_all()
        _others.difference_update([pid for pid in _others if os.waitpid(pid, os.WNOHANG)[0]])
        if not descriptors:
            parent.send(number + b" " + (_end(_pids.pop(number)) if number in _pids else b""))
            continue
        pid = None
        with contextlib.suppress(OSError):  # the parent notices that the worker's pipes close
            pid = child_process.fork()
        is_worker = number.isdigit()
        if pid == 0:
            parent.close()
            _begin(descriptors)
            if is_worker:
                child_process.end_with_parent(server)
                return worker_main.main
            main: Callable[[], None] = importlib.import_module(number.decode()).main
            return main
        if pid is not None and is_worker:
            _pids[number] = pid
        elif pid is not None:
            _others.add(pid)
        for descriptor in descriptors:
            os.close(descriptor)


def _begin(descriptors: list[int]) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
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
    kept = [*_pids.values(), *_others]
    child_process.kill_children(kept)
    child_process.reap_children(kept)


def _kill(pid: int) -> None:
    for kill in (os.killpg, os.kill):  # one that was forked a moment ago is not yet a group
        with contextlib.suppress(ProcessLookupError):
            kill(pid, signal.SIGKILL)
