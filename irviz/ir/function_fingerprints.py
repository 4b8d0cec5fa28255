"""Fingerprints of a module's functions, equal for functions that do the same."""

from __future__ import annotations

from collections.abc import Mapping

import tvm_ffi
from tvm import ir, relax, tirx

from irviz.ir.text.expression_labels import attributes
from irviz.model.graph.graph import Graph
from irviz.model.matching.function_matching import FunctionFingerprint

_SYMBOL = "global_symbol"
_NO_BODY = 0


def function_fingerprints(
    mod: ir.IRModule, graphs: Mapping[str, Graph]
) -> dict[str, FunctionFingerprint]:
    """Return the fingerprint of each function, in alphabetical order.

    Args:
        graphs: The graphs of the Relax functions whose bodies to fingerprint.
    """
    found = {}
    for gvar, function in mod.functions.items():
        name = str(gvar.name_hint)
        attrs = attributes(getattr(function, "attrs", None))
        symbol = dict(attrs).get(_SYMBOL)
        own = tuple(item for item in attrs if item != (_SYMBOL, name))
        kind = type(function).__name__
        if isinstance(function, relax.Function):
            body = _graph_hash(graphs[name]) if name in graphs else _NO_BODY
            kind = kind if function.is_pure else f"{kind}, impure"
        elif isinstance(function, tirx.PrimFunc):
            for attribute, _ in attrs:
                function = function.without_attr(attribute)
            # variables that attributes inside a lowered PrimFunc name count as free ones
            body = int(tvm_ffi.structural_hash(function, map_free_vars=True))
        else:
            body = int(tvm_ffi.structural_hash(function))
        found[name] = FunctionFingerprint(kind, body, own, symbol is not None)
    return dict(sorted(found.items()))


def _graph_hash(graph: Graph) -> int:
    """Return a number that is equal for graphs with the same operations on the same operands."""
    index = graph.index
    operations = tuple((node.kind.value, node.structure, node.region) for node in graph.nodes)
    types = tuple(str(node.type_text) for node in graph.nodes)
    edges = tuple((index[edge.source], index[edge.target], edge.position) for edge in graph.edges)
    outputs = tuple(index[one] for one in graph.outputs)
    return hash((operations, types, edges, outputs))
