"""The main module of a worker process, which serves calls and exits with its parent."""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import TypeVar

import cloudpickle

from irviz.gc_pause import gc_paused
from irviz.worker.captured_output import buffer_lines, flush_stdout
from irviz.worker.child_process import Surroundings, end_with_parent
from irviz.worker.one_shot_process import in_spare_process, prepare_spare_process
from irviz.worker.responses import ANSWER, packed_call, send_frame, set_answer_file, set_pipe
from irviz.worker.sandbox import limited_memory
from irviz.worker.shared_arrays import Place, UnsharedError

Result = TypeVar("Result")

_POLL_SECONDS = 0.5


def main() -> None:
    """Answer requests until the parent closes the pipe.

    Each is the pickle of whether it is a run that a spare process can serve, of a pickled call, and
    of the place for large arrays of the answer.
    """
    requests = os.fdopen(os.dup(0), "rb")
    set_pipe(os.fdopen(os.dup(1), "wb"))
    os.dup2(2, 1)  # the file in which the parent reads the output
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 2)
    practice = cloudpickle.dumps((_practice, ()))
    with contextlib.suppress(EOFError, OSError):  # the parent is gone
        while True:
            is_run, *request = pickle.load(requests)  # noqa: S301 - from the parent
            answer = in_spare_process(request) if is_run else None
            send_frame(ANSWER, _answer(*request) if answer is None else answer)
            prepare_spare_process(_answer, practice, is_wanted=is_run)
    os._exit(0)


def _answer(request: bytes, place: Place | None) -> bytes:
    """Run the requested call; return its packed result, or exception and traceback.

    Large arrays are written to `place`.
    """
    number = None
    if place is not None:
        with contextlib.suppress(UnsharedError):  # another process's files are hidden here
            number = place.open(os.O_RDWR)
    set_answer_file(number)

    def called() -> object:
        function, arguments = cloudpickle.loads(request)
        return function(*arguments)

    try:
        return packed_call(called)
    finally:
        if number is not None:
            os.close(number)


def initialize(prepare: Callable[[], None], parent: int, surroundings: Surroundings) -> None:
    """Tie this process to its parent, unbuffer its output, then prepare it."""
    exit_with_parent(parent)
    surroundings.adopt()
    buffer_lines()
    prepare()


def exit_with_parent(parent: int) -> None:
    """Make this process exit when its parent does, however that ends.

    On Linux the system kills it when the thread that started it ends. Elsewhere a thread polls,
    which is not enough alone: it waits while a call holds the GIL.
    """
    end_with_parent(parent)
    threading.Thread(target=_poll_parent, args=(parent,), daemon=True).start()


def _practice() -> object:
    """Do a little of what every run does."""
    import tvm

    return tvm.runtime.empty((1,)).numpy()


def load_tvm() -> None:
    """Import TVM without torch, which TVM loads wherever it is installed."""
    sys.modules.setdefault("torch", None)  # type: ignore[arg-type] # makes `import torch` fail
    try:
        with gc_paused():
            import tvm  # first, so that it is named if it is missing
            import tvm.relax
            import tvm.s_tir  # noqa: F401
    finally:
        if sys.modules["torch"] is None:
            del sys.modules["torch"]


def call_with_limit(
    memory: int | None, function: Callable[..., Result], *arguments: object
) -> Result:
    """Call a function with a limit on the bytes that it may allocate."""
    try:
        with limited_memory(memory):
            return function(*arguments)
    except BaseException as failure:
        _clear_frames(failure)
        raise
    finally:
        flush_stdout()


def _clear_frames(failure: BaseException) -> None:
    """Free what the failed functions refer to, which may be most of the memory."""
    chain: list[BaseException | None] = [failure]
    seen = set[int]()
    while chain:
        one = chain.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            traceback.clear_frames(one.__traceback__)
            chain += [one.__cause__, one.__context__]


def _poll_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_POLL_SECONDS)
    os._exit(1)
