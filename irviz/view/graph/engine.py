"""The layout engine, Graphviz, in a process of its own, which can be stopped at any time.

Graphviz cannot be interrupted in the process that calls it. So another Python process runs this
file, loads pygraphviz, and serves one layout after another through pipes. It exits at the end of
its input, that is with this process, however this one ends.

Nothing here needs POSIX: a timer that kills the process replaces `select` on a pipe, which Windows
lacks, and faulthandler's watchdog replaces SIGALRM. `poll`, where it exists, makes Ctrl-C work
sooner.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import os
import select
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator

START_SECONDS = 30.0
"""The time limit for starting the process; the time limit of a layout begins afterwards."""
_MAX_SECONDS = 86_400.0  # every timer accepts this
_RUN = "import runpy, sys; runpy.run_path(sys.argv[1], run_name='__main__')"
_REQUEST = struct.Struct("!dQ")  # seconds, length of the DOT text that follows
_ANSWER = struct.Struct("!cQ")  # kind, length of the text that follows
_READY, _DRAWN, _REFUSED, _MISSING = b"R", b"D", b"E", b"M"
_TRIAL = 'digraph { a [label=<<TABLE><TR><TD PORT="p"></TD></TR></TABLE>>] b -> a:p }'


def run_dot(dot: str, seconds: float) -> str | None:
    """Lay out a DOT text with Graphviz's dot.

    Calls wait for each other; the time of one begins when the engine is free.

    Returns:
        Graphviz's JSON, None if the time is up or the process crashes. The process is stopped then.

    Raises:
        ValueError: For text that is not DOT, with the message of Graphviz.
        ImportError: If pygraphviz cannot be loaded.
    """
    request = dot.encode()
    if not seconds > 0:
        return None
    with _lock:
        try:
            kind, text = _running().ask(request, min(seconds, _MAX_SECONDS))
        except (EOFError, OSError):
            _end()
            return None
        except BaseException:  # Ctrl-C: the answer would be read by the next call
            _end()
            raise
        if kind != _DRAWN:
            _end()  # the parser may be in a bad state after an error
    if kind == _MISSING:
        raise ImportError(f"the layout engine cannot be loaded: {text}; install pygraphviz again")
    if kind == _REFUSED:
        raise ValueError(f"Graphviz cannot lay out this DOT text: {text}")
    return text


def warm_up() -> None:
    """Start the engine in advance, without waiting for it."""
    if _lock.acquire(blocking=False):  # otherwise an engine is working already
        try:
            with contextlib.suppress(OSError):  # the first layout raises it
                _running()
        finally:
            _lock.release()


class _Engine:
    """The process and the pipes to it, which are unbuffered: closing one must not write to it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - this interpreter and this file
            [sys.executable, "-c", _RUN, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            cwd=sys.prefix,  # `-c` imports from the working directory, which must not be the user's
            start_new_session=True,  # Ctrl-C is for this process only
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._pipes = (self._process.stdin, self._process.stdout)
        self._is_ready = False

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def ask(self, request: bytes, seconds: float) -> tuple[bytes, str]:
        """Return the kind and text of the answer; raise EOFError or OSError if there is none."""
        if not self._is_ready:
            with self._within(START_SECONDS):
                kind, text = self._receive()
            if kind != _READY:
                return kind, text
            self._is_ready = True
        with self._within(seconds):
            unsent = memoryview(_REQUEST.pack(seconds, len(request)) + request)
            while unsent:
                unsent = unsent[os.write(self._pipes[0].fileno(), unsent) :]
            return self._receive()

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        self._close()

    def disown(self) -> None:
        """Close the pipes of a process that belongs to the parent of this fork."""
        self._process.returncode = 0  # otherwise Popen warns that it still runs
        self._close()

    def _close(self) -> None:
        for pipe in self._pipes:
            pipe.close()

    def _receive(self) -> tuple[bytes, str]:
        kind, length = _ANSWER.unpack(self._read(_ANSWER.size))
        return kind, self._read(length).decode()

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            self._wait()
            chunk = os.read(self._pipes[1].fileno(), min(size - len(data), 1 << 16))
            if not chunk:
                raise EOFError("the layout engine died")
            data += chunk
        return bytes(data)

    def _wait(self) -> None:
        """Wait for an answer, or for Ctrl-C.

        Ctrl-C does not end a read if its handler was set by C's `signal`, as TVM's solver (Z3)
        does after each proof.
        """
        if hasattr(select, "poll"):
            poll = select.poll()
            poll.register(self._pipes[1], select.POLLIN)
            poll.poll()

    @contextlib.contextmanager
    def _within(self, seconds: float) -> Iterator[None]:
        """Kill the process when the time is up, which ends every wait, and raise TimeoutError."""
        is_late = threading.Event()

        def end() -> None:
            is_late.set()
            self._process.kill()

        timer = threading.Timer(seconds, end)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()
        if is_late.is_set():  # the answer may have arrived at the same time
            raise TimeoutError


_lock = threading.Lock()
_starting = threading.Lock()
_engine: _Engine | None = None


def _running() -> _Engine:
    global _engine
    if _engine is not None and _engine.has_ended():
        _end()
    if _engine is None:
        with _starting:
            _engine = _Engine()
    return _engine


@atexit.register
def _end() -> None:
    global _engine
    if _engine is not None:
        ended, _engine = _engine, None
        ended.stop()


def _leave_to_parent() -> None:
    """Forget the engine in a fork, so that no answer goes to the wrong process.

    A pipe that stays open in a fork would also keep the engine alive after the parent has exited.
    """
    global _engine, _lock, _starting
    _lock, _starting = threading.Lock(), threading.Lock()  # threads of the parent may hold them
    if _engine is not None:
        left, _engine = _engine, None
        left.disown()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: _starting.acquire(),  # a fork must not inherit unknown pipes
        after_in_parent=lambda: _starting.release(),
        after_in_child=_leave_to_parent,
    )


def _serve() -> None:
    """Serve layouts until the input ends."""
    import tempfile  # only this process needs it

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with (
        os.fdopen(os.dup(0), "rb") as requests,
        os.fdopen(os.dup(1), "wb") as answers,
        tempfile.TemporaryFile(buffering=0) as messages,
    ):
        os.dup2(messages.fileno(), 1)  # Graphviz prints must not mix with the answers
        os.dup2(messages.fileno(), 2)

        def answer(kind: bytes, text: bytes) -> None:
            answers.write(_ANSWER.pack(kind, len(text)) + text)
            answers.flush()

        try:
            _draw(_TRIAL)  # loads everything that the first layout needs
        except ImportError as failure:
            answer(_MISSING, str(failure).encode())
            return
        answer(_READY, b"")
        while len(header := requests.read(_REQUEST.size)) == _REQUEST.size:
            seconds, length = _REQUEST.unpack(header)
            dot = requests.read(length)
            if len(dot) < length:
                return
            messages.seek(0)
            messages.truncate()
            # ends this process even without its parent, and inside C code
            faulthandler.dump_traceback_later(seconds, exit=True, file=messages.fileno())
            try:
                kind, text = _DRAWN, _draw(dot.decode())
            except ValueError as failure:
                messages.seek(0)
                message = messages.read().decode("utf-8", "replace").strip()
                kind, text = _REFUSED, (message or str(failure)).encode()
            finally:
                faulthandler.cancel_dump_traceback_later()
            answer(kind, text)  # once the watchdog's thread has ended: now the engine is at rest


def _draw(dot: str) -> bytes:
    import pygraphviz

    graph = pygraphviz.AGraph(string=dot)
    try:
        return bytes(graph.draw(format="json", prog="dot"))
    finally:
        graph.close()


if __name__ == "__main__":
    _serve()
