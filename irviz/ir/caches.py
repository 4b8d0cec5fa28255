"""Caches of language models: the parameters that take one, and the functions that make and fill it.

The state that a function is given and gives back has the type R.Any: a paged key-value cache, or
the effects of `relax.frontend.nn`, as `nn.KVCache`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import tvm_ffi
from tvm import ir, relax

from irviz.ir.calls import callee_name
from irviz.ir.module_functions import relax_functions
from irviz.ir.symbolic_shapes import is_integer, parameter_types, type_dims

_CREATE_PAGED = "vm.builtin.paged_attention_kv_cache_create"
_VIEW = "vm.builtin.attention_kv_cache_view"
_DECODE, _PREFILL = "decode", "prefill"


@dataclass(frozen=True)
class CacheUse:
    """How a function takes a cache.

    Attributes:
        parts: The parameters that take it; of a tuple that the maker returns, the index of each
            one's part, None for all of it.
        maker: The function of the module that makes the cache from sizes.
        prefill: The function to call before this one, None if this one takes an empty cache.
        is_step: Whether cases are steps that follow each other.
    """

    parts: Mapping[str, int | None]
    maker: str
    prefill: str | None
    is_step: bool


def cache_use(mod: ir.IRModule, name: str) -> CacheUse | None:
    """Return how a Relax function takes a cache; None if it takes none, or nothing makes one."""
    functions = relax_functions(mod)
    found = _made(functions, name)
    if found is None:
        return None
    parts, maker = found
    is_step, prefill = _DECODE in name, None
    if is_step:
        names = [name.replace(_DECODE, _PREFILL), _PREFILL]
        prefill = next((one for one in names if _made(functions, one) is not None), None)
    return CacheUse(parts, maker, prefill, is_step)


def _made(
    functions: Mapping[str, relax.Function], name: str
) -> tuple[dict[str, int | None], str] | None:
    if name not in functions:
        return None
    types = parameter_types(functions[name])
    single = [one for one, type_ in types.items() if isinstance(type_, relax.AnyType)]
    packed = {one: size for one, type_ in types.items() if (size := _state_size(type_))}
    if not single and not packed:
        return None
    for maker, size in _makers(functions, types):
        if size is None and len(single) == 1:
            return {single[0]: None}, maker
        if size is not None and len(single) == size:
            return {one: index for index, one in enumerate(single)}, maker
        if size is not None and size in packed.values():
            return {next(one for one, fields in packed.items() if fields == size): None}, maker
    return None


def _makers(
    functions: Mapping[str, relax.Function], known: Mapping[str, ir.Type]
) -> Iterator[tuple[str, int | None]]:
    """Yield the functions that make a state from sizes, and the fields of one that is a tuple.

    Some exporters also pass the weights to them, which are `known` then.
    """
    for name, function in functions.items():
        size = _state_size(function.ret_ty)
        if not size and not isinstance(function.ret_ty, relax.AnyType):
            continue
        asked = {n: t for n, t in parameter_types(function).items() if not is_size(t)}
        is_state = any(isinstance(one, relax.AnyType) or _state_size(one) for one in asked.values())
        if asked.keys() <= known.keys() and not is_state:
            yield name, size


def is_size(type_: ir.Type) -> bool:
    """Tell whether a maker's parameter is a size."""
    return isinstance(type_, relax.ShapeType) or is_integer(type_)


def _state_size(type_: ir.Type) -> int | None:
    """Return the number of fields of a tuple of states."""
    is_state = isinstance(type_, ir.TupleType) and all(
        isinstance(one, relax.AnyType) for one in type_.fields
    )
    return len(type_.fields) or None if is_state else None


def token_parameter(function: relax.Function) -> str | None:
    """Return the parameter with the tokens: the first tensor of known rank."""
    types = parameter_types(function)
    tensors = (one for one, type_ in types.items() if isinstance(type_, relax.TensorType))
    return next((one for one in tensors if type_dims(types[one])), None)


def token_counts(type_: ir.Type, shape: tuple[int, ...]) -> tuple[int, int]:
    """Return the number of sequences and the tokens of each, in ids or embeddings of a shape."""
    axes = shape if "int" in str(type_.dtype) else shape[:-1]
    return (1, *axes)[-2:] if axes else (1, 1)  # type: ignore[return-value]


def total_lengths(function: relax.Function) -> list[str]:
    """Return the parameters that are the length of an `nn.KVCache`: those of its views."""
    shapes = [shape for _, shape, *_ in _calls(function, _VIEW)]
    seen = {shape.values[0] for shape in shapes if isinstance(shape, relax.ShapeExpr)}
    dims = {name: type_dims(type_) or () for name, type_ in parameter_types(function).items()}
    return [
        name
        for name, type_ in parameter_types(function).items()
        if isinstance(type_, relax.ShapeType) and len(dims[name]) == 1 and dims[name][0] in seen
    ]


def paged_layers(maker: relax.Function) -> int | None:
    """Return how many layers a function's paged cache has, None if it does not say that."""
    for _, starts, *_ in _calls(maker, _CREATE_PAGED):
        if isinstance(starts, relax.ShapeExpr) and len(starts.values) > 1:
            return int(starts.values[-1]) - int(starts.values[0])
    return None


def _calls(function: relax.Function, name: str) -> list[list[ir.Expr]]:
    """Return the arguments of all calls of a packed function, by an operator or not."""
    found: list[list[ir.Expr]] = []

    def visit(call: ir.Call) -> None:
        parts = [call.op, *call.args]
        for at, one in enumerate(parts[:2]):
            if callee_name(one) == name:
                found.append(parts[at + 1 :])

    tvm_ffi.structural_walk(function.body, (ir.Call, visit))
    return found
