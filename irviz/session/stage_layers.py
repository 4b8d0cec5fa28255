"""The layers of a model that the nodes of a stage serve, carried from stage to stage."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import NamedTuple

from irviz.model.graph.graph import Graph, NodeId
from irviz.model.graph.infer_layers import LayersByNode, with_layers
from irviz.model.graph.inlined_ids import call_path
from irviz.model.graph.layers import Layer
from irviz.session.stage_matching import match_stages
from irviz.session.stage_readings import Reading, reading_of
from irviz.transforms.stage import Stage


def layered_graph(stage: Stage, function: str) -> Graph:
    """Return the graph of a stage's function, with the layers that its nodes serve.

    A node serves the layers of the nodes that it corresponds to in the stage before, and a call
    those of the function that it calls. Raises NoFunctionError when there is no such function.
    """
    origins = [stage]
    while (origin := origins[-1].made_from) is not None:
        origins.append(origin)
    for one in reversed(origins[1:]):  # so that none has to wait for many others
        _found(one, function)
    return _layered(stage, function, reading_of(stage, function)).graph


class _Layered(NamedTuple):
    """A graph with layers, and the layers of all nodes, those of called functions too."""

    graph: Graph
    layers: LayersByNode


def _found(stage: Stage, function: str) -> _Layered | None:
    """Return the layers of a function of an earlier stage, None where it cannot be read."""
    try:
        return _layered(stage, function, reading_of(stage, function))
    except Exception:  # what is wrong with that stage is said where it is shown
        return None


@lru_cache(maxsize=256)
def _layered(stage: Stage, function: str, reading: Reading) -> _Layered:
    """Return the layers of a function that was read now."""
    known = _carried(stage, function)
    graph = with_layers(reading.graph, known)
    return _Layered(graph, {**known, **{one.id: one.layers for one in graph.nodes if one.layers}})


def _carried(stage: Stage, function: str) -> LayersByNode:
    """Return the layers of nodes that correspond to one of the stage before."""
    if stage.made_from is None:
        return stage.layers.get(function, {})
    before = _found(stage.made_from, function)
    if before is None or not before.layers:
        return {}
    if stage.is_unchanged or stage.module.same_as(stage.made_from.module):
        return before.layers
    found: dict[NodeId, tuple[Layer, ...]] = {}
    served: dict[NodeId, dict[Layer, None]] = {}
    pairs = match_stages(stage, stage.made_from, function)
    users = Counter(call_path(origin)[0] for origin in pairs.values())
    for node_id, origin in pairs.items():
        call = call_path(origin)[0]
        is_whole = users[call] == 1 and call in before.layers  # a function that is a call now
        layers = before.layers.get(NodeId(call) if is_whole else origin, ())
        if layers:
            found[node_id] = layers
            for around in call_path(node_id)[:-1]:
                served.setdefault(NodeId(around), {}).update(dict.fromkeys(layers))
    made = {call: tuple(layers) for call, layers in served.items()}
    return {**_called_alike(stage, before, function), **found, **made}


def _called_alike(stage: Stage, before: _Layered, function: str) -> LayersByNode:
    """Return the layers of calls of the same name: a function may be a PrimFunc now."""
    graph = before.graph
    return {
        node.id: before.layers[node.id]
        for node in reading_of(stage, function).graph.nodes
        if node.callee
        and node.id in before.layers
        and node.id in graph.index
        and graph[node.id].callee == node.callee
    }
