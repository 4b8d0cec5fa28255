"""Build a module for the CPU and run it on Relax's virtual machine."""

from __future__ import annotations

import statistics
import time
from collections import OrderedDict
from collections.abc import Mapping

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import ir, relax

from irviz.ir.identity import relax_function
from irviz.model.result import RunResult
from irviz.runtime.inputs import Array, InputError, argument_lists

_MOST_BUILT = 16
_built: OrderedDict[ir.IRModule, relax.VirtualMachine] = OrderedDict()


class RunError(RuntimeError):
    """A module that could not be built or run; the message says what TVM said."""


def run(
    mod: ir.IRModule,
    function: str = "main",
    inputs: Mapping[str, Array] | Array | None = None,
    params: Mapping[str, Array] | None = None,
    labels: NDArray[np.int64] | None = None,
) -> RunResult:
    """Build the module for `llvm` and call the function on the CPU, once for each case.

    What `inputs` and `params` may be, `argument_lists` says; `labels` are the right classes of
    the cases. A module is built once and kept while it is among the last sixteen. Raises
    RunError when TVM cannot build or run it, and InputError or MisfitError for wrong inputs.
    """
    cases = argument_lists(relax_function(mod, function), inputs, params or {})
    if labels is not None and len(labels) != len(cases):
        raise InputError(
            f"there are {len(labels)} labels and {len(cases)} cases: give one label for each case"
        )
    machine = _machine(mod)
    tensors: dict[int, tvm.runtime.Tensor] = {}  # a parameter is the same array in every case
    outputs, seconds = [], []
    for case in cases:
        arguments = []
        for array in case:
            if id(array) not in tensors:
                tensors[id(array)] = tvm.runtime.tensor(np.asarray(array, order="C"))
            arguments.append(tensors[id(array)])
        start = time.perf_counter()
        try:
            value = machine[function](*arguments)
        except Exception as failure:  # a kernel written in Python raises what it likes
            raise RunError(f"{function!r} failed as it ran: {said(failure)}") from failure
        seconds.append(time.perf_counter() - start)
        outputs.append(_arrays(value))
    columns = list(zip(*outputs, strict=True))
    for index, column in enumerate(columns):
        shapes = list(dict.fromkeys(array.shape for array in column))
        if len(shapes) > 1:
            raise RunError(
                f"output {index} has shape {shapes[0]} in one case and {shapes[1]} in another: "
                "give one case at a time"
            )
    return RunResult(tuple(map(np.stack, columns)), statistics.median(seconds), labels)


def _machine(mod: ir.IRModule) -> relax.VirtualMachine:
    if mod in _built:
        _built.move_to_end(mod)
        return _built[mod]
    try:
        machine = relax.VirtualMachine(tvm.compile(mod, target="llvm"), tvm.cpu())
    except Exception as failure:  # TVM raises what its C++ side threw, of any class
        raise RunError(f"the module could not be built: {said(failure)}") from failure
    _built[mod] = machine
    while len(_built) > _MOST_BUILT:
        _built.popitem(last=False)
    return machine


def _arrays(value: object) -> list[Array]:
    if isinstance(value, tvm.runtime.Tensor):
        return [value.numpy()]
    if isinstance(value, tuple | list | tvm.ir.Array):
        return [array for item in value for array in _arrays(item)]
    return [np.asarray(value)]


def said(failure: Exception) -> str:
    """Return an exception's class and the last line of its words."""
    lines = [line for line in str(failure).splitlines() if line.strip()]
    return f"{type(failure).__name__}: {lines[-1].strip()}" if lines else type(failure).__name__
