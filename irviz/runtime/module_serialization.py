"""Modules as bytes for the worker, without the constants that it can map, and Python functions."""

from __future__ import annotations

import contextlib
import secrets
import site
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from types import ModuleType

import cloudpickle
import numpy as np
import tvm
import tvm_ffi
from tvm import ir, relax

from irviz.errors import IrvizError
from irviz.ir.parameter_values import shared_tensor
from irviz.runtime.registered_functions import python_function
from irviz.worker import shared_arrays


def pack_module(mod: ir.IRModule, *, whole: bool = False) -> bytes:
    """Return a module as bytes; constants in shared memory become their places unless `whole`.

    Raises what pickling raises.
    """
    mark, arrays, types = f"irviz constant {secrets.token_hex(16)} ", [], []

    def replaced(constant: ir.GenericConst) -> ir.Expr:
        array = _array(constant)
        if whole or array is None or not shared_arrays.is_shared(array):
            return constant
        arrays.append(array)
        types.append(constant.ty)
        return ir.StringImm(f"{mark}{len(arrays) - 1}")

    without = tvm_ffi.structural_map(mod, (ir.GenericConst, replaced))
    return shared_arrays.dumps((without if arrays else mod, mark, arrays, types))


def unpack_module(packed: bytes) -> ir.IRModule:
    """Return the module that `pack_module` packed in another process."""
    mod, mark, arrays, types = shared_arrays.loads(packed)
    if not arrays:
        return mod
    constants = [
        ir.GenericConst(tensor, type_)
        for tensor, type_ in zip(map(shared_tensor, arrays), types, strict=True)
    ]

    def restored(text: ir.StringImm) -> ir.Expr:
        value = str(text.value)
        return constants[int(value[len(mark) :])] if value.startswith(mark) else text

    return tvm_ffi.structural_map(mod, (ir.StringImm, restored))


def _array(constant: ir.GenericConst) -> np.ndarray | None:
    """Return a constant's values as they are in memory; None where NumPy cannot see them."""
    try:
        return np.from_dlpack(constant.value)
    except Exception:  # no tensor, a dtype that NumPy lacks, or another device
        return None


# --- Python functions as bytes, including the code of the user's own modules ---------------------
#
# Another process may be unable to import these modules, or may have imported an older version.


_BY_REFERENCE = ("irviz", "tvm", "tvm_ffi", "__main__")
_lock = threading.Lock()


def by_value(function: object) -> bytes:
    """Pickle a function with everything it uses from modules that are not installed.

    Where that cannot be pickled, functions of these modules are pickled by name. Raises what
    pickling raises.
    """
    with contextlib.suppress(Exception), _own_modules_by_value():
        with_code: bytes = cloudpickle.dumps(function)
        return with_code
    by_name: bytes = cloudpickle.dumps(function)
    return by_name


@dataclass(frozen=True)
class PortableFunction:
    """A function that can be unpickled where its module cannot be imported."""

    function: Callable[..., object]

    def __call__(self, *arguments: object, **named: object) -> object:
        """Call the function."""
        return self.function(*arguments, **named)

    def __reduce__(self) -> tuple[Callable[[bytes], PortableFunction], tuple[bytes]]:
        """Pickle the function with its code; raise what pickling raises when that fails."""
        return _unpickled, (by_value(self.function),)


def _unpickled(packed: bytes) -> PortableFunction:
    return PortableFunction(cloudpickle.loads(packed))


@contextlib.contextmanager
def _own_modules_by_value() -> Iterator[None]:
    with _lock:
        already = cloudpickle.list_registry_pickle_by_value()
        chosen = [module for module in _own_modules() if module.__name__ not in already]
        for module in chosen:
            cloudpickle.register_pickle_by_value(module)
        try:
            yield
        finally:
            for module in chosen:
                cloudpickle.unregister_pickle_by_value(module)


def _own_modules() -> list[ModuleType]:
    """Return the user's modules: from outside of the installed packages, or created by code."""
    kinds = ("stdlib", "platstdlib", "purelib", "platlib")
    homes = {sysconfig.get_path(kind) for kind in kinds}
    homes |= {*site.getsitepackages(), site.getusersitepackages()}
    installed = tuple(home for home in homes if home)
    found = []
    for name, module in list(sys.modules.items()):
        if not isinstance(module, ModuleType) or module.__name__ != name:
            continue  # it could not be found again by its name
        path = getattr(module, "__file__", None)
        is_own = module.__spec__ is None if path is None else not path.startswith(installed)
        if is_own and name.partition(".")[0] not in _BY_REFERENCE:
            found.append(module)
    return found


# --- The Python functions that a module calls by name ---------------------------------------------


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


def called_names(mod: ir.IRModule) -> tuple[str, ...]:
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


_called = lru_cache(maxsize=64)(called_names)


def pack_callees(callees: Mapping[str, Callable[..., object]]) -> dict[str, bytes]:
    """Pickle functions; raise CalleeNotSentError for one that cannot be pickled."""
    packed = dict[str, bytes]()
    for name, function in callees.items():
        try:
            packed[name] = by_value(function)
        except Exception as failure:  # noqa: PERF203 - what it refers to may raise anything
            raise CalleeNotSentError(
                f"{name!r} cannot be sent to the process that runs it: {failure}. Run with "
                "isolate=False, or let it make what it needs when it is called"
            ) from failure
    return packed


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
            tvm.register_global_func(name, partial(_call_latest, name), override=True)
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


def _call_latest(name: str, *arguments: object) -> object:
    if name not in _sent:
        raise LookupError(f"{name!r} is not registered any more")
    return _sent[name][1](*arguments)


def _withdraw(name: str) -> None:
    """Restore what was registered under a name before."""
    _sent.pop(name, None)
    before = _before.pop(name)
    if before is None:
        tvm_ffi.registry.remove_global_func(name)
    else:
        tvm.register_global_func(name, before, override=True)
