"""Definitions: functions of TE tensors from which PrimFuncs are created."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from tvm import ir, relax, te, tirx

from irviz.errors import IrvizError
from irviz.ir.labels import dim_label
from irviz.runtime.run_errors import error_summary
from irviz.transforms.kernels.signature import (
    Signature,
    call_types,
    fits,
    parse_signature,
    signature_of_call,
    signature_of_prim_func,
)

DefiningFunction = Callable[..., object]

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
    function: Callable[..., object]

    @property
    def signature(self) -> Signature:
        """The signature for the first dtype."""
        return self.signatures[0]


class TEDefinition(RegisteredFunction):
    """A function of TE tensors, from which PrimFuncs are created."""


def define(
    name: str, signature: str, dtype: str | Sequence[str] = "float32"
) -> Callable[[DefiningFunction], DefiningFunction]:
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

    def decorate(function: DefiningFunction) -> DefiningFunction:
        summary = checked_summary("definition", name, signatures[0], function)
        add_definition(TEDefinition(name, signatures, summary, function))
        return function

    return decorate


def add_definition(definition: TEDefinition) -> None:
    """Register a definition without checking the function's parameters."""
    DEFINITIONS_BY_NAME[definition.name] = definition


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
    what: str, name: str, signature: Signature, function: Callable[..., object], outputs: int = 0
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
