"""Run code of modules in a fork of the worker, so that nothing that it leaves reaches the next run.

The worker itself never runs a parallel kernel: a fork has none of the threads that TVM started for
one, and would wait for them for ever. As a fork takes milliseconds, a spare one is made for
the next run of a module that runs again. It can do all that the worker could when it was made.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import pickle
import select
import sys
from collections.abc import Callable
from functools import partial
from typing import BinaryIO, NamedTuple, NoReturn, TypeVar

from irviz.worker import child_process, responses
from irviz.worker.captured_output import MOST_BYTES, flush_stdout
from irviz.worker.sandbox import SandboxError, can_confine, confine, filter_code

Result = TypeVar("Result")

_MOST_BYTES = 1 << 27
"""The size limit of an answer of a run, without its large arrays."""
CAN_FORK = sys.platform.startswith("linux")
"""Other systems lack fork, or their libraries do not work after it."""


class FreshProcessEndedError(Exception):
    """The process of a run ended before it answered; the argument is its exit code."""


class _Fork(NamedTuple):
    """A fork of this worker: what it sends and prints, and what a spare one reads its request from.

    It prints there when it is confined, and otherwise where the worker does.
    """

    pid: int
    frames: BinaryIO
    printed: BinaryIO
    requests: BinaryIO


_is_fork, _has_run = False, False
"""Whether this process is a fork for one run; whether it is a worker that has run something."""
_spare: _Fork | None = None
_printed = -1
"""Where a fork prints when it is confined."""


def in_fresh_process(
    work: Callable[[], Result], *, is_confined: bool = False
) -> Result | responses.Packed:
    """Call a function in a fork of this worker, and return its answer as it was packed there.

    Raises FreshProcessEndedError if the fork ends without an answer, and SandboxError if it cannot
    be confined. Where there is no fork, or if this is one already, the function is called in this
    process.
    """
    global _has_run, _spare
    called = partial(confined, work) if is_confined else work
    if _is_fork or not CAN_FORK:
        return called()
    _has_run = True
    if _spare is not None:  # it cannot do what was made ready for this run
        _close(_spare)  # with which it ends
        _spare = None
    return responses.Packed(_answer_of(_forked(lambda _: responses.packed_call(called))))


def confined(work: Callable[[], Result]) -> Result:
    """Confine this process, which is a fork, and call a function; raise SandboxError."""
    if not _is_fork:
        raise SandboxError(errno.ENOTSUP, "only a fresh process can be confined")
    flush_stdout()
    os.dup2(_printed, 1)
    confine([one for one in (responses.pipe_number(), responses.answer_file()) if one is not None])
    return work()


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
    except (FreshProcessEndedError, responses.UnreadableAnswerError) as failure:
        return responses.pack_failure(failure, "")


def prepare_spare_process(serve: Callable[..., bytes], practice: bytes, *, is_wanted: bool) -> None:
    """Make a fork for the next run, if there was one; it calls `serve` with the request's parts.

    It is wanted after a run that such a fork can serve, or could have served: most modules are run
    once, and the next one makes the fork stale.

    Until there is a request, it serves `practice`: a fork copies each page of memory that it is the
    first to write to, and most pages that a call writes to are the same in every call.
    """
    global _spare

    def served(requests: BinaryIO) -> bytes:
        if not select.select([requests], [], [], 0)[0]:
            serve(practice, None)
        return serve(*pickle.load(requests))  # noqa: S301

    if _has_run and _spare is None and is_wanted:
        with contextlib.suppress(OSError):  # there are too many processes: the run will say so
            _spare = _forked(served)


def _forked(serve: Callable[[BinaryIO], bytes]) -> _Fork:
    """Fork this process to call a function and send its answer."""
    child_process.adopt_orphans()
    child_process.reap_children(options=os.WNOHANG)  # processes of the run before
    received, sent = os.pipe()
    printed, its_output = os.pipe()
    asked, request = os.pipe()
    server = os.getpid()
    pid = child_process.fork()
    if pid == 0:
        child_process.end_with_parent(server)
        for number in (request, received, printed):
            os.close(number)
        _serve(serve, asked, sent, its_output)
    for number in (asked, sent, its_output):
        os.close(number)
    frames, output = (os.fdopen(number, "rb", buffering=0) for number in (received, printed))
    return _Fork(pid, frames, output, os.fdopen(request, "wb"))


def _serve(serve: Callable[[BinaryIO], bytes], asked: int, sent: int, its_output: int) -> NoReturn:
    """Call the function, send its answer, and end. Runs in the fork."""
    global _is_fork, _printed
    _is_fork, _printed = True, its_output
    try:
        if can_confine():
            filter_code(os.getpid())  # ahead of need
        gc.freeze()  # the collector would write to memory that is the worker's, too
        with os.fdopen(sent, "wb") as frames, os.fdopen(asked, "rb") as requests:
            responses.set_pipe(frames)
            answer = serve(requests)
            flush_stdout()
            responses.send_frame(responses.ANSWER, answer)
        os._exit(0)
    finally:
        os._exit(1)


def _answer_of(fork: _Fork) -> bytes:
    """Pass progress messages on, and return the answer; then end the fork and all it started."""
    try:
        answer = _relayed(fork)
        if answer is None:
            _, status = os.waitpid(fork.pid, 0)
            raise FreshProcessEndedError(os.waitstatus_to_exitcode(status))
        return answer
    finally:
        child_process.kill_children()


def _close(fork: _Fork) -> None:
    for pipe in fork.frames, fork.printed, fork.requests:
        with contextlib.suppress(OSError):  # what nobody reads cannot be flushed
            pipe.close()


def _relayed(fork: _Fork) -> bytes | None:
    """Pass on progress messages and what is printed, and close the pipes.

    Returns the answer, None if the process ends without one; raises UnreadableAnswerError.
    """
    ended, frames, printed = os.pidfd_open(fork.pid), fork.frames.fileno(), fork.printed.fileno()
    open_pipes, room = [frames, printed], MOST_BYTES + 1  # after which the parent says so
    answer, wait = None, None
    try:
        while ready := select.select([*open_pipes, ended], [], [], wait)[0]:
            if printed in ready:
                text = os.read(printed, MOST_BYTES)
                if not text:
                    open_pipes.remove(printed)
                room -= os.write(1, text[:room])
            elif answer is not None or frames not in ready:
                return answer
            else:
                kind, content = responses.receive_frame(fork.frames)
                if kind != responses.ANSWER:
                    responses.send_frame(kind, content)
                elif len(content) > _MOST_BYTES:
                    raise responses.UnreadableAnswerError(f"it has {len(content):,} bytes")
                else:
                    answer, wait = content, 0
    except EOFError:
        pass
    except ValueError as failure:
        raise responses.UnreadableAnswerError(str(failure)) from None
    finally:
        os.close(ended)
        _close(fork)
    return answer
