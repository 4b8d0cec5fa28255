"""Fingerprints of a module's functions, equal for functions that do the same."""

from __future__ import annotations

from collections.abc import Mapping

import tvm_ffi
from tvm import ir, relax, tirx

from irviz.ir.text.expression_labels import attributes
from irviz.model.graph.graph import Graph, Node, Resolution
from irviz.model.matching.function_matching import FunctionFingerprint

_SYMBOL = "global_symbol"
_NO_BODY = 0
_CALL_DEPTH = 3
"""How many calls deep callees are told apart by what they compute."""


def function_fingerprints(
    mod: ir.IRModule, graphs: Mapping[str, Graph]
) -> dict[str, FunctionFingerprint]:
    """Return the fingerprint of each function, in alphabetical order.

    Args:
        graphs: The graphs of the Relax functions whose bodies to fingerprint.
    """
    found = {}
    bodies = _body_hashes(graphs)
    for gvar, function in mod.functions.items():
        name = str(gvar.name_hint)
        attrs = attributes(getattr(function, "attrs", None))
        symbol = dict(attrs).get(_SYMBOL)
        own = tuple(item for item in attrs if item != (_SYMBOL, name))
        kind = type(function).__name__
        if isinstance(function, relax.Function):
            body = bodies.get(name, _NO_BODY)
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


def _body_hashes(graphs: Mapping[str, Graph]) -> Mapping[str, int]:
    """Return a number for each graph, equal for the same operations on the same operands.

    Calls of the functions given count by what these compute and not by their names, so that
    functions which call each other, or themselves, may be renamed.
    """
    hashes = dict.fromkeys(graphs, 0)
    for _ in range(_CALL_DEPTH):
        hashes = {name: _graph_hash(graph, hashes) for name, graph in graphs.items()}
        if not any(node.callee in graphs for graph in graphs.values() for node in graph.nodes):
            break
    return hashes


def _graph_hash(graph: Graph, callees: Mapping[str, int]) -> int:
    """Return a number that is equal for graphs with the same operations on the same operands."""
    index = graph.index
    owners = {region.owner for region in graph.regions}
    operations = tuple(
        (node.kind.value, 0 if node.id in owners else _operation(node, callees), node.region)
        for node in graph.nodes  # an owner's operation is what its region contains
    )
    types = tuple(str(node.type_text) for node in graph.nodes)
    edges = tuple((index[edge.source], index[edge.target], edge.position) for edge in graph.edges)
    outputs = tuple(index[one] for one in graph.outputs)
    return hash((operations, types, edges, outputs))


def _operation(node: Node, callees: Mapping[str, int]) -> int:
    if node.resolution is not Resolution.FUNCTION or node.callee not in callees:
        return node.structure
    return hash((node.operator, node.attributes, node.literals, callees[node.callee]))
