"""TVM's operator inventory (TOPI) as definitions: functions of TE tensors."""

from __future__ import annotations

from collections.abc import Callable

from tvm import te, topi

_SAME = "(...)->(...)"
_PAIR = "(...),(...)->(...)"
_VECTOR = "(...,n),(n)->(...,n)"


def matmul(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    """Compute x @ w, the weight as (in, out)."""
    k = te.reduce_axis((0, x.shape[-1]), "k")
    return te.compute(
        (*x.shape[:-1], w.shape[1]),
        lambda *i: te.sum(x(*i[:-1], k) * w(k, i[-1]), axis=k),
        name="matmul",
    )


def matmul_transposed(x: te.Tensor, w: te.Tensor) -> te.Tensor:
    """Compute x @ w.T, the weight as (out, in)."""
    k = te.reduce_axis((0, x.shape[-1]), "k")
    return te.compute(
        (*x.shape[:-1], w.shape[0]),
        lambda *i: te.sum(x(*i[:-1], k) * w(i[-1], k), axis=k),
        name="matmul",
    )


def batch_matmul(x: te.Tensor, y: te.Tensor) -> te.Tensor:
    """Compute x @ y for each matrix of a batch."""
    k = te.reduce_axis((0, x.shape[-1]), "k")
    return te.compute(
        (*x.shape[:-1], y.shape[-1]),
        lambda *i: te.sum(x(*i[:-1], k) * y(*i[:-2], k, i[-1]), axis=k),
        name="matmul",
    )


def matmul_add(x: te.Tensor, w: te.Tensor, b: te.Tensor) -> te.Tensor:
    """Compute x @ w + b, the weight as (in, out)."""
    return topi.add(matmul(x, w), b)


def linear(x: te.Tensor, w: te.Tensor, b: te.Tensor) -> te.Tensor:
    """Compute x @ w.T + b, the weight as (out, in)."""
    return topi.add(matmul_transposed(x, w), b)


def add(x: te.Tensor, y: te.Tensor) -> te.Tensor:
    """Compute x + y; a vector is added to each row."""
    return topi.add(x, y)


def subtract(x: te.Tensor, y: te.Tensor) -> te.Tensor:
    """Compute x - y."""
    return topi.subtract(x, y)


def multiply(x: te.Tensor, y: te.Tensor) -> te.Tensor:
    """Compute x * y; each row is multiplied by a vector."""
    return topi.multiply(x, y)


def divide(x: te.Tensor, y: te.Tensor) -> te.Tensor:
    """Compute x / y."""
    return topi.divide(x, y)


def maximum(x: te.Tensor, y: te.Tensor) -> te.Tensor:
    """Compute the larger of x and y, element by element."""
    return topi.maximum(x, y)


def minimum(x: te.Tensor, y: te.Tensor) -> te.Tensor:
    """Compute the smaller of x and y, element by element."""
    return topi.minimum(x, y)


def relu(x: te.Tensor) -> te.Tensor:
    """Compute max(x, 0)."""
    return topi.nn.relu(x)


def exp(x: te.Tensor) -> te.Tensor:
    """Compute e to the x."""
    return topi.exp(x)


def log(x: te.Tensor) -> te.Tensor:
    """Compute the natural logarithm."""
    return topi.log(x)


def sqrt(x: te.Tensor) -> te.Tensor:
    """Compute the square root."""
    return topi.sqrt(x)


def tanh(x: te.Tensor) -> te.Tensor:
    """Compute the hyperbolic tangent."""
    return topi.tanh(x)


def sigmoid(x: te.Tensor) -> te.Tensor:
    """Compute 1 / (1 + exp(-x))."""
    return topi.sigmoid(x)


def silu(x: te.Tensor) -> te.Tensor:
    """Compute x * sigmoid(x)."""
    return topi.multiply(x, topi.sigmoid(x))


def gelu(x: te.Tensor) -> te.Tensor:
    """Compute the GELU by the error function."""
    half = topi.multiply(x, 0.5)
    return topi.multiply(half, topi.add(topi.erf(topi.multiply(x, 0.5**0.5)), 1.0))


def softmax(x: te.Tensor) -> te.Tensor:
    """Compute the softmax over the last axis."""
    return topi.nn.softmax(x, axis=-1)


def row_sum(x: te.Tensor) -> te.Tensor:
    """Compute the sum over the last axis."""
    return topi.sum(x, axis=-1)


def row_max(x: te.Tensor) -> te.Tensor:
    """Compute the largest over the last axis."""
    return topi.max(x, axis=-1)


def transpose(x: te.Tensor) -> te.Tensor:
    """Turn rows into columns."""
    return topi.transpose(x)


TOPI: tuple[tuple[str, str, Callable[..., te.Tensor]], ...] = (
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
    ("gelu", _SAME, gelu),
    ("softmax", "(...,n)->(...,n)", softmax),
    ("sum", "(...,n)->(...)", row_sum),
    ("max", "(...,n)->(...)", row_max),
    ("transpose", "(m,n)->(n,m)", transpose),
)
"""What is defined as `topi.` and the name: the name, the signature and the function."""
