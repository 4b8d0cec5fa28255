"""Library kernels: registered functions that can take a PrimFunc's place.

A kernel is called as the VM calls a PrimFunc: inputs first, then the tensors it writes. It sees
them as NumPy arrays over the VM's own memory (DLPack, no copy).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

import numpy as np
import tvm

from irviz.transforms.kernels.definitions import (
    FLOATS,
    check_arity,
    define,
    defined,
    first_line,
    in_dtypes,
)
from irviz.transforms.kernels.numpy_kernels import NUMPY
from irviz.transforms.kernels.signature import Signature
from irviz.transforms.kernels.topi_definitions import TOPI
from irviz.transforms.kernels.torch_kernels import TORCH

__all__ = ["Kernel", "define", "defined", "is_current", "kernels", "register"]

KernelFunction = Callable[..., None]

_kernels: dict[str, Kernel] = {}
_exposed: dict[str, tvm.runtime.Object] = {}
"""What TVM has under a kernel's name, as long as nobody puts something else there."""


@dataclass(frozen=True, eq=False)
class Kernel:
    """A registered function, what it takes and what it says of itself.

    `definition` names what computes the same in TE, "" where nothing is known to; `is_framework`
    tells a kernel of irviz's own that loads a framework.
    """

    name: str
    signatures: tuple[Signature, ...]
    summary: str
    function: KernelFunction
    definition: str = ""
    is_framework: bool = False

    @property
    def signature(self) -> Signature:
        """The signature, of the first of its dtypes."""
        return self.signatures[0]


def register(
    name: str,
    signature: str,
    dtype: str | Sequence[str] = "float32",
    *,
    definition: str = "",
) -> Callable[[KernelFunction], KernelFunction]:
    """Register the decorated function as the library kernel `name`.

    `signature` is in NumPy's notation of generalized ufuncs, `(b,m),(n,m),(n)->(b,n)`, with one
    dtype for all; several dtypes are alternatives. The function gets one array for each tensor,
    outputs last, and writes into those. `definition` names what computes the same in TE, such as
    "topi.linear". Registering a name again replaces the kernel. Raises ValueError when the
    signature cannot be read, the name belongs to a function of TVM or of another library, or the
    function does not take that many arrays.
    """
    signatures = in_dtypes(signature, dtype)
    if name.startswith(("vm.", "runtime.", "ffi.", "relax.", "tirx.", "ir.")):
        raise ValueError(
            f"{name!r} would hide a function of TVM's own: choose a name such as 'env.{name}'"
        )
    # names in env. are the course's for kernels: its own programs register them with TVM directly
    is_theirs = name not in _kernels and not name.startswith("env.")
    if is_theirs and tvm.get_global_func(name, allow_missing=True) is not None:
        raise ValueError(
            f"{name!r} is registered already, and not as a kernel: choose a name such as "
            f"'env.{name}'"
        )

    def decorate(function: KernelFunction) -> KernelFunction:
        tensors = len(signatures[0].inputs) + len(signatures[0].outputs)
        check_arity("kernel", name, function, tensors, signatures[0])
        _kernels[name] = Kernel(name, signatures, first_line(function), function, definition)
        _expose(name)
        return function

    return decorate


def kernels() -> Mapping[str, Kernel]:
    """Return the registered kernels by name."""
    return MappingProxyType(_kernels)


def is_current(name: str) -> bool:
    """Tell whether TVM calls the kernel of this name, and not what was registered over it."""
    there = tvm.get_global_func(name, allow_missing=True)
    return name in _kernels and there is not None and _exposed[name].same_as(there)


def _expose(name: str) -> None:
    tvm.register_global_func(name, _OnTensors(name), override=True)
    _exposed[name] = tvm.get_global_func(name)


class _OnTensors:
    """What TVM calls: the kernel of a name, on NumPy's view of the tensors."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *tensors: tvm.runtime.Tensor) -> None:
        # looked up at each call: a machine keeps what it found under the name when it was built
        on_arrays(_kernels[self.name].function, *tensors)

    def __reduce__(self) -> tuple[object, ...]:
        """Travel as the kernel's function alone: another process has another registry."""
        return partial, (on_arrays, _kernels[self.name].function)


def on_arrays(function: KernelFunction, *tensors: tvm.runtime.Tensor) -> None:
    """Call a kernel's function on NumPy's view of tensors."""
    function(*(np.from_dlpack(tensor) for tensor in tensors))


@register("env.linear", "(b,m),(n,m),(n)->(b,n)", definition="topi.linear")
def _linear(x: np.ndarray, w: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """Compute x @ w.T + b, by NumPy's matmul."""
    np.matmul(x, w.T, out=out)
    np.add(out, b, out=out)


@register("env.relu", "(...)->(...)", definition="topi.relu")
def _relu(x: np.ndarray, out: np.ndarray) -> None:
    """Compute max(x, 0), by NumPy."""
    np.maximum(x, 0, out=out)


def _register_all() -> None:
    """Register what is always there, and what PyTorch computes where that is installed."""
    for name, signature, function in TOPI:
        define(f"topi.{name}", signature, FLOATS)(function)
    for name, signature, kernel in NUMPY:
        register(f"numpy.{name}", signature, FLOATS, definition=f"topi.{name}")(kernel)
    if importlib.util.find_spec("torch") is not None:
        for name, signature, kernel in TORCH:
            full = f"torch.{name}"
            register(full, signature, FLOATS, definition=f"topi.{name}")(kernel)
            _kernels[full] = replace(_kernels[full], is_framework=True)


_register_all()
