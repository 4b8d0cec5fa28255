"""What is read of stages: graphs with the model's layers, containers, arrays, texts; all cached."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cache, lru_cache, partial
from weakref import WeakKeyDictionary

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import ir, tirx
from tvm.s_tir.analysis import estimate_tir_flops

from irviz.ir.loop_nest_reader import loop_nest
from irviz.ir.module_functions import drawable_functions, function_named
from irviz.ir.symbolic_shapes import symbolic_sizes
from irviz.ir.tensor_array import tensor_array
from irviz.ir.tvmscript import Script, script
from irviz.loaders.models.imported_layers import remember_layers
from irviz.model.folding.containers import ContainerTree, container_tree
from irviz.model.graph.flops import FlopsOfFunction, with_flops
from irviz.model.graph.graph import Graph, NodeId, call_path
from irviz.model.graph.infer_layers import LayersByNode, with_layers
from irviz.model.graph.layers import Layer
from irviz.model.loop_nest import LoopNest
from irviz.session.stage_matching import match_stages
from irviz.session.stage_readings import Reading, kept_by_stage, reading_of
from irviz.transforms.stage import Stage


def graph_of(stage: Stage, function: str) -> Graph:
    """Return the graph of a stage's function, with layers and FLOPs; raise NoFunctionError."""
    return _graph(stage, function, reading_of(stage, function))


@kept_by_stage
def _graph(stage: Stage, function: str, _: Reading) -> Graph:
    """Return the graph of a function that was read now."""
    return counted_graph(stage, layered_graph(stage, function))


def tree_of(stage: Stage, function: str) -> ContainerTree:
    """Return the containers of a stage's function: what can be expanded and collapsed."""
    return _tree(stage, function, reading_of(stage, function))


@kept_by_stage
def _tree(stage: Stage, function: str, _: Reading) -> ContainerTree:
    """Return the containers of a function that was read now: hashing its graph takes long."""
    return container_tree(graph_of(stage, function))


def array_of(stage: Stage, function: str, node_id: NodeId) -> NDArray[np.generic] | None:
    """Return the value of a constant, None for another node and where NumPy lacks the dtype.

    It is the module's own memory, so it cannot be written to: weights are large.
    """
    tensor = reading_of(stage, function).constants.get(node_id)
    if tensor is None:
        return None
    try:
        array = tensor_array(tensor)
    except Exception:  # a dtype that NumPy does not know, or a device that is not this one
        return None
    array.setflags(write=False)
    return array


def constants_of(stage: Stage, function: str) -> Mapping[NodeId, tvm.runtime.Tensor]:
    """Return the tensors of a function's constants, by their nodes."""
    return reading_of(stage, function).constants


def nest_of(stage: Stage, function: str) -> LoopNest | None:
    """Return the loop nest of a stage's PrimFunc, None if it has no PrimFunc of this name."""
    found = function_named(stage.module, function)
    return _nest(found, function) if isinstance(found, tirx.PrimFunc) else None


@lru_cache(maxsize=8)
def _nest(function: tirx.PrimFunc, name: str) -> LoopNest:
    return loop_nest(function, name)


def script_of(stage: Stage) -> Script:
    """Return the TVMScript of a stage, with the lines of nodes."""
    return _script(stage.module)


@lru_cache(maxsize=8)
def _script(module: ir.IRModule) -> Script:
    return script(module)


# --- stage flops -------------------------------------------------------------------------------
#
# Count the floating-point operations of a stage's nodes, including called functions.


_MAX_CALLS = 3
"""The depth to which nested calls are counted, as functions may be recursive."""


def counted_graph(stage: Stage, graph: Graph) -> Graph:
    """Return the graph of a stage's function with FLOPs; that of a PrimFunc unchanged."""
    if isinstance(stage.module[graph.function], tirx.PrimFunc):
        return graph
    return with_flops(graph, _flops_of_functions(stage))


@kept_by_stage
def _flops_of_functions(stage: Stage) -> FlopsOfFunction:
    """Return a function from a function's name to its FLOPs, None if some are unknown."""
    functions = drawable_functions(stage.module)

    @cache
    def of_function(name: str, depth: int = 0) -> float | None:
        function = functions.get(name)
        if function is None or depth > _MAX_CALLS:
            return None
        if isinstance(function, tirx.PrimFunc):
            return prim_func_flops(function)
        of_inner = partial(of_function, depth=depth + 1)
        graph = with_flops(reading_of(stage, name).graph, of_inner)
        known = [one.flops for one in graph.nodes if one.flops is not None]
        return sum(known) if len(known) == len(graph.nodes) else None

    return of_function


# --- prim func flops ---------------------------------------------------------------------------
#
# Count the operations of a PrimFunc.


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
