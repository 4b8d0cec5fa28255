"""Library kernels: registered functions that can replace a PrimFunc.

The VM calls a kernel like a PrimFunc: inputs first, then the tensors to write. The kernel gets
NumPy arrays that share the VM's memory (DLPack, no copy).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import numpy as np
import tvm

from irviz.transforms.entry_points import KERNELS, load_entry_points
from irviz.transforms.kernels.registered_operators import (
    OPERATORS,
    numpy_linear,
    numpy_relu,
    run_on_torch,
)
from irviz.transforms.kernels.te_definitions import (
    FLOATS,
    RegisteredFunction,
    TEDefinition,
    add_definition,
    checked_summary,
    define,
    definitions,
    parse_signatures,
)

__all__ = ["LibraryKernel", "define", "definitions", "is_current", "kernels", "register"]

KernelFunction = Callable[..., object]

_kernels: dict[str, LibraryKernel] = {}
_exposed: dict[str, tvm.runtime.Object] = {}
"""The functions that were registered with TVM for the kernels."""


@dataclass(frozen=True, eq=False)
class LibraryKernel(RegisteredFunction):
    """A function that can replace a PrimFunc.

    `definition` names the TE definition that computes the same, "" if there is none;
    `is_framework` marks a kernel of irviz's own that loads a framework when it is called.
    """

    definition: str = ""
    is_framework: bool = False


def register(
    name: str,
    signature: str,
    dtype: str | Sequence[str] = "float32",
    *,
    definition: str = "",
) -> Callable[[KernelFunction], KernelFunction]:
    """Register the decorated function as the library kernel `name`.

    The function gets one array for each tensor, the outputs last, and writes into those.
    Registering a name again replaces the kernel.

    Args:
        name: What `call_dps_packed` calls, such as "env.linear".
        signature: NumPy's notation for generalized ufuncs, such as `(b,m),(n,m),(n)->(b,n)`.
        dtype: The dtype of all tensors, or several dtypes as alternatives.
        definition: The TE definition that computes the same, such as "topi.linear".

    Raises:
        ValueError: The signature cannot be parsed, the name belongs to TVM or another library,
            or the function takes another number of arrays.
    """
    signatures = parse_signatures(signature, dtype)
    if name.startswith(("vm.", "runtime.", "ffi.", "relax.", "tirx.", "ir.")):
        raise ValueError(
            f"{name!r} would hide a function of TVM's own: choose a name such as 'env.{name}'"
        )
    # the course's own programs register kernels named env.… with TVM directly
    is_foreign = name not in _kernels and not name.startswith("env.")
    if is_foreign and tvm.get_global_func(name, allow_missing=True) is not None:
        raise ValueError(
            f"{name!r} is registered already, and not as a kernel: choose a name such as "
            f"'env.{name}'"
        )

    def decorate(function: KernelFunction) -> KernelFunction:
        first = signatures[0]
        summary = checked_summary("kernel", name, first, function, len(first.outputs))
        _add(LibraryKernel(name, signatures, summary, function, definition))
        return function

    return decorate


def kernels() -> Mapping[str, LibraryKernel]:
    """Return the registered kernels by name, other packages' too."""
    load_entry_points(KERNELS)
    return MappingProxyType(_kernels)


def is_current(name: str) -> bool:
    """Tell whether TVM still calls the kernel of this name, and not a later registration."""
    registered = tvm.get_global_func(name, allow_missing=True)
    return name in _kernels and registered is not None and _exposed[name].same_as(registered)


def _add(kernel: LibraryKernel) -> None:
    _kernels[kernel.name] = kernel
    tvm.register_global_func(kernel.name, _TensorKernel(kernel.name), override=True)
    _exposed[kernel.name] = tvm.get_global_func(kernel.name)


class _TensorKernel:
    """The function registered with TVM: calls a kernel on NumPy's view of the tensors."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *tensors: tvm.runtime.Tensor) -> None:
        # looked up at each call, because a VM keeps the function that it was built with
        on_arrays(_kernels[self.name].function, *tensors)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the kernel's function alone: another process has a registry of its own."""
        return partial, (on_arrays, _kernels[self.name].function)


def on_arrays(function: KernelFunction, *tensors: tvm.runtime.Tensor) -> None:
    """Call a kernel's function on NumPy's view of tensors."""
    function(*(np.from_dlpack(tensor) for tensor in tensors))


def _register_operators() -> None:
    has_torch = importlib.util.find_spec("torch") is not None
    for op in OPERATORS:
        name, signatures = f"topi.{op.name}", parse_signatures(op.signature, FLOATS)
        add_definition(TEDefinition(name, signatures, op.summary, op.te))
        if op.numpy is not None:
            _add(LibraryKernel(f"numpy.{op.name}", signatures, op.summary, op.numpy, name))
        if op.torch and has_torch:
            signatures = parse_signatures(op.torch_signature or op.signature, FLOATS)
            summary = f"{op.summary.removesuffix('.')}, by PyTorch."
            kernel = partial(run_on_torch, op.torch)
            _add(LibraryKernel(f"torch.{op.name}", signatures, summary, kernel, name, True))


register("env.linear", "(b,m),(n,m),(n)->(b,n)", definition="topi.linear")(numpy_linear)
register("env.relu", "(...)->(...)", definition="topi.relu")(numpy_relu)
_register_operators()
