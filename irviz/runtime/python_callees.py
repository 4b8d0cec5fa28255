"""Find the Python functions that a module calls by name, and send them to the worker."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

import cloudpickle
import tvm
import tvm_ffi
from tvm import ir, relax

from irviz.errors import IrvizError
from irviz.runtime.module_bytes import by_value
from irviz.runtime.registrations import python_function

_sent: dict[str, tuple[bytes, Callable[..., object]]] = {}
"""The received functions by name; those registered with TVM look here at each call."""

_before: dict[str, object] = {}
"""What was registered with TVM under these names before, None for nothing."""


class CalleeNotSentError(IrvizError, ValueError):
    """A Python function that cannot be sent to another process."""


def python_callees(mod: ir.IRModule) -> dict[str, Callable[..., object]]:
    """Return the registered Python functions that a module calls, except TVM's own, by name."""
    found = {}
    for name in _called(mod):
        function = python_function(name)
        package = (getattr(function, "__module__", None) or "").partition(".")[0]
        if function is not None and package not in ("tvm", "tvm_ffi"):
            found[name] = function
    return found


@lru_cache(maxsize=64)
def _called(mod: ir.IRModule) -> tuple[str, ...]:
    """Return the names that a module may call."""
    names: dict[str, None] = {}
    for function in mod.functions.values():
        tvm_ffi.structural_walk(
            function,
            [
                (relax.ExternFunc, lambda one: names.setdefault(str(one.global_symbol))),
                (ir.StringImm, lambda one: names.setdefault(str(one.value))),
            ],
        )
    return tuple(names)


def pack_callees(callees: Mapping[str, Callable[..., object]]) -> dict[str, bytes]:
    """Pickle functions; raise CalleeNotSentError for one that cannot be pickled."""
    return {name: _packed(name, function) for name, function in callees.items()}


def install_callees(packed: Mapping[str, bytes]) -> None:
    """Register functions that were received, and remove those that were received before.

    A VM keeps the function that it was built with, so a function is registered that looks up
    the latest one. Raises CalleeNotSentError for a function that cannot be unpickled here.
    """
    for name in [name for name in _before if name not in packed]:
        _withdraw(name)
    for name, one in packed.items():
        if name not in _before:
            _before[name] = tvm.get_global_func(name, allow_missing=True)
            tvm.register_global_func(name, _latest(name), override=True)
        if name not in _sent or _sent[name][0] != one:
            try:
                _sent[name] = (one, cloudpickle.loads(one))
            except MemoryError:
                raise
            except Exception as failure:  # for example, its module cannot be imported here
                raise CalleeNotSentError(
                    f"{name!r} cannot be used in the process that runs it: {failure}. Run with "
                    "isolate=False, or define it where it is used"
                ) from failure


def _packed(name: str, function: Callable[..., object]) -> bytes:
    try:
        return by_value(function)
    except Exception as failure:  # pickling what a function refers to may raise anything
        raise CalleeNotSentError(
            f"{name!r} cannot be sent to the process that runs it: {failure}. Run with "
            "isolate=False, or let it make what it needs when it is called"
        ) from failure


def _latest(name: str) -> Callable[..., object]:
    def call(*arguments: object) -> object:
        if name not in _sent:
            raise LookupError(f"{name!r} is not registered any more")
        return _sent[name][1](*arguments)

    return call


def _withdraw(name: str) -> None:
    """Restore what was registered under a name before."""
    _sent.pop(name, None)
    before = _before.pop(name)
    if before is None:
        tvm_ffi.registry.remove_global_func(name)
    else:
        tvm.register_global_func(name, before, override=True)
