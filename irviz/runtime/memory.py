"""What memory a function holds as it runs, read from what the build makes of it."""

from __future__ import annotations

from collections.abc import Mapping

import cloudpickle
from tvm import ir

from irviz.ir.identity import relax_function
from irviz.ir.lowering import PLANS, lowered
from irviz.model.memory import MemoryUse
from irviz.runtime.allocations import Allocations
from irviz.runtime.inputs import InputError
from irviz.runtime.machine import RunError, said
from irviz.worker.pool import TRIES, WorkerError

SECONDS = 120.0
"""How long the passes of the build may take."""


def memory_use(
    mod: ir.IRModule, function: str = "main", sizes: Mapping[str, int] | None = None
) -> MemoryUse:
    """Return what is allocated while a function runs, without running it.

    The passes that `tvm.compile(mod, target="llvm")` has are run in the worker until buffers
    stand in storages, and are let go; `sizes` are the symbolic dimensions by name. What a called
    function allocates belongs to its call. Raises InputError for a size that is missing or wrong,
    NoFunctionError for no such function, and RunError when TVM cannot plan the memory.
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
        raise RunError(f"the module cannot be sent to the worker: {said(failure)}") from None
    try:
        return TRIES.call(_read, sent, seconds=SECONDS)
    except WorkerError as failure:
        raise RunError(f"the memory of {function!r} could not be planned: {failure}") from None


def _read(sent: bytes) -> MemoryUse:
    """Lower the module and read its allocations; the worker calls this."""
    mod, function, sizes = cloudpickle.loads(sent)
    try:
        planned = lowered(mod, PLANS)
    except Exception as failure:  # TVM raises what its C++ side threw, of any class
        raise RunError(
            f"the memory of {function!r} could not be planned: {said(failure)}"
        ) from None
    return Allocations(planned, sizes).read(function)
