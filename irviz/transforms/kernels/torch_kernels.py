"""PyTorch's functions as library kernels, over the same memory; torch is imported at a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.generic]
Function = Callable[..., None]

_SAME = "(...)->(...)"
_PAIR = "(...),(...)->(...)"


def matmul(x: Array, w: Array, out: Array) -> None:
    """Compute x @ w, by PyTorch, the weight as (in, out)."""
    torch, (a, b, to) = _tensors(x, w, out)
    torch.matmul(a, b, out=to)


def linear(x: Array, w: Array, b: Array, out: Array) -> None:
    """Compute x @ w.T + b, by PyTorch, the weight as (out, in)."""
    torch, (rows, weight, bias, to) = _tensors(x, w, b, out)
    torch.addmm(bias, rows, weight.T, out=to)


def add(x: Array, y: Array, out: Array) -> None:
    """Compute x + y, by PyTorch."""
    torch, (a, b, to) = _tensors(x, y, out)
    torch.add(a, b, out=to)


def multiply(x: Array, y: Array, out: Array) -> None:
    """Compute x * y, by PyTorch."""
    torch, (a, b, to) = _tensors(x, y, out)
    torch.mul(a, b, out=to)


def relu(x: Array, out: Array) -> None:
    """Compute max(x, 0), by PyTorch."""
    torch, (a, to) = _tensors(x, out)
    torch.clamp(a, min=0, out=to)


def exp(x: Array, out: Array) -> None:
    """Compute e to the x, by PyTorch."""
    torch, (a, to) = _tensors(x, out)
    torch.exp(a, out=to)


def tanh(x: Array, out: Array) -> None:
    """Compute the hyperbolic tangent, by PyTorch."""
    torch, (a, to) = _tensors(x, out)
    torch.tanh(a, out=to)


def sigmoid(x: Array, out: Array) -> None:
    """Compute 1 / (1 + exp(-x)), by PyTorch."""
    torch, (a, to) = _tensors(x, out)
    torch.sigmoid(a, out=to)


def gelu(x: Array, out: Array) -> None:
    """Compute the GELU by the error function, by PyTorch."""
    torch, (a, to) = _tensors(x, out)
    to.copy_(torch.nn.functional.gelu(a))


def softmax(x: Array, out: Array) -> None:
    """Compute the softmax over the last axis, by PyTorch."""
    torch, (a, to) = _tensors(x, out)
    torch.softmax(a, dim=-1, out=to)


def _tensors(*arrays: Array) -> tuple[Any, list[Any]]:
    """Return torch, and the arrays as its tensors, which copies nothing."""
    import torch

    return torch, [torch.from_numpy(array) for array in arrays]


TORCH: tuple[tuple[str, str, Function], ...] = (
    ("matmul", "(...,k),(k,n)->(...,n)", matmul),
    ("linear", "(b,k),(n,k),(n)->(b,n)", linear),
    ("add", _PAIR, add),
    ("multiply", _PAIR, multiply),
    ("relu", _SAME, relu),
    ("exp", _SAME, exp),
    ("tanh", _SAME, tanh),
    ("sigmoid", _SAME, sigmoid),
    ("gelu", _SAME, gelu),
    ("softmax", "(...,n)->(...,n)", softmax),
)
"""What is registered as `torch.` and the name: the name, the signature and the function."""
