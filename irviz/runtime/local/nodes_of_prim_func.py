"""Name the nodes of a module that became a PrimFunc, for the error of one that cannot be built."""

from __future__ import annotations

from collections.abc import Iterator

from tvm import ir, relax

from irviz.ir.function_graph import extract
from irviz.ir.module_functions import relax_functions
from irviz.model.graph.graph import Node

_MOST_NODES = 3
_STEPS = (  # of TVM's own pipeline, after each of which PrimFuncs have their names
    lambda mod: mod,
    relax.transform.LegalizeOps(),
    lambda mod: relax.transform.FuseTIR()(
        relax.transform.FuseOps()(relax.transform.AnnotateTIROpPattern()(mod))
    ),
)


def nodes_of(mod: ir.IRModule, prim_func: str) -> str:
    """Return the nodes that call a PrimFunc once TVM has made it, such as "lv (relax.add)".

    They are those of the module, with its operators; "" where none is known.
    """
    before = {node.id: node.callee for node in _nodes(mod)}
    lowered = mod
    for step in _STEPS:
        lowered = step(lowered)
        found = [node.id for node in _nodes(lowered) if node.callee == prim_func]
        if found:
            names = [f"{one} ({before[one]})" if one in before else str(one) for one in found]
            more = len(found) - _MOST_NODES
            return ", ".join(names[:_MOST_NODES]) + (f" and {more} more" if more > 0 else "")
    return ""


def _nodes(mod: ir.IRModule) -> Iterator[Node]:
    for function in relax_functions(mod):
        yield from extract(mod, function).nodes
