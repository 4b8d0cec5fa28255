"""The layout engine, Graphviz, in a process of its own, which can be stopped at any time.

Graphviz runs inside the process that calls it and cannot be interrupted there. So another Python
process serves one layout after another through pipes: this file is what it runs, and pygraphviz
is loaded there only. It ends with its input, that is with this process, however that one ends.
Nothing here needs POSIX: a timer that kills the process stands in for `select` on a pipe, which
Windows lacks, and faulthandler's watchdog for SIGALRM. Where there is `poll`, Ctrl-C is heard
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
"""How long the process may take to be ready; a layout's own seconds are counted from then on."""
_MOST_SECONDS = 86_400.0  # what every clock here can count
_RUN = "import runpy, sys; runpy.run_path(sys.argv[1], run_name='__main__')"
_REQUEST = struct.Struct("!dQ")  # seconds, length of the DOT text behind it
_ANSWER = struct.Struct("!cQ")  # what it is, length of the text behind it
_READY, _DRAWN, _REFUSED, _MISSING = b"R", b"D", b"E", b"M"
_TRIAL = 'digraph { a [label=<<TABLE><TR><TD PORT="p"></TD></TR></TABLE>>] b -> a:p }'


def run_dot(dot: str, seconds: float) -> str | None:
    """Lay out a DOT text with Graphviz's dot and return its JSON, or None if there is none.

    There is none when the time is up or the process dies of the text; nothing is left running
    then. Calls wait for each other: the seconds of one begin when it has the engine for itself.
    Raises ValueError, with Graphviz's own words, for a text that is no DOT, and ImportError
    where pygraphviz cannot be loaded.
    """
    request = dot.encode()
    if not seconds > 0:
        return None
    with _lock:
        try:
            kind, text = _running().ask(request, min(seconds, _MOST_SECONDS))
        except (EOFError, OSError):
            _end()
            return None
        except BaseException:  # Ctrl-C: an answer is still to come, which nobody waits for
            _end()
            raise
        if kind != _DRAWN:
            _end()  # a parser that stumbled may have been left in the middle of something
    if kind == _MISSING:
        raise ImportError(f"the layout engine cannot be loaded: {text}; install pygraphviz again")
    if kind == _REFUSED:
        raise ValueError(f"Graphviz cannot lay out this DOT text: {text}")
    return text


def warm_up() -> None:
    """Start the engine ahead of need, and return at once."""
    if _lock.acquire(blocking=False):  # if it is taken, an engine is at work already
        try:
            with contextlib.suppress(OSError):  # whoever needs it is told then
                _running()
        finally:
            _lock.release()


class _Engine:
    """The other process and the pipes to it, unbuffered: closing one must not write to it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - this interpreter and this file
            [sys.executable, "-c", _RUN, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            cwd=sys.prefix,  # `-c` imports from the working directory: not from the user's
            start_new_session=True,  # a Ctrl-C for this process is none for the engine
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._pipes = (self._process.stdin, self._process.stdout)
        self._is_ready = False

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def ask(self, request: bytes, seconds: float) -> tuple[bytes, str]:
        """Return what the answer is and its text; raise EOFError or OSError when none comes."""
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
        """Leave the process to the one that this one was forked from."""
        self._process.returncode = 0  # or Popen warns that it still runs
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

        That does not end a read where a handler was set by C's `signal`, as TVM's solver (Z3) sets
        it anew each time it has proved something.
        """
        if hasattr(select, "poll"):
            poll = select.poll()
            poll.register(self._pipes[1], select.POLLIN)
            poll.poll()

    @contextlib.contextmanager
    def _within(self, seconds: float) -> Iterator[None]:
        """Kill the process when the time is up, which ends every wait for it; then raise."""
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
        if is_late.is_set():  # the answer and the kill may have crossed
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
    """Make a fork forget the engine: with two users, answers would go to the wrong one.

    And a pipe that a fork holds open keeps the engine alive when the parent is gone.
    """
    global _engine, _lock, _starting
    _lock, _starting = threading.Lock(), threading.Lock()  # others may hold them, and are not here
    if _engine is not None:
        left, _engine = _engine, None
        left.disown()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: _starting.acquire(),  # else a fork could get pipes it does not know of
        after_in_parent=lambda: _starting.release(),
        after_in_child=_leave_to_parent,
    )


def _serve() -> None:
    """Lay out what comes in, one text after another, until nothing more can come."""
    import tempfile  # as pygraphviz does: this process alone needs it

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with (
        os.fdopen(os.dup(0), "rb") as requests,
        os.fdopen(os.dup(1), "wb") as answers,
        tempfile.TemporaryFile(buffering=0) as said,
    ):
        os.dup2(said.fileno(), 1)  # whatever Graphviz prints is none of the answers
        os.dup2(said.fileno(), 2)

        def answer(kind: bytes, text: bytes) -> None:
            answers.write(_ANSWER.pack(kind, len(text)) + text)
            answers.flush()

        try:
            _draw(_TRIAL)  # loads what Graphviz loads with the first picture
        except ImportError as failure:
            answer(_MISSING, str(failure).encode())
            return
        answer(_READY, b"")
        while len(header := requests.read(_REQUEST.size)) == _REQUEST.size:
            seconds, length = _REQUEST.unpack(header)
            dot = requests.read(length)
            if len(dot) < length:
                return
            said.seek(0)
            said.truncate()
            # ends this process even if nobody is left to do it, and in the middle of C code
            faulthandler.dump_traceback_later(seconds, exit=True, file=said.fileno())
            try:
                drawn = _draw(dot.decode())
            except ValueError as failure:
                said.seek(0)
                words = said.read().decode("utf-8", "replace").strip()
                answer(_REFUSED, (words or str(failure)).encode())
            else:
                answer(_DRAWN, drawn)
            finally:
                faulthandler.cancel_dump_traceback_later()


def _draw(dot: str) -> bytes:
    import pygraphviz

    graph = pygraphviz.AGraph(string=dot)
    try:
        return bytes(graph.draw(format="json", prog="dot"))
    finally:
        graph.close()


if __name__ == "__main__":
    _serve()
