"""NumPy's functions as library kernels: inputs first, then the array to write into."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.generic]
Function = Callable[..., None]

_SAME = "(...)->(...)"
_PAIR = "(...),(...)->(...)"
_VECTOR = "(...,n),(n)->(...,n)"


def matmul(x: Array, w: Array, out: Array) -> None:
    """Compute x @ w, the weight as (in, out)."""
    np.matmul(x, w, out=out)


def matmul_transposed(x: Array, w: Array, out: Array) -> None:
    """Compute x @ w.T, the weight as (out, in)."""
    np.matmul(x, w.T, out=out)


def batch_matmul(x: Array, y: Array, out: Array) -> None:
    """Compute x @ y for each matrix of a batch."""
    np.matmul(x, y, out=out)


def matmul_add(x: Array, w: Array, b: Array, out: Array) -> None:
    """Compute x @ w + b, the weight as (in, out)."""
    np.matmul(x, w, out=out)
    np.add(out, b, out=out)


def linear(x: Array, w: Array, b: Array, out: Array) -> None:
    """Compute x @ w.T + b, the weight as (out, in)."""
    np.matmul(x, w.T, out=out)
    np.add(out, b, out=out)


def add(x: Array, y: Array, out: Array) -> None:
    """Compute x + y; a vector is added to each row."""
    np.add(x, y, out=out)


def subtract(x: Array, y: Array, out: Array) -> None:
    """Compute x - y."""
    np.subtract(x, y, out=out)


def multiply(x: Array, y: Array, out: Array) -> None:
    """Compute x * y; each row is multiplied by a vector."""
    np.multiply(x, y, out=out)


def divide(x: Array, y: Array, out: Array) -> None:
    """Compute x / y."""
    np.divide(x, y, out=out)


def maximum(x: Array, y: Array, out: Array) -> None:
    """Compute the larger of x and y, element by element."""
    np.maximum(x, y, out=out)


def minimum(x: Array, y: Array, out: Array) -> None:
    """Compute the smaller of x and y, element by element."""
    np.minimum(x, y, out=out)


def relu(x: Array, out: Array) -> None:
    """Compute max(x, 0)."""
    np.maximum(x, 0, out=out)


def exp(x: Array, out: Array) -> None:
    """Compute e to the x."""
    np.exp(x, out=out)


def log(x: Array, out: Array) -> None:
    """Compute the natural logarithm."""
    np.log(x, out=out)


def sqrt(x: Array, out: Array) -> None:
    """Compute the square root."""
    np.sqrt(x, out=out)


def tanh(x: Array, out: Array) -> None:
    """Compute the hyperbolic tangent."""
    np.tanh(x, out=out)


def sigmoid(x: Array, out: Array) -> None:
    """Compute 1 / (1 + exp(-x)), by tanh, which does not overflow."""
    np.multiply(x, 0.5, out=out)
    np.tanh(out, out=out)
    np.add(out, 1, out=out)
    np.multiply(out, 0.5, out=out)


def silu(x: Array, out: Array) -> None:
    """Compute x * sigmoid(x)."""
    sigmoid(x, out)
    np.multiply(out, x, out=out)


def softmax(x: Array, out: Array) -> None:
    """Compute the softmax over the last axis."""
    np.subtract(x, x.max(axis=-1, keepdims=True), out=out)
    np.exp(out, out=out)
    np.divide(out, out.sum(axis=-1, keepdims=True), out=out)


def row_sum(x: Array, out: Array) -> None:
    """Compute the sum over the last axis."""
    np.sum(x, axis=-1, out=out)


def row_max(x: Array, out: Array) -> None:
    """Compute the largest over the last axis."""
    np.max(x, axis=-1, out=out)


def transpose(x: Array, out: Array) -> None:
    """Turn rows into columns."""
    np.copyto(out, x.T)


NUMPY: tuple[tuple[str, str, Function], ...] = (
    ("matmul", "(...,k),(k,n)->(...,n)", matmul),
    ("matmul_transposed", "(...,k),(n,k)->(...,n)", matmul_transposed),
    ("batch_matmul", "(...,m,k),(...,k,n)->(...,m,n)", batch_matmul),
    ("matmul_add", "(...,k),(k,n),(n)->(...,n)", matmul_add),
    ("linear", "(...,k),(n,k),(n)->(...,n)", linear),
    ("add", _PAIR, add),
    ("add_vector", _VECTOR, add),
    ("subtract", _PAIR, subtract),
    ("multiply", _PAIR, multiply),
    ("multiply_vector", _VECTOR, multiply),
    ("divide", _PAIR, divide),
    ("maximum", _PAIR, maximum),
    ("minimum", _PAIR, minimum),
    ("relu", _SAME, relu),
    ("exp", _SAME, exp),
    ("log", _SAME, log),
    ("sqrt", _SAME, sqrt),
    ("tanh", _SAME, tanh),
    ("sigmoid", _SAME, sigmoid),
    ("silu", _SAME, silu),
    ("softmax", "(...,n)->(...,n)", softmax),
    ("sum", "(...,n)->(...)", row_sum),
    ("max", "(...,n)->(...)", row_max),
    ("transpose", "(m,n)->(n,m)", transpose),
)
"""What is registered as `numpy.` and the name: the name, the signature and the function."""
