"""Remember the Python functions that are registered with TVM, which does not give them back."""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable
from typing import Any

import tvm_ffi

_KEPT = 4
"""Functions kept for each name: an earlier one may be registered again."""

_seen: dict[str, list[tuple[tvm_ffi.Function, Callable[..., object]]]] = {}
"""The latest functions registered under each name, each with TVM's object for it."""


def observe_registrations() -> None:
    """Note each later call of `tvm.register_global_func`.

    TVM calls this at the end of `import tvm`, as an entry point of the group `tvm.backends`.
    """
    for module in (tvm_ffi, tvm_ffi.registry, sys.modules.get("tvm")):
        if module is not None:
            vars(module)["register_global_func"] = _observed


def python_function(name: str) -> Callable[..., object] | None:
    """Return the Python function registered with TVM under a name, None if none is known."""
    registered = tvm_ffi.get_global_func(name, allow_missing=True)
    if registered is None:
        return None
    others = itertools.chain.from_iterable(_seen.values())  # it may have been given this name later
    pairs = itertools.chain(_seen.get(name, ()), others)
    return next((function for made, function in pairs if made.same_as(registered)), None)


register_unobserved = tvm_ffi.registry.register_global_func
"""Registers a function that is not sent to another process."""


@functools.wraps(register_unobserved)
def _observed(
    func_name: str | Callable[..., object],
    f: Callable[..., object] | None = None,
    override: bool = False,
) -> Any:
    if not isinstance(func_name, str):
        return _observed(func_name.__name__, func_name, override)
    if f is None:
        return functools.partial(_observed, func_name, override=override)
    made = register_unobserved(func_name, f, override)
    known = _seen.get(func_name, [])
    if isinstance(f, tvm_ffi.Function):  # registered again: it must not be the next to be dropped
        latest = [pair for pair in known if pair[0].same_as(f)]
    else:
        latest = [(made, f)]
    _seen[func_name] = [*(pair for pair in known if pair not in latest), *latest][-_KEPT:]
    return made


observe_registrations()  # where the entry point is missing or switched off
