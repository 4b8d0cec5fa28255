"""Library kernels: registered functions that can take a PrimFunc's place.

A kernel is called as the VM calls a PrimFunc: inputs first, then the tensors it writes. It sees
them as NumPy arrays over the VM's own memory (DLPack, no copy).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import tvm

from irviz.transforms.signature import Signature, parse

KernelFunction = Callable[..., None]

_kernels: dict[str, Kernel] = {}


@dataclass(frozen=True)
class Kernel:
    """A registered function, what it takes and what it says of itself."""

    name: str
    signature: Signature
    summary: str
    function: KernelFunction


def register(
    name: str, signature: str, dtype: str = "float32"
) -> Callable[[KernelFunction], KernelFunction]:
    """Register the decorated function as the library kernel `name`.

    `signature` is in NumPy's notation of generalized ufuncs, `(b,m),(n,m),(n)->(b,n)`, with one
    dtype for all. The function gets one array for each tensor, outputs last, and writes into
    those. Registering a name again replaces the kernel. Raises ValueError when the signature
    cannot be read, the name belongs to a function of TVM or of another library, or the function
    does not take that many arrays.
    """
    parsed = parse(signature, dtype)
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
        _check_arity(name, function, parsed)
        lines = (function.__doc__ or "").strip().splitlines()
        _kernels[name] = Kernel(name, parsed, lines[0] if lines else "", function)
        _expose(name)
        return function

    return decorate


def kernels() -> Mapping[str, Kernel]:
    """Return the registered kernels by name."""
    return MappingProxyType(_kernels)


def _check_arity(name: str, function: KernelFunction, signature: Signature) -> None:
    count = len(signature.inputs) + len(signature.outputs)
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        raise ValueError(
            f"the kernel {name!r} takes {inspect.signature(function)}, and its signature "
            f"{signature} has {count} tensors: give it a parameter for each, outputs last"
        ) from None


def _expose(name: str) -> None:
    def on_tensors(*tensors: tvm.runtime.Tensor) -> None:
        # looked up at each call: a machine keeps what it found under the name when it was built
        _kernels[name].function(*(np.from_dlpack(tensor) for tensor in tensors))

    tvm.register_global_func(name, on_tensors, override=True)


@register("env.linear", "(b,m),(n,m),(n)->(b,n)")
def _linear(x: np.ndarray, w: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """Compute x @ w.T + b, by NumPy's matmul."""
    np.matmul(x, w.T, out=out)
    np.add(out, b, out=out)


@register("env.relu", "(...)->(...)")
def _relu(x: np.ndarray, out: np.ndarray) -> None:
    """Compute max(x, 0), by NumPy."""
    np.maximum(x, 0, out=out)
