"""Carry the layers of a model's nodes from stage to stage."""

from __future__ import annotations

from collections import Counter
from weakref import WeakKeyDictionary

from tvm import tirx

from irviz.loaders.models.imported_layers import remember_layers
from irviz.model.graph.graph import Graph, NodeId, call_path
from irviz.model.graph.infer_layers import LayersByNode, with_layers
from irviz.model.graph.layers import Layer
from irviz.session.stage_matching import match_stages
from irviz.session.stage_readings import Reading, kept_by_stage, reading_of
from irviz.transforms.stage import Stage


def layered_graph(stage: Stage, function: str) -> Graph:
    """Return the graph of a stage's function, with the layers that its nodes belong to.

    A node belongs to the layers of its counterparts in the stage before, and a call to those of its
    callee. The blocks of a PrimFunc have no layers. Raises NoFunctionError if there is no such
    function.
    """
    reading = reading_of(stage, function)
    if isinstance(stage.module[function], tirx.PrimFunc):
        return reading.graph
    return _layered(stage, function, reading)


@kept_by_stage
def _layered(stage: Stage, function: str, reading: Reading) -> Graph:
    """Return the graph of a current reading, with layers."""
    origins = [stage]
    while (origin := origins[-1].made_from) is not None and function in origin.module:
        origins.append(origin)
    for one in reversed(origins):  # so that none has to wait for many others
        layers = _layers(one, function)
    return with_layers(reading.graph, layers)


_LAYERS: WeakKeyDictionary[Stage, dict[str, LayersByNode]] = WeakKeyDictionary()


def _layers(stage: Stage, function: str) -> LayersByNode:
    """Return the layers of a function's nodes, including those of called functions.

    Registering a library function changes the reading, but not the layers.
    """
    layers = _LAYERS.setdefault(stage, {})
    if function not in layers:
        layers[function] = _find_layers(stage, function)
    return layers[function]


def _find_layers(stage: Stage, function: str) -> LayersByNode:
    try:
        known = _carried(stage, function)
        graph = with_layers(reading_of(stage, function).graph, known)
    except Exception:  # the error of that stage is reported where the stage is shown
        return {}
    found = {**known, **{one.id: one.layers for one in graph.nodes if one.layers}}
    if stage.seconds is None:  # else it was recorded itself
        remember_layers(stage.module, {function: found})
    return found


def _carried(stage: Stage, function: str) -> LayersByNode:
    """Return the layers of nodes that correspond to one of the stage before."""
    if stage.made_from is None:
        return stage.layers.get(function, {})
    before = _layers(stage.made_from, function)
    if not before or stage.is_unchanged or stage.module.same_as(stage.made_from.module):
        return before
    found: dict[NodeId, tuple[Layer, ...]] = {}
    served: dict[NodeId, dict[Layer, None]] = {}
    pairs = match_stages(stage, stage.made_from, function)
    users = Counter(call_path(origin)[0] for origin in pairs.values())
    for node_id, origin in pairs.items():
        call = call_path(origin)[0]
        is_whole = users[call] == 1 and call in before  # a function that is a call now
        layers = before.get(NodeId(call) if is_whole else origin, ())
        if layers:
            found[node_id] = layers
            for around in call_path(node_id)[:-1]:
                served.setdefault(NodeId(around), {}).update(dict.fromkeys(layers))
    made = {call: tuple(layers) for call, layers in served.items()}
    return {**_called_alike(stage, stage.made_from, function), **found, **made}


def _called_alike(stage: Stage, origin: Stage, function: str) -> LayersByNode:
    """Return the layers of calls of the same name: a function may be a PrimFunc now."""
    before = reading_of(origin, function).graph
    layers = _layers(origin, function)
    return {
        node.id: layers[node.id]
        for node in reading_of(stage, function).graph.nodes
        if node.callee
        and node.id in layers
        and node.id in before.index
        and before[node.id].callee == node.callee
    }
