"""The memory that a function holds as it runs, read from the lowered module."""

from __future__ import annotations

from collections.abc import Mapping

import cloudpickle
from tvm import ir

from irviz.errors import InputError, RunError
from irviz.ir.lowering import KILL_AFTER_LAST_USE, lower
from irviz.ir.module_functions import relax_function
from irviz.model.runs.memory_use import MemoryUse
from irviz.runtime.local.run_errors import error_summary
from irviz.runtime.memory.simulator import Allocations
from irviz.worker.supervisor import TRIES, WorkerError

SECONDS = 120.0
"""The time limit for the passes of the build."""


def memory_use(
    mod: ir.IRModule, function: str = "main", sizes: Mapping[str, int] | None = None
) -> MemoryUse:
    """Return what is allocated while a function runs, without running it.

    The passes of `tvm.compile(mod, target="llvm")` are run in the worker, up to the one that
    plans memory. Allocations of a called function belong to its call.

    Raises:
        InputError: A size is missing or invalid.
        NoFunctionError: The module has no such function.
        RunError: TVM cannot plan the memory.
    """
    relax_function(mod, function)
    known = dict(sizes or {})
    wrong = [name for name, size in known.items() if not isinstance(size, int) or size < 0]
    if wrong:
        raise InputError(
            f"the size {wrong[0]!r} is {known[wrong[0]]!r}: give an integer that is not negative"
        )
    try:
        sent = cloudpickle.dumps((mod, function, known))
    except Exception as failure:  # TVM raises what its C++ side threw, of any class
        raise RunError(
            f"the module cannot be sent to the worker: {error_summary(failure)}"
        ) from None
    try:
        return TRIES.call(_read, sent, seconds=SECONDS)
    except WorkerError as failure:
        raise RunError(f"the memory of {function!r} could not be planned: {failure}") from None


def _read(sent: bytes) -> MemoryUse:
    """Lower the module and read its allocations; this runs in the worker."""
    mod, function, sizes = cloudpickle.loads(sent)
    try:
        planned = lower(mod, KILL_AFTER_LAST_USE)
    except Exception as failure:  # TVM raises what its C++ side threw, of any class
        raise RunError(
            f"the memory of {function!r} could not be planned: {error_summary(failure)}"
        ) from None
    return Allocations(planned, sizes).read(function)
