"""The layout engine, Graphviz, in a worker of its own: a call of it cannot be interrupted."""

from __future__ import annotations

import contextlib
import faulthandler
import signal

from irviz.worker.stderr_capture import captured_stderr
from irviz.worker.supervisor import Worker, WorkerError

_MAX_SECONDS = 86_400.0  # every timer accepts this
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
    if not seconds > 0:
        return None
    limit = min(seconds, _MAX_SECONDS)
    try:
        return ENGINE.call(_draw, dot, limit, seconds=limit).decode()
    except WorkerError:
        return None


def _draw(dot: str, seconds: float) -> bytes:
    """Lay out a DOT text in the worker, which exits when the time is up.

    It does so even without its parent, and while C code holds the GIL.
    """
    try:
        import pygraphviz
    except ImportError as failure:
        raise ImportError(
            f"the layout engine cannot be loaded: {failure}; install pygraphviz again"
        ) from None
    faulthandler.dump_traceback_later(seconds, exit=True, file=2)
    try:
        with captured_stderr() as printed:
            graph = pygraphviz.AGraph(string=dot)
            try:
                return bytes(graph.draw(format="json", prog="dot"))
            finally:
                graph.close()
    except ValueError as failure:
        raise ValueError(
            f"Graphviz cannot lay out this DOT text: {printed.text or failure}"
        ) from None
    finally:
        faulthandler.cancel_dump_traceback_later()


def _load() -> None:
    """Load everything that the first layout needs, and ignore Ctrl-C, which is for the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(ImportError):  # a layout raises it
        _draw(_TRIAL, _MAX_SECONDS)


# the parser may be in a bad state after an error
ENGINE = Worker(_load, start_seconds=30.0, ends_on_error=True)
