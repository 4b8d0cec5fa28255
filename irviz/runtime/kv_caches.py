"""Caches of language models: what takes one and makes it, and the caches themselves.

The state that a function is given and gives back has the type R.Any: a paged key-value cache, or
the effects of `relax.frontend.nn`, as `nn.KVCache`. `call_inputs` chooses their sizes, and how many
tokens are decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import tvm
from tvm import ir, relax

from irviz.ir.module_functions import relax_functions
from irviz.ir.parameter_values import Cache, CacheArgument
from irviz.ir.relax_calls import callee_name
from irviz.ir.symbolic_shapes import is_integer, parameter_types, type_dims
from irviz.ir.tir_statements import parts_of

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
    views = [shape for _, shape, *_ in _calls(function, _VIEW)]
    seen = {shape.values[0] for shape in views if isinstance(shape, relax.ShapeExpr)}
    types = parameter_types(function)
    shapes = {n: type_dims(t) or () for n, t in types.items() if isinstance(t, relax.ShapeType)}
    return [name for name, dims in shapes.items() if len(dims) == 1 and dims[0] in seen]


def paged_layers(maker: relax.Function) -> int | None:
    """Return how many layers a function's paged cache has, None if it does not say that."""
    for _, starts, *_ in _calls(maker, _CREATE_PAGED):
        if isinstance(starts, relax.ShapeExpr) and len(starts.values) > 1:
            return int(starts.values[-1]) - int(starts.values[0])
    return None


def _calls(function: relax.Function, name: str) -> list[list[ir.Expr]]:
    """Return the arguments of all calls of a packed function, by an operator or not."""
    calls = ([call.op, *call.args] for call in parts_of(function.body, ir.Call))
    return [
        parts[at + 1 :]
        for parts in calls
        for at, one in enumerate(parts[:2])
        if callee_name(one) == name
    ]


# --- Make the caches where a function runs, fill them, and describe them -------------------------


_PAGED = "PagedAttentionKVCache"
_KINDS = {_PAGED: "paged KV cache", "AttentionKVCacheLegacy": "KV cache", "RNNState": "RNN state"}
_OF_SEQUENCES = {_PAGED, "RNNState"}
"""The caches that are told which sequences grow before each call."""


def cache_in(arguments: Sequence[object]) -> Cache | None:
    """Return the cache that a call takes, None if it takes none."""
    return next((one.cache for one in arguments if isinstance(one, CacheArgument)), None)


def with_cache(arguments: Sequence[object], made: object) -> list[object]:
    """Return the arguments with a cache that was made, or its parts."""
    return [
        (made if one.part is None else made[one.part])  # type: ignore[index]
        if isinstance(one, CacheArgument)
        else one
        for one in arguments
    ]


def live_cache(cache: Cache, call: Callable[[str, Sequence[object]], object]) -> object:
    """Make a cache and fill it by the calls before, so that the next one can be called.

    `call` calls a function of the module; raises what it raises.
    """
    made = call(cache.maker, cache.sizes)
    grown = [one for one in caches_of(made) if _kind(one) in _OF_SEQUENCES]
    for one in grown:
        for sequence in range(max(tokens[0] for tokens in _all_tokens(cache))):
            _builtin("kv_state_add_sequence")(one, sequence)
    for earlier in cache.calls:
        _begin(grown, earlier.tokens)
        call(earlier.function, with_cache(earlier.arguments, made))
        for one in grown:
            _builtin("kv_state_end_forward")(one)
    _begin(grown, cache.tokens)
    return made


def caches_of(value: object) -> list[object]:
    """Return the caches in a value."""
    if isinstance(value, tuple | list | ir.Array):
        return [found for one in value for found in caches_of(one)]
    return [value] if is_cache(value) else []


def is_cache(value: object) -> bool:
    """Tell whether a value is a cache of TVM's runtime."""
    return _kind(value) in _KINDS


def described(caches: Sequence[object], cache: Cache | None = None) -> tuple[str, ...]:
    """Describe caches, which were made as `cache`, if that is known: a line for each kind."""
    lines = []
    for kind, name in _KINDS.items():
        if same := [one for one in caches if _kind(one) == kind]:
            words = [name] if len(same) == 1 else [f"{len(same)} {name}s"]
            if cache is not None and cache.label and kind == _PAGED:
                words.append(cache.label)
            facts = ", ".join(_facts(kind, same[0], cache))
            lines.append(" ".join(words) + (f": {facts}" if facts else ""))
    return tuple(lines)


def _facts(kind: str, one: object, cache: Cache | None) -> Iterator[str]:
    if kind == _PAGED:
        yield f"{_builtin('attention_kv_cache_get_total_sequence_length')(one)} tokens"
        yield f"{_builtin('attention_kv_cache_get_num_available_pages')(one)} pages free"
    elif cache is not None:
        yield f"{sum(length for _, length in _all_tokens(cache))} tokens"


def _all_tokens(cache: Cache) -> list[tuple[int, int]]:
    return [*(one.tokens for one in cache.calls), cache.tokens]


def _begin(caches: Sequence[object], tokens: tuple[int, int]) -> None:
    sequences, length = tokens
    ids = tvm.runtime.ShapeTuple(range(sequences))
    for one in caches:
        _builtin("kv_state_begin_forward")(one, ids, tvm.runtime.ShapeTuple([length] * sequences))


def _builtin(name: str) -> Callable[..., object]:
    found: Callable[..., object] = tvm.get_global_func(f"vm.builtin.{name}")
    return found


def _kind(value: object) -> str:
    return type(value).__name__
