"""Modules as bytes for the worker, without the constants that it can map."""

from __future__ import annotations

import secrets

import numpy as np
import tvm
import tvm_ffi
from tvm import ir

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
        for tensor, type_ in zip(map(tvm.runtime.from_dlpack, arrays), types, strict=True)
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
