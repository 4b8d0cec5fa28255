"""Read files in the worker: reading can crash, hang or fill the memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import NamedTuple, TypeVar

from tvm import ir

from irviz.ir.function_graph import extract
from irviz.ir.module_functions import relax_functions
from irviz.limits import FILE_SECONDS
from irviz.loaders.file_limits import DRAWING_BYTES, DRAWING_SECONDS, FileError, memory_share
from irviz.worker import supervisor
from irviz.worker.sandbox import limited_memory

Result = TypeVar("Result")


class Reader(NamedTuple):
    """The worker that reads, and how many seconds of a file's time its start has taken."""

    worker: supervisor.Worker
    late: float = 0.0


_USUAL = Reader(supervisor.TRIES)
reader: ContextVar[Reader] = ContextVar("reader", default=_USUAL)
"""Another one, where two files are opened at once."""


def read_in_worker(
    read: Callable[..., Result], *arguments: object, seconds: float = FILE_SECONDS
) -> Result:
    """Read a file in the worker with `read`, within limits of time and memory.

    Raises:
        FileError: The time or memory limit was exceeded, or the worker crashed.
        Exception: Whatever `read` raises.
    """
    memory = memory_share()
    worker, late = reader.get()
    left = max(seconds - late, seconds / 2)
    try:
        return worker.call(read, *arguments, seconds=left, memory=memory)
    except supervisor.TimedOutError:
        reason = f"takes longer than {seconds:g} s to open and was stopped: give a smaller file"
    except supervisor.StartError as failure:
        reason = f"was not opened, as no process could be started to read it in ({failure})"
    except supervisor.CrashedError as failure:
        reason = f"was not opened: {failure}; write it again, or take another copy"
    except supervisor.CancelledError:
        reason = "was not opened: it was cancelled"
    except MemoryError:
        reason = f"takes more than {memory:,} bytes of memory to open: give a smaller file"
    except RecursionError:
        reason = "is nested too deeply to be opened: give a smaller file"
    raise FileError(reason)


def draw_all(mod: ir.IRModule) -> None:
    """Do all the work on a module that drawing it requires.

    Raises FileError if that takes too much memory or time.
    """
    began = time.process_time()
    try:
        with limited_memory(DRAWING_BYTES):
            for name in relax_functions(mod):
                extract(mod, name)
            mod.script()
    except MemoryError:
        raise FileError(
            f"takes more than {DRAWING_BYTES:,} bytes of memory to draw: give a smaller module"
        ) from None
    check_drawing_time(began)


def check_drawing_time(began: float) -> None:
    """Raise FileError if drawing has taken too much CPU time since `began`."""
    seconds = time.process_time() - began
    if seconds > DRAWING_SECONDS:
        raise FileError(
            f"takes {seconds:.0f} s to draw, and at most {DRAWING_SECONDS:g} s are admitted: "
            "give a smaller module"
        )
