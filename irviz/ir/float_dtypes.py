"""The dtypes of floats that a module computes in."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import tvm_ffi
from tvm import ir, relax, tirx

from irviz.ir.module_functions import prim_funcs, relax_functions

_MOST = 256
_kept: OrderedDict[ir.BaseFunc, frozenset[str]] = OrderedDict()


def float_dtypes(mod: ir.IRModule) -> frozenset[np.dtype[np.generic]]:
    """Return the dtypes of floats of all values in a module's functions."""
    names = frozenset[str]().union(
        *map(_names, [*relax_functions(mod).values(), *prim_funcs(mod).values()])
    )
    found = set()
    for name in names:
        try:
            found.add(np.dtype(name))
        except TypeError:  # noqa: PERF203 - NumPy has no such numbers, so none are compared
            continue
    return frozenset(found)


def _names(function: relax.Function | tirx.PrimFunc) -> frozenset[str]:
    if function not in _kept:
        found = set[str]()

        def add(type_: object) -> None:
            name = str(getattr(type_, "dtype", None) or "")
            if "float" in name:
                found.add(name)

        if isinstance(function, relax.Function):
            relax.analysis.post_order_visit(function, lambda expr: add(getattr(expr, "ty", None)))
        else:
            looks = [
                (tirx.Cast, lambda cast: add(cast.ty)),
                (ir.TensorLoad, lambda load: add(load.source.ty)),
                (tirx.BufferStore, lambda store: add(store.buffer.ty)),
            ]
            tvm_ffi.structural_walk(function.body, looks)
        _kept[function] = frozenset(found)
    _kept.move_to_end(function)
    while len(_kept) > _MOST:
        _kept.popitem(last=False)
    return _kept[function]
