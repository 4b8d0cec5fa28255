"""Definitions: what a function computes, said in TE, from which PrimFuncs are made."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from tvm import ir, relax, te, tirx

from irviz.ir.type_label import dim_label
from irviz.transforms.kernels.signature import Signature, fits, of_call, of_prim_func, parse

DefiningFunction = Callable[..., object]

FLOATS = ("float32", "float64", "float16")
"""The dtypes that the definitions and kernels of irviz's own are for."""

_LARGEST_INT32 = 2**31 - 1

_defined: dict[str, Definition] = {}


class NoPrimFuncError(ValueError):
    """A definition that gives no PrimFunc for a call; the message says why."""


@dataclass(frozen=True)
class Definition:
    """A function of TE tensors, what it takes and what it says of itself."""

    name: str
    signatures: tuple[Signature, ...]
    summary: str
    function: DefiningFunction

    @property
    def signature(self) -> Signature:
        """The signature, of the first of its dtypes."""
        return self.signatures[0]


def define(
    name: str, signature: str, dtype: str | Sequence[str] = "float32"
) -> Callable[[DefiningFunction], DefiningFunction]:
    """Register the decorated function of TE tensors as the definition `name`.

    `signature` is in NumPy's notation of generalized ufuncs, for one dtype or each of several.
    The function gets a `te.Tensor` for each input and returns one, or a tuple of them. Defining
    a name again replaces it. Raises ValueError when the signature cannot be read or the function
    does not take that many tensors.
    """
    signatures = in_dtypes(signature, dtype)

    def decorate(function: DefiningFunction) -> DefiningFunction:
        check_arity("definition", name, function, len(signatures[0].inputs), signatures[0])
        _defined[name] = Definition(name, signatures, first_line(function), function)
        return function

    return decorate


def defined() -> Mapping[str, Definition]:
    """Return the definitions by name."""
    return MappingProxyType(_defined)


def in_dtypes(signature: str, dtype: str | Sequence[str]) -> tuple[Signature, ...]:
    """Read a signature for one dtype, or for each of several; raise ValueError for none."""
    dtypes = (dtype,) if isinstance(dtype, str) else tuple(dtype)
    if not dtypes:
        raise ValueError(f"{signature!r} is for no dtype at all: give one, such as 'float32'")
    return tuple(parse(signature, each) for each in dtypes)


def first_line(function: Callable[..., object]) -> str:
    """Return the first line of a function's docstring, or ""."""
    lines = (function.__doc__ or "").strip().splitlines()
    return lines[0] if lines else ""


def check_arity(
    what: str, name: str, function: Callable[..., object], count: int, signature: Signature
) -> None:
    """Raise ValueError unless the function can be called with this many tensors."""
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        outputs = ", outputs last" if count > len(signature.inputs) else ""
        raise ValueError(
            f"the {what} {name!r} takes {inspect.signature(function)}, and its signature "
            f"{signature} has {count} tensors: give it a parameter for each{outputs}"
        ) from None


def made_for(definition: Definition, call: ir.Call) -> tirx.PrimFunc:
    """Return the PrimFunc that computes this for a call, of its sizes and with their names.

    Raises NoPrimFuncError when the definition cannot be used with the call's shapes.
    """
    packed = call.args[1]
    fields = list(packed.fields) if isinstance(packed, ir.Tuple) else [packed]
    return made_of(definition, [field.ty for field in fields], of_call(call))


def made_of(
    definition: Definition, types: Sequence[relax.TensorType], wanted: Signature | None
) -> tirx.PrimFunc:
    """Return the PrimFunc for inputs of these types; raise NoPrimFuncError unless it fits."""
    if wanted is None or not any(fits(own, wanted) for own in definition.signatures):
        raise NoPrimFuncError(f"its signature is {definition.signature}, and the call has {wanted}")
    dims = _Dims(types)
    names = list(inspect.signature(definition.function).parameters)
    inputs = [
        te.placeholder([dims.of(dim) for dim in type_.shape.values], str(type_.dtype), name)
        for type_, name in zip(types, _filled(names, len(types)), strict=True)
    ]
    try:
        given = definition.function(*inputs)
        outputs = list(given) if isinstance(given, tuple | list | ir.Array) else [given]
        made = te.create_prim_func([*inputs, *outputs], dims.index_dtype)
    except Exception as failure:  # whatever TE or the user's function raises
        said = str(failure).strip().splitlines()
        words = f"{type(failure).__name__}: {said[-1].strip()}" if said else repr(failure)
        raise NoPrimFuncError(f"TE makes no PrimFunc of these shapes: {words}") from failure
    found = of_prim_func(made, len(outputs))
    if found is None or not fits(found, wanted):
        raise NoPrimFuncError(f"for these shapes it is {found}, and the call has {wanted}")
    return made


class _Dims:
    """The dimensions of a call as those of a PrimFunc, which has variables of its own.

    A size that is an expression becomes a variable, because a PrimFunc learns its variables
    from the buffers it is given.
    """

    def __init__(self, types: Sequence[relax.TensorType]) -> None:
        values = [dim for type_ in types for dim in type_.shape.values]
        numbers = [dim.value for dim in values if isinstance(dim, tirx.IntImm)]
        is_static = len(numbers) == len(values) and max(numbers, default=0) <= _LARGEST_INT32
        # as people write them; beside variables of int64 the numbers have to be of int64 too
        self.index_dtype = None if is_static else "int64"
        self._variables: dict[str, ir.Var] = {}

    def of(self, dim: ir.Expr) -> int | ir.Var:
        if isinstance(dim, tirx.IntImm):
            return int(dim.value)
        text = dim_label(dim)
        if text not in self._variables:
            name = text if text.isidentifier() else f"d{len(self._variables)}"
            self._variables[text] = tirx.Var(name, "int64")
        return self._variables[text]


def _filled(names: list[str], count: int) -> list[str]:
    return [*names[:count], *(f"x{i}" for i in range(len(names), count))]
