"""Library kernels: registered functions that can replace a PrimFunc.

The VM calls a kernel like a PrimFunc: inputs first, then the tensors to write. The kernel gets
NumPy arrays that share the VM's memory (DLPack, no copy).
"""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import ir, relax, te, tirx, topi

from irviz.errors import IrvizError, error_summary
from irviz.ir.type_and_expression_labels import dim_label
from irviz.runtime.registered_functions import python_function
from irviz.transforms.kernels.signature import (
    Signature,
    call_types,
    fits,
    parse_signature,
    signature_of_call,
    signature_of_prim_func,
)
from irviz.transforms.plugins import KERNELS, load_entry_points

__all__ = ["LibraryKernel", "define", "definitions", "is_current", "kernels", "register"]

Function = Callable[..., object]

FLOATS = ("float32", "float64", "float16")
"""The dtypes of irviz's own definitions and kernels."""

_LARGEST_INT32 = 2**31 - 1

DEFINITIONS_BY_NAME: dict[str, TEDefinition] = {}
"""The definitions registered in this process."""


class NoPrimFuncError(IrvizError, ValueError):
    """A definition from which no PrimFunc can be created for a call; the message says why."""


@dataclass(frozen=True, eq=False)
class RegisteredFunction:
    """A function by name, with its signatures, one per dtype, and a one-line summary."""

    name: str
    signatures: tuple[Signature, ...]
    summary: str
    function: Function

    @property
    def signature(self) -> Signature:
        """The signature for the first dtype."""
        return self.signatures[0]


class TEDefinition(RegisteredFunction):
    """A function of TE tensors, from which PrimFuncs are created."""


def define(
    name: str, signature: str, dtype: str | Sequence[str] = "float32"
) -> Callable[[Function], Function]:
    """Register the decorated function of TE tensors as the definition `name`.

    The function gets a `te.Tensor` for each input and returns one, or a tuple of them. Defining
    a name again replaces it.

    Args:
        name: The name of the definition, such as "mine.relu".
        signature: NumPy's notation for generalized ufuncs, such as `(b,m),(n,m),(n)->(b,n)`.
        dtype: The dtype of all tensors, or several dtypes as alternatives.

    Raises:
        ValueError: The signature cannot be parsed, or the function takes another number of
            tensors.
    """
    signatures = parse_signatures(signature, dtype)

    def decorate(function: Function) -> Function:
        summary = checked_summary("definition", name, signatures[0], function)
        DEFINITIONS_BY_NAME[name] = TEDefinition(name, signatures, summary, function)
        return function

    return decorate


def definitions() -> Mapping[str, TEDefinition]:
    """Return the definitions by name."""
    return MappingProxyType(DEFINITIONS_BY_NAME)


def parse_signatures(signature: str, dtype: str | Sequence[str]) -> tuple[Signature, ...]:
    """Parse a signature for one dtype, or for each of several; raise ValueError for no dtype."""
    dtypes = (dtype,) if isinstance(dtype, str) else tuple(dtype)
    if not dtypes:
        raise ValueError(f"{signature!r} is for no dtype at all: give one, such as 'float32'")
    return tuple(parse_signature(signature, each) for each in dtypes)


def checked_summary(
    what: str, name: str, signature: Signature, function: Function, outputs: int = 0
) -> str:
    """Return the first line of a function's docstring, or "".

    Raises ValueError unless it can be called with a tensor for each input and so many outputs.
    """
    count = len(signature.inputs) + outputs
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        last = ", outputs last" if outputs else ""
        raise ValueError(
            f"the {what} {name!r} takes {inspect.signature(function)}, and its signature "
            f"{signature} has {count} tensors: give it a parameter for each{last}"
        ) from None
    return (function.__doc__ or "").strip().partition("\n")[0]


def prim_func_for_call(definition: TEDefinition, call: ir.Call) -> tirx.PrimFunc:
    """Create the PrimFunc for the shapes of a call; raise NoPrimFuncError when they do not fit."""
    return create_prim_func(definition, call_types(call)[0], signature_of_call(call))


def create_prim_func(
    definition: TEDefinition, types: Sequence[relax.TensorType], wanted: Signature | None
) -> tirx.PrimFunc:
    """Create the PrimFunc for inputs of these types; raise NoPrimFuncError unless it fits."""
    if wanted is None or not any(fits(own, wanted) for own in definition.signatures):
        raise NoPrimFuncError(f"its signature is {definition.signature}, and the call has {wanted}")
    dim_of, index_dtype = _dim_reader(types)
    names = list(inspect.signature(definition.function).parameters)
    # those of the parameters, then x1, x2, … for variadic ones
    names = [*names, *(f"x{number}" for number in range(len(names), len(types)))]
    inputs = [
        te.placeholder([dim_of(dim) for dim in type_.shape.values], str(type_.dtype), name)
        for type_, name in zip(types, names, strict=False)
    ]
    try:
        result = definition.function(*inputs)
        outputs = list(result) if isinstance(result, tuple | list | ir.Array) else [result]
        prim_func = te.create_prim_func([*inputs, *outputs], index_dtype)
    except Exception as failure:  # TE or the user's function may raise anything
        raise NoPrimFuncError(
            f"TE makes no PrimFunc of these shapes: {error_summary(failure)}"
        ) from failure
    found = signature_of_prim_func(prim_func, len(outputs))
    if found is None or not fits(found, wanted):
        raise NoPrimFuncError(f"for these shapes it is {found}, and the call has {wanted}")
    return prim_func


def _dim_reader(
    types: Sequence[relax.TensorType],
) -> tuple[Callable[[ir.Expr], int | ir.Var], str | None]:
    """Return a function from a call's dimensions to those of a PrimFunc, and its index dtype.

    A PrimFunc has variables of its own. An expression becomes one variable, because a PrimFunc
    gets its sizes from its buffers.
    """
    values = [dim for type_ in types for dim in type_.shape.values]
    numbers = [dim.value for dim in values if isinstance(dim, tirx.IntImm)]
    is_static = len(numbers) == len(values) and max(numbers, default=0) <= _LARGEST_INT32
    variables: dict[str, ir.Var] = {}

    def read(dim: ir.Expr) -> int | ir.Var:
        if isinstance(dim, tirx.IntImm):
            return int(dim.value)
        text = dim_label(dim)
        if text not in variables:
            name = text if text.isidentifier() else f"d{len(variables)}"
            variables[text] = tirx.Var(name, "int64")
        return variables[text]

    # int32 as people write them, but beside int64 variables the constants must be int64 too
    return read, None if is_static else "int64"


# --- registered operators ----------------------------------------------------------------------
#
# The operators that irviz registers itself: one row each, with an implementation per back end.
#
# An operator's TE implementation is the definition `topi.<name>`; its NumPy and PyTorch
# implementations are the kernels `numpy.<name>` and `torch.<name>`, which write into their last
# array. The names of the TE parameters become those of the PrimFuncs made from a definition.


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


def _binary(name: str) -> tuple[Callable[..., te.Tensor], np.ufunc]:
    """Return TOPI's function and NumPy's of this name, of x and y."""
    compute = getattr(topi, name)
    return lambda x, y: compute(x, y), getattr(np, name)


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
        lambda x, y: _te_matmul(x, y.shape[-1], lambda k, i: y(*i[:-2], k, i[-1])),
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
    Operator("add", _BINARY, "Compute x + y.", *_binary("add"), "add"),
    Operator("add_vector", _VECTOR, "Add a vector to each row.", *_binary("add")),
    Operator("subtract", _BINARY, "Compute x - y.", *_binary("subtract")),
    Operator("multiply", _BINARY, "Compute x * y.", *_binary("multiply"), "mul"),
    Operator("multiply_vector", _VECTOR, "Multiply each row by a vector.", *_binary("multiply")),
    Operator("divide", _BINARY, "Compute x / y.", *_binary("divide")),
    Operator(
        *("maximum", _BINARY, "Compute the larger of x and y, element by element."),
        *_binary("maximum"),
    ),
    Operator(
        *("minimum", _BINARY, "Compute the smaller of x and y, element by element."),
        *_binary("minimum"),
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


# --- Kernels --------------------------------------------------------------------------------------


KERNELS_BY_NAME: dict[str, LibraryKernel] = {}
"""The kernels registered in this process; `kernels` also loads those of other packages."""


@dataclass(frozen=True, eq=False)
class LibraryKernel(RegisteredFunction):
    """A function that can replace a PrimFunc.

    `definition` names the TE definition that computes the same, "" if there is none;
    `is_framework` marks a kernel of irviz's own that loads a framework when it is called.
    """

    definition: str = ""
    is_framework: bool = False


def register(
    name: str, signature: str, dtype: str | Sequence[str] = "float32", *, definition: str = ""
) -> Callable[[Function], Function]:
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
    is_foreign = name not in KERNELS_BY_NAME and not name.startswith("env.")
    if is_foreign and tvm.get_global_func(name, allow_missing=True) is not None:
        raise ValueError(
            f"{name!r} is registered already, and not as a kernel: choose a name such as "
            f"'env.{name}'"
        )

    def decorate(function: Function) -> Function:
        first = signatures[0]
        summary = checked_summary("kernel", name, first, function, len(first.outputs))
        _add(LibraryKernel(name, signatures, summary, function, definition))
        return function

    return decorate


def kernels() -> Mapping[str, LibraryKernel]:
    """Return the registered kernels by name, other packages' too."""
    load_entry_points(KERNELS)
    return MappingProxyType(KERNELS_BY_NAME)


def is_current(name: str) -> bool:
    """Tell whether TVM still calls the kernel of this name, and not a later registration."""
    return name in KERNELS_BY_NAME and isinstance(python_function(name), _TensorKernel)


def _add(kernel: LibraryKernel) -> None:
    KERNELS_BY_NAME[kernel.name] = kernel
    tvm.register_global_func(kernel.name, _TensorKernel(kernel.name), override=True)


class _TensorKernel:
    """The function registered with TVM: calls a kernel on NumPy's view of the tensors."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *tensors: tvm.runtime.Tensor) -> None:
        # looked up at each call, because a VM keeps the function that it was built with
        on_arrays(KERNELS_BY_NAME[self.name].function, *tensors)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the kernel's function alone: another process has a registry of its own."""
        return partial, (on_arrays, KERNELS_BY_NAME[self.name].function)


def on_arrays(function: Function, *tensors: tvm.runtime.Tensor) -> None:
    """Call a kernel's function on NumPy's view of tensors."""
    function(*(np.from_dlpack(tensor) for tensor in tensors))


def _register_operators() -> None:
    has_torch = importlib.util.find_spec("torch") is not None
    for op in OPERATORS:
        name, signatures = f"topi.{op.name}", parse_signatures(op.signature, FLOATS)
        DEFINITIONS_BY_NAME[name] = TEDefinition(name, signatures, op.summary, op.te)
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
