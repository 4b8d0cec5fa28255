"""Run code of modules in a fork of the worker, so that nothing that it leaves reaches the next run.

The worker itself never runs a parallel kernel: a fork has none of the threads that TVM started for
one, and would wait for them for ever. As a fork takes milliseconds, a spare one is made ahead of
the next run. It can do all that the worker could when it was made.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import select
import sys
import warnings
from collections.abc import Callable
from enum import Enum
from typing import BinaryIO, NamedTuple, NoReturn

from irviz.worker import progress
from irviz.worker.answers import Packed, pack_failure, packed_call
from irviz.worker.process_tree import adopt_orphans, end_with_parent, kill_children, reap_children
from irviz.worker.stdout_capture import flush_stdout

_CAN_FORK = sys.platform.startswith("linux")
"""Other systems lack fork, or their libraries do not work after it."""


class FreshProcessEndedError(Exception):
    """The process of a run ended before it answered; the argument is its exit code."""


class _Fork(NamedTuple):
    """A fork of this worker: what it sends, and what a spare one reads its request from."""

    pid: int
    frames: BinaryIO
    requests: BinaryIO


class _State(Enum):
    """What a process is for runs: a worker without any, or with a spare fork, or such a fork."""

    UNUSED = "there was no run"
    STALE = "a run was made ready after the spare fork"
    READY = "the spare fork, if any, can do all that the worker can"
    FRESH = "it is a fork for one run"


_state = _State.UNUSED
_spare: _Fork | None = None


def in_fresh_process(work: Callable[[], object]) -> object:
    """Call a function in a fork of this worker, and return its answer as it was packed there.

    Raises FreshProcessEndedError if the fork ends without an answer. Where there is no fork, or if
    this is one already, the function is called in this process.
    """
    global _state
    if _state is _State.FRESH or not _CAN_FORK:
        return work()
    _state = _State.STALE
    return Packed(_answer_of(_forked(lambda _: packed_call(work))))


def in_spare_process(request: object) -> bytes | None:
    """Let the spare fork serve a request; return its packed answer, None if there is no such fork.

    An answer may be a FreshProcessEndedError.
    """
    global _spare
    fork, _spare = _spare, None
    if fork is None:
        return None
    try:
        pickle.dump(request, fork.requests)
        fork.requests.flush()
    except OSError:  # it has ended
        _close(fork)
        return None
    try:
        return _answer_of(fork)
    except FreshProcessEndedError as failure:
        return pack_failure(failure, "")


def prepare_spare_process(serve: Callable[..., bytes]) -> None:
    """Make a fork for the next run, if there was one; it calls `serve` with the request's parts."""
    global _spare, _state
    if _state is _State.STALE:
        _state = _State.READY
        if _spare is not None:
            _close(_spare)  # with which it ends
            _spare = None
    if _state is _State.READY and _spare is None:
        with contextlib.suppress(OSError):  # there are too many processes: the run will say so
            _spare = _forked(lambda requests: serve(*pickle.load(requests)))  # noqa: S301


def _forked(serve: Callable[[BinaryIO], bytes]) -> _Fork:
    """Fork this process to call a function and send its answer."""
    adopt_orphans()
    reap_children(options=os.WNOHANG)  # what is left of the run before
    received, sent = os.pipe()
    asked, request = os.pipe()
    server = os.getpid()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the thread that watches the parent
        pid = os.fork()
    if pid == 0:
        end_with_parent(server)
        os.close(request)
        os.close(received)
        _serve(serve, asked, sent)
    os.close(asked)
    os.close(sent)
    return _Fork(pid, os.fdopen(received, "rb", buffering=0), os.fdopen(request, "wb"))


def _serve(serve: Callable[[BinaryIO], bytes], asked: int, sent: int) -> NoReturn:
    """Call the function, send its answer, and end. Runs in the fork."""
    global _state
    _state = _State.FRESH
    try:
        gc.freeze()  # the collector would write to memory that is the worker's, too
        with os.fdopen(sent, "wb") as frames, os.fdopen(asked, "rb") as requests:
            progress.set_answers(frames)
            answer = serve(requests)
            flush_stdout()
            progress.send(progress.ANSWER, answer)
        os._exit(0)
    finally:
        os._exit(1)


def _answer_of(fork: _Fork) -> bytes:
    """Pass progress messages on, and return the answer; then end the fork and all it started."""
    answer = _relayed(fork)
    _close(fork)
    code = 0 if answer is not None else os.waitstatus_to_exitcode(os.waitpid(fork.pid, 0)[1])
    kill_children()
    if answer is None:
        raise FreshProcessEndedError(code)
    return answer


def _close(fork: _Fork) -> None:
    for pipe in fork.frames, fork.requests:
        with contextlib.suppress(OSError):  # what nobody reads cannot be flushed
            pipe.close()


def _relayed(fork: _Fork) -> bytes | None:
    """Pass progress messages on; return the answer, None if the process ends without one."""
    ended, frames = os.pidfd_open(fork.pid), fork.frames.fileno()
    try:
        while frames in select.select([frames, ended], [], [])[0]:
            kind, content = progress.receive(fork.frames)
            if kind == progress.ANSWER:
                return content
            progress.send(kind, content)
    except EOFError:
        pass
    finally:
        os.close(ended)
    return None
