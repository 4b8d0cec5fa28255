"""Run work in the worker, sending modules that it lacks and translating errors."""

from __future__ import annotations

import contextlib
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from typing import TypeVar, get_args

from tvm import ir

from irviz.errors import CancelledRunError, InputError, RunError
from irviz.runtime.local import kernels
from irviz.runtime.local.kernel_store import say_if_none_are_kept
from irviz.runtime.local.module_bytes import pack_module
from irviz.runtime.local.python_callees import CalleeNotSentError, pack_callees, python_callees
from irviz.runtime.local.run_errors import error_summary
from irviz.runtime.local.vm import remembered
from irviz.runtime.run_config import RunConfig, check_limits
from irviz.runtime.run_function import ModuleOf, Modules, UnknownModuleError, run_packed
from irviz.worker import shared_arrays
from irviz.worker.answers import answer_type
from irviz.worker.memory_limit import default_memory_limit
from irviz.worker.supervisor import (
    RUNS,
    TRIES,
    CancelledError,
    OnProgress,
    StartError,
    TimedOutError,
    WorkerError,
)

Result = TypeVar("Result")

_MOST_MODULES = 64
_keys: OrderedDict[ir.IRModule, object] = OrderedDict()
_sent: OrderedDict[str, object] = OrderedDict()
"""The keys of modules that were sent to the worker, which may have been replaced since."""
_numbers = count()


def forget_kernels() -> None:
    """Delete all compiled kernels: on disk, in memory, and in the workers."""
    for worker in (RUNS, TRIES):
        worker.stop()
    kernels.forget_kernels()


def module_key(mod: ir.IRModule) -> str:
    """Return the key that stands for this module object in messages to the worker."""
    return remembered(_keys, mod, lambda: f"module {next(_numbers)}", _MOST_MODULES)


def perform(
    work: Callable[[ModuleOf], Callable[[], Result]],
    mods: Mapping[str, ir.IRModule],
    name: str,
    config: RunConfig,
    on_progress: OnProgress | None,
) -> Result:
    """Do work on modules by key, in the worker or in this process as the config says.

    Modules are sent to the worker only if it does not have them; `name` is the function's, for
    errors. Raises RunError when the work fails, crashes, is cancelled, or exceeds a limit.
    """
    say_if_none_are_kept()
    if config.confine and (not config.isolate or config.where.remote is not None):
        raise InputError("confine=True is for a process of its own on this machine: see isolate")
    if config.isolate:
        return _perform_in_worker(work, mods, name, config, on_progress)
    try:
        return work(mods.__getitem__)()
    except MemoryError as failure:
        raise RunError(f"{name!r} needs more memory than there is") from failure


def _perform_in_worker(
    work: Callable[[ModuleOf], Callable[[], Result]],
    mods: Mapping[str, ir.IRModule],
    name: str,
    config: RunConfig,
    on_progress: OnProgress | None,
) -> Result:
    check_limits(config)
    memory = default_memory_limit() if config.memory is None else config.memory
    since = RUNS.cancels

    where = config.where

    def ask(packed: bytes, modules: Modules) -> Result:
        answer: Result = RUNS.call(  # type: ignore[assignment]
            partial(run_packed, where=where),
            packed,
            modules,
            seconds=config.seconds,
            memory=memory,
            on_progress=on_progress,
            on_output=_print,
            since=since,
            answer=get_args(answer_type(work))[-1],
            is_run=where.remote is None and not modules,
        )
        return answer

    try:
        callees = {n: one for mod in mods.values() for n, one in python_callees(mod).items()}
        packed = shared_arrays.dumps((work, pack_callees(callees)))
        try:
            return ask(packed, _pickled(mods) if not mods.keys() <= _sent.keys() else {})
        except UnknownModuleError:
            return ask(packed, _pickled(mods))
        except shared_arrays.UnsharedError:  # a system that hides the memory of processes
            packed = shared_arrays.dumps((work, pack_callees(callees)), whole=True)
            return ask(packed, _pickled(mods, whole=True))
    except (RunError, CalleeNotSentError) as failure:
        raise RunError(str(failure)) from failure.__cause__  # the other process's stack, as text
    except MemoryError:
        most = "there is" if memory is None else f"the {_size(memory)} that it may take"
        raise RunError(
            f"{name!r} needs more memory than {most}{_while(RUNS.doing)}: give it more with "
            "memory=…, in bytes, or smaller inputs"
        ) from None
    except WorkerError as failure:
        if not isinstance(failure, StartError):
            RUNS.start()
        raise _run_error(failure, name) from None
    except Exception as failure:  # pickling and unpickling may raise anything
        raise RunError(
            f"{name!r} cannot be run{_while(RUNS.doing)}: {error_summary(failure)}"
        ) from failure


def _pickled(mods: Mapping[str, ir.IRModule], *, whole: bool = False) -> dict[str, bytes]:
    for key in mods:
        remembered(_sent, key, lambda: None, _MOST_MODULES)
    return {key: pack_module(mod, whole=whole) for key, mod in mods.items()}


def _run_error(failure: WorkerError, name: str) -> RunError:
    """Return the error for a run without an answer."""
    doing = _while(failure.doing)
    if isinstance(failure, CancelledError):
        return CancelledRunError(f"{name!r} was cancelled{doing}")
    if isinstance(failure, TimedOutError):
        advice = "It may never end; give it more with seconds=…"
    elif isinstance(failure, StartError):
        advice = "Try again, or run it in this process with isolate=False"
    elif failure.doing.startswith("building"):
        advice = (
            "The compiler does so where memory is too little, or by a fault of its own: give it "
            "more with memory=…, in bytes"
        )
    else:
        advice = (
            "It may read or write outside of its buffers, call itself without end, or end the "
            "process; so may what it calls"
        )
    return RunError(f"{name!r} cannot be run: {failure}{doing}. {advice}")


def _while(doing: str) -> str:
    return f" while {doing}" if doing else ""


def _print(text: str) -> None:
    with contextlib.suppress(AttributeError, ValueError, OSError):  # a closed stream, or none
        sys.stdout.write(text)
        sys.stdout.flush()


def _size(nbytes: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6)):
        if nbytes >= size:
            return f"{nbytes / size:.3g} {unit}"
    return f"{nbytes:,} bytes"
