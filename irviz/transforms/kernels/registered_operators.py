"""The operators that irviz registers itself: one row each, with an implementation per back end.

An operator's TE implementation is the definition `topi.<name>`; its NumPy and PyTorch
implementations are the kernels `numpy.<name>` and `torch.<name>`, which write into their last
array. The names of the TE parameters become those of the PrimFuncs made from a definition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm import te, topi

Array = NDArray[np.generic]

_UNARY = "(...)->(...)"
_BINARY = "(...),(...)->(...)"
_VECTOR = "(...,n),(n)->(...,n)"
_REDUCTION = "(...,n)->(...)"


@dataclass(frozen=True)
class Operator:
    """An operator, its signature in gufunc notation, and its implementations.

    `te` takes and returns TE tensors. `numpy` takes arrays, the output last. `torch` is the name
    of a function of PyTorch that takes `out`, or a function of the torch module and tensors, the
    output last; its signature is `torch_signature` where that is narrower.
    """

    name: str
    signature: str
    summary: str
    te: Callable[..., te.Tensor]
    numpy: Callable[..., object] | None = None
    torch: str | Callable[..., object] = ""
    torch_signature: str = ""


def run_on_torch(function: str | Callable[..., object], *arrays: Array) -> None:
    """Call a PyTorch implementation on tensors over the arrays' memory; torch is imported now."""
    import torch

    *inputs, out = map(torch.from_numpy, arrays)
    if isinstance(function, str):
        getattr(torch, function)(*inputs, out=out)
    else:
        function(torch, *inputs, out)


def _te_matmul(
    x: te.Tensor, columns: Any, weight: Callable[[Any, tuple[Any, ...]], Any]
) -> te.Tensor:
    """Return the sum over k of `x[..., k] * weight(k, indices)`, with so many columns."""
    k = te.reduce_axis((0, x.shape[-1]), "k")
    return te.compute(
        (*x.shape[:-1], columns),
        lambda *i: te.sum(x(*i[:-1], k) * weight(k, i), axis=k),
        name="matmul",
    )


def _matmul(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    return _te_matmul(x, w.shape[1], lambda k, i: w(k, i[-1]))


def _matmul_transposed(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    return _te_matmul(x, w.shape[0], lambda k, i: w(i[-1], k))


def _batch_matmul(x: te.Tensor, y: te.Tensor) -> te.Tensor:
    return _te_matmul(x, y.shape[-1], lambda k, i: y(*i[:-2], k, i[-1]))


def _te_add(x: te.Tensor, y: te.Tensor) -> te.Tensor:
    return topi.add(x, y)


def _te_multiply(x: te.Tensor, y: te.Tensor) -> te.Tensor:
    return topi.multiply(x, y)


def _te_gelu(x: te.Tensor) -> te.Tensor:
    half = topi.multiply(x, 0.5)
    return topi.multiply(half, topi.add(topi.erf(topi.multiply(x, 0.5**0.5)), 1.0))


def numpy_linear(x: Array, w: Array, b: Array, out: Array) -> None:
    """Compute x @ w.T + b, by NumPy's matmul."""
    np.matmul(x, w.T, out=out)
    np.add(out, b, out=out)


def numpy_relu(x: Array, out: Array) -> None:
    """Compute max(x, 0), by NumPy."""
    np.maximum(x, 0, out=out)


def _numpy_sigmoid(x: Array, out: Array) -> None:
    """Compute the sigmoid by tanh, which does not overflow."""
    np.multiply(x, 0.5, out=out)
    np.tanh(out, out=out)
    np.add(out, 1, out=out)
    np.multiply(out, 0.5, out=out)


def _numpy_silu(x: Array, out: Array) -> None:
    _numpy_sigmoid(x, out)
    np.multiply(out, x, out=out)


def _numpy_softmax(x: Array, out: Array) -> None:
    np.subtract(x, x.max(axis=-1, keepdims=True), out=out)
    np.exp(out, out=out)
    np.divide(out, out.sum(axis=-1, keepdims=True), out=out)


OPERATORS = (
    Operator(
        *("matmul", "(...,k),(k,n)->(...,n)", "Compute x @ w, the weight as (in, out)."),
        te=_matmul,
        numpy=np.matmul,
        torch="matmul",
    ),
    Operator(
        *("matmul_transposed", "(...,k),(n,k)->(...,n)"),
        *("Compute x @ w.T, the weight as (out, in).", _matmul_transposed),
        lambda x, w, out: np.matmul(x, w.T, out=out),
    ),
    Operator(
        *("batch_matmul", "(...,m,k),(...,k,n)->(...,m,n)"),
        "Compute x @ y for each matrix of a batch.",
        _batch_matmul,
        np.matmul,
    ),
    Operator(
        *("matmul_add", "(...,k),(k,n),(n)->(...,n)"),
        "Compute x @ w + b, the weight as (in, out).",
        lambda x, w, b: topi.add(_matmul(x, w), b),
        lambda x, w, b, out: numpy_linear(x, w.T, b, out),
    ),
    Operator(
        *("linear", "(...,k),(n,k),(n)->(...,n)"),
        "Compute x @ w.T + b, the weight as (out, in).",
        lambda x, w, b: topi.add(_matmul_transposed(x, w), b),
        numpy_linear,
        lambda torch, x, w, b, out: torch.addmm(b, x, w.T, out=out),
        torch_signature="(b,k),(n,k),(n)->(b,n)",
    ),
    Operator("add", _BINARY, "Compute x + y.", _te_add, np.add, "add"),
    Operator("add_vector", _VECTOR, "Add a vector to each row.", _te_add, np.add),
    Operator("subtract", _BINARY, "Compute x - y.", lambda x, y: topi.subtract(x, y), np.subtract),
    Operator("multiply", _BINARY, "Compute x * y.", _te_multiply, np.multiply, "mul"),
    Operator(
        *("multiply_vector", _VECTOR, "Multiply each row by a vector."), _te_multiply, np.multiply
    ),
    Operator("divide", _BINARY, "Compute x / y.", lambda x, y: topi.divide(x, y), np.divide),
    Operator(
        *("maximum", _BINARY, "Compute the larger of x and y, element by element."),
        *(lambda x, y: topi.maximum(x, y), np.maximum),
    ),
    Operator(
        *("minimum", _BINARY, "Compute the smaller of x and y, element by element."),
        *(lambda x, y: topi.minimum(x, y), np.minimum),
    ),
    Operator(
        *("relu", _UNARY, "Compute max(x, 0).", topi.nn.relu, numpy_relu),
        lambda torch, x, out: torch.clamp(x, min=0, out=out),
    ),
    Operator("exp", _UNARY, "Compute e to the x.", topi.exp, np.exp, "exp"),
    Operator("log", _UNARY, "Compute the natural logarithm.", topi.log, np.log),
    Operator("sqrt", _UNARY, "Compute the square root.", topi.sqrt, np.sqrt),
    Operator("tanh", _UNARY, "Compute the hyperbolic tangent.", topi.tanh, np.tanh, "tanh"),
    Operator(
        *("sigmoid", _UNARY, "Compute 1 / (1 + exp(-x))."), topi.sigmoid, _numpy_sigmoid, "sigmoid"
    ),
    Operator(
        *("silu", _UNARY, "Compute x * sigmoid(x)."),
        *(lambda x: topi.multiply(x, topi.sigmoid(x)), _numpy_silu),
    ),
    Operator(
        *("gelu", _UNARY, "Compute the GELU by the error function.", _te_gelu),
        torch=lambda torch, x, out: out.copy_(torch.nn.functional.gelu(x)),
    ),
    Operator(
        *("softmax", "(...,n)->(...,n)", "Compute the softmax over the last axis."),
        *(lambda x: topi.nn.softmax(x, axis=-1), _numpy_softmax),
        lambda torch, x, out: torch.softmax(x, dim=-1, out=out),
    ),
    Operator(
        *("sum", _REDUCTION, "Compute the sum over the last axis."),
        *(lambda x: topi.sum(x, axis=-1), lambda x, out: np.sum(x, axis=-1, out=out)),
    ),
    Operator(
        *("max", _REDUCTION, "Compute the largest over the last axis."),
        *(lambda x: topi.max(x, axis=-1), lambda x, out: np.max(x, axis=-1, out=out)),
    ),
    Operator(
        *("transpose", "(m,n)->(n,m)", "Turn rows into columns."),
        *(lambda x: topi.transpose(x), lambda x, out: np.copyto(out, x.T)),
    ),
)
