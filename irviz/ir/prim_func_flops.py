"""Count the operations of a PrimFunc."""

from __future__ import annotations

from functools import lru_cache

from tvm import ir, tirx
from tvm.s_tir.analysis import estimate_tir_flops

from irviz.ir.shapes.symbolic_shapes import symbolic_sizes


@lru_cache(maxsize=4096)
def prim_func_flops(function: tirx.PrimFunc) -> float | None:
    """Return what TVM's `estimate_tir_flops` counts in the loop nest, None if that fails.

    TVM counts a symbolic extent as 1, so the result is None for symbolic sizes too.
    """
    if symbolic_sizes(function):
        return None
    try:
        return float(estimate_tir_flops(ir.IRModule({"main": function})))
    except Exception:  # TVM's errors have many classes
        return None
