"""Run the layout engine, Graphviz, in its own worker, because a call cannot be interrupted."""

from __future__ import annotations

import contextlib
import faulthandler
import signal

from irviz.worker.captured_output import captured_stderr
from irviz.worker.supervisor import StartError, Worker, WorkerError

_MAX_SECONDS = 86_400.0  # every timer accepts this
_TRIAL = 'digraph { a [label=<<TABLE><TR><TD PORT="p"></TD></TR></TABLE>>] b -> a:p }'


def run_dot(dot: str, seconds: float) -> str | None:
    """Lay out a DOT text with Graphviz's dot.

    Calls are serialised; the time limit of one starts when the engine is free.

    Returns:
        Graphviz's JSON, None if the time limit is exceeded, which stops the process, or if it
        crashes.

    Raises:
        ValueError: The text is not DOT; the message is Graphviz's.
        ImportError: pygraphviz cannot be loaded.
        StartError: The process of the engine cannot be started.
    """
    if not seconds > 0:
        return None
    limit = min(seconds, _MAX_SECONDS)
    try:
        return ENGINE.call(_draw, dot, limit, seconds=limit).decode()
    except StartError:
        raise
    except WorkerError:
        return None


def _draw(dot: str, seconds: float) -> bytes:
    """Lay out a DOT text in the worker, which exits when the time is up.

    The limit also works if the parent is gone, and while C code holds the GIL.
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
    """Load everything that the first layout needs, and leave Ctrl-C to the parent process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(ImportError):  # a layout raises it
        _draw(_TRIAL, _MAX_SECONDS)


# the parser may be in a bad state after an error
ENGINE = Worker(_load, start_seconds=30.0, ends_on_error=True)
