"""Try a reader in the worker first: TVM's readers can crash, hang or fill the memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tvm import ir

from irviz.errors import LoadError
from irviz.ir.function_graph import extract
from irviz.ir.module_functions import relax_functions
from irviz.loaders.reading import MODEL_BYTES, MODEL_SECONDS, TVM_SECONDS, FileError
from irviz.worker.supervisor import TRIES, CrashedError, StartError, TimedOutError, WorkerError

Result = TypeVar("Result")


def trial_failure(
    read: Callable[..., object],
    *arguments: object,
    draw: Callable[..., object],
    seconds: float = TVM_SECONDS,
    memory: int | None = None,
) -> str:
    """Return the reason why a call fails in the worker, or "" if it returns.

    `read` and `draw` are functions of a module: `draw` does with the result of `read` what this
    process will do. The reason is the message of their error, or how the worker died.
    """
    try:
        return TRIES.call(_message, read, arguments, draw, seconds=seconds, memory=memory)
    except TimedOutError:
        return f"reading takes more than {seconds:g} s"
    except StartError as failure:
        return f"no process could be started to try it in ({failure})"
    except CrashedError:
        return "reading crashes TVM"
    except MemoryError:
        return "reading takes all memory"
    except WorkerError as failure:
        return str(failure)


def read_model(name: str, read: Callable[..., Result], *arguments: object) -> Result:
    """Return what the worker reads from a file; raise LoadError, which begins with its name."""
    try:
        return TRIES.call(read, *arguments, seconds=MODEL_SECONDS, memory=MODEL_BYTES)
    except LoadError as failure:
        named = f"{name!r}" if isinstance(failure, FileError) else f"{name!r}:"
        raise LoadError(f"{named} {failure}") from failure
    except WorkerError as failure:
        raise LoadError(f"{name!r} could not be read: {failure}") from failure


def _message(
    read: Callable[..., object], arguments: tuple[object, ...], draw: Callable[..., object]
) -> str:
    """Return the message of the error that reading or drawing raises, or ""; runs in the worker."""
    try:
        draw(read(*arguments))
    except MemoryError:
        raise
    except Exception as failure:  # TVM's readers raise errors of any class
        return str(failure).strip() or type(failure).__name__
    return ""


def draw_all(mod: ir.IRModule) -> None:
    """Do everything with a module that a picture of it needs."""
    for name in relax_functions(mod):
        extract(mod, name)
    mod.script()


def last_line(message: str) -> str:
    """Return the last line of a message of TVM's, which has the reason."""
    return message.strip().splitlines()[-1].strip()[:500]
