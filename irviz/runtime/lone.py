"""A PrimFunc by itself: the module that it needs, and what it is called with."""

from __future__ import annotations

from collections.abc import Mapping

from tvm import ir

from irviz.ir.fit import Argument
from irviz.runtime import prim_func
from irviz.runtime.inputs import Inputs
from irviz.runtime.machine import RunError


def lone(
    mod: ir.IRModule, name: str, inputs: Inputs, sizes: Mapping[str, int], seed: int
) -> tuple[ir.IRModule, list[Argument]]:
    """Return a module of a PrimFunc and of those it calls, and an argument for each parameter.

    Of the inputs it takes those of its parameters' names. Raises InputError or MisfitError for
    wrong ones, and RunError for one that is written for a GPU.
    """
    function = prim_func._prim_func(mod, name)
    threads = prim_func._threads(function)
    if threads:
        raise RunError(
            f"{name!r} cannot be run on the CPU: its loops are bound to {', '.join(threads)} of a "
            "GPU"
        )
    own = prim_func.own_inputs(function, inputs)
    arguments = prim_func._arguments(function, name, own, sizes, seed)
    return prim_func._with_callees(mod, name), arguments
