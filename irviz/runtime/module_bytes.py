"""Modules as bytes for the worker, without the constants that it can map."""

from __future__ import annotations

import contextlib
import secrets
import site
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType

import cloudpickle
import numpy as np
import tvm_ffi
from tvm import ir

from irviz.ir.tensor_array import shared_tensor
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
