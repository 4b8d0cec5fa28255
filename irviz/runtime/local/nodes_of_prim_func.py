"""Name the nodes of a module that became a PrimFunc, for the error of one that cannot be built."""

from __future__ import annotations

from collections.abc import Iterator

import tvm
from tvm import ir
from tvm.relax.backend.cpu_generic import legalize_passes, library_dispatch_passes

from irviz.ir.function_graph import extract
from irviz.ir.module_functions import relax_functions
from irviz.model.graph.graph import Node

_MOST_NODES = 3


def nodes_of(mod: ir.IRModule, prim_func: str, target: tvm.target.Target) -> str:
    """Return the nodes that call a PrimFunc once TVM has made it, such as "lv (relax.add)".

    They are those of the module, with its operators; "" where none is known.
    """
    before = {node.id: node.callee for node in _nodes(mod)}
    lowered = mod
    for step in (None, *library_dispatch_passes(target), *legalize_passes(target)):
        with target:
            lowered = lowered if step is None else step(lowered)
        found = [node.id for node in _nodes(lowered) if node.callee == prim_func]
        if found:
            names = [f"{one} ({before[one]})" if one in before else str(one) for one in found]
            more = len(found) - _MOST_NODES
            return ", ".join(names[:_MOST_NODES]) + (f" and {more} more" if more > 0 else "")
    return ""


def _nodes(mod: ir.IRModule) -> Iterator[Node]:
    for function in relax_functions(mod):
        yield from extract(mod, function).nodes
