"""Layers of a model as separate stages, to be compared, run and measured like others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from irviz.errors import NotFoundError
from irviz.ir.module_functions import relax_function
from irviz.model.folding.expansion import copy_around
from irviz.model.graph.graph import Graph, Layer, NodeId, grouped
from irviz.model.graph.layers import common_layer, layer_name
from irviz.session.stage_cache import graph_of, reading_of, tree_of
from irviz.transforms.simpler_modules import keep_bindings
from irviz.transforms.stage import Position, Stage

_MOST_NAMED = 8


def layer_stage(stage: Stage, function: str, layer: str) -> Stage:
    """Return a stage with a single layer of a function, whose operands become parameters.

    The layer is given by its name, or the end of it: `h.3` for `transformer.h.3`. Raises
    NotFoundError if no node belongs to such a layer.
    """
    serving = grouped(
        (one[:end], node.id)
        for node in graph_of(stage, function).nodes
        for one in node.layers
        for end in range(1, len(one) + 1)
    )
    layers = grouped((layer_name(one), one) for one in serving)
    wanted = layers.get(layer) or [
        one for name, found in layers.items() if name.endswith(f".{layer}") for one in found
    ]
    if not wanted:
        some = ", ".join([*layers][:_MOST_NAMED]) or "none"
        raise NotFoundError(f"no node of {function!r} serves a layer {layer!r}; layers are {some}")
    nodes = {node for one in wanted for node in serving[one]}
    return _part(stage, function, nodes, wanted[0], layer)


def copy_stage(stage: Stage, function: str, node: NodeId, copy: int) -> Stage:
    """Return a stage with a single copy, counted from 0, of the innermost repeat around a node.

    Raises NotFoundError if the node is in no repeat, or the repeat has no such copy.
    """
    nodes = copy_around(tree_of(stage, function), node, copy)
    graph = graph_of(stage, function)
    around = common_layer(one for each in nodes for one in graph[each].layers)
    label = layer_name(around) or f"copy {copy + 1}"
    return _part(stage, function, nodes, around, label)


def _part(
    stage: Stage, function: str, nodes: Collection[NodeId], around: Layer, label: str
) -> Stage:
    ids = reading_of(stage, function).variables
    bindings = [
        binding
        for block in relax_function(stage.module, function).body.blocks
        for binding in block.bindings
    ]
    graph = graph_of(stage, function)
    kept = [at for at, one in enumerate(bindings) if ids.get(one.var.__chandle__()) in nodes]
    return Stage(
        "0",
        keep_bindings(stage.module, function, kept),
        label,
        constant_names=stage.constant_names,
        files=stage.files,
        layers={function: {node.id: node.layers for node in graph.nodes if node.layers}},
        positions=_positions(graph, nodes, around),
    )


def _positions(graph: Graph, nodes: Collection[NodeId], around: Layer) -> dict[NodeId, Position]:
    """Return each node's position in a layer: its sublayer, and its number among equals there.

    By these, nodes of two layers correspond even if their sizes differ.
    """
    sources = {edge.source for node in nodes for edge in graph.entering.get(node, ())}
    counts: Counter[tuple[Layer, str]] = Counter()
    found = {}
    for node in graph.nodes:
        if node.id in nodes or node.id in sources:
            layer = common_layer(node.layers)
            is_weight = node.is_input and layer[: len(around)] == around
            is_own = is_weight or node.id in nodes
            kind = node.callee or node.kind.value
            key = (layer[len(around) :], kind) if is_own else ((), "input")
            found[node.id] = (*key, counts[key])
            counts[key] += 1
    return found
