"""Make the caches of language models where a function runs, fill them, and describe them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import tvm
from tvm import ir

from irviz.ir.values import Cache, CacheArgument

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
        same = [one for one in caches if _kind(one) == kind]
        words = [name] if len(same) == 1 else [f"{len(same)} {name}s"]
        facts = list(_facts(kind, same[0], cache)) if same else []
        if cache is not None and cache.label and kind == _PAGED:
            words.append(cache.label)
        lines += [" ".join(words) + (f": {', '.join(facts)}" if facts else "")] * bool(same)
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
