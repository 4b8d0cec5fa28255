"""What is read of stages: graphs with the model's layers, containers, arrays, texts; all cached."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache, cached_property, lru_cache, partial, wraps
from itertools import pairwise
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import ir, relax, tirx
from tvm.s_tir.analysis import estimate_tir_flops

from irviz.ir.function_graph import read_function
from irviz.ir.loop_nest_reader import loop_nest
from irviz.ir.module_functions import (
    drawable_function,
    drawable_functions,
    function_named,
    relax_functions,
)
from irviz.ir.parameter_values import tensor_array
from irviz.ir.relax_calls import resolve_registered
from irviz.ir.symbolic_shapes import symbolic_sizes
from irviz.ir.tvmscript import Script, script, source_lines, source_words
from irviz.loaders.models.imported_layers import remember_layers
from irviz.model.folding.group_tree import ContainerTree, container_tree
from irviz.model.folding.visible_graph import group_nodes
from irviz.model.graph.flops import FlopsOfFunction, node_flops
from irviz.model.graph.graph import (
    Graph,
    Layer,
    Node,
    NodeId,
    Resolution,
    call_path,
    grouped,
    inlined_id,
)
from irviz.model.graph.layers import LayersByNode, with_layers
from irviz.model.loop_nest import LoopNest
from irviz.model.matching.inlined_graph import (
    MAX_CALL_DEPTH,
    InlinedGraph,
    inline_calls,
    inlined_correspondence,
)
from irviz.transforms.stage import Stage, StageTree

_MOST_STAGES = 128
_MOST_IDS = 20_000
"""The most variables of called functions that are matched because they are the same object."""

_Arguments = ParamSpec("_Arguments")
_Found = TypeVar("_Found")


class kept_by_stage(Generic[_Arguments, _Found]):  # noqa: N801 - a decorator
    """Cache a function's results by stage and further arguments, such as a function's name.

    A stage may have hundreds of functions, and a path between two stages needs those of each. So
    the results of a stage are not limited in number; they are dropped with the stage.
    """

    def __init__(self, find: Callable[Concatenate[Stage, _Arguments], _Found]) -> None:
        self._find = find
        self._of_stage = lru_cache(maxsize=_MOST_STAGES)(lambda _: dict[object, Any]())
        self.cache_clear = self._of_stage.cache_clear

    def __call__(
        self, stage: Stage, *arguments: _Arguments.args, **named: _Arguments.kwargs
    ) -> _Found:
        """Return the cached result, or compute it."""
        assert not named, "it is called by position"
        kept: dict[object, _Found] = self._of_stage(stage)
        if arguments not in kept:
            kept[arguments] = self._find(stage, *arguments, **named)
        return kept[arguments]


class Reading:
    """A function of a stage as read with the currently registered library functions.

    Attributes:
        graph: Its graph, without the layers of nodes.
        constants: The tensors of its constants, by their nodes.
        variables: The nodes of its variables and constants, by their addresses.
    """

    def __init__(self, stage: Stage, function: str) -> None:
        self.graph, self.constants, self.variables = read_function(
            stage.module,
            function,
            stage.constant_names,
            lambda name: _flops_of_functions(stage)(name),
        )
        self._registered = {
            node.callee: node.resolution
            for node in self.graph.nodes
            if node.resolution in (Resolution.LIBRARY, Resolution.UNKNOWN)
        }

    @cached_property
    def calls(self) -> tuple[Node, ...]:
        """The calls of the module's Relax functions."""
        return tuple(node for node in self.graph.nodes if node.resolution is Resolution.FUNCTION)

    @property
    def is_current(self) -> bool:
        """Whether the registered library functions are the same as when it was read."""
        return all(resolve_registered(name) is was for name, was in self._registered.items())


_read = kept_by_stage(Reading)


def reading_of(stage: Stage, function: str) -> Reading:
    """Return the reading of a stage's function; raise NoFunctionError if there is none."""
    reading = _read(stage, function)
    if not reading.is_current:  # which is rare: a kernel was registered
        _read.cache_clear()
        reading = _read(stage, function)
    return reading


# --- Which nodes of two stages correspond, by variables and tensors that they share --------------


@kept_by_stage
def inlined_graph(stage: Stage, function: str) -> InlinedGraph:
    """Return the graph of a stage's function with every called function inlined."""
    drawable_function(stage.module, function)
    names = {function, *relax_functions(stage.module)}
    return inline_calls(function, {name: reading_of(stage, name).graph for name in names})


def node_correspondence(
    tree: StageTree, function: str, stage_id: str, reference: str
) -> Mapping[NodeId, NodeId]:
    """Return the reference's node for each node of a stage that has one.

    Stages several steps apart are matched step by step, through their common ancestor, because each
    step keeps most nodes.
    """
    stages = tree.path_between(stage_id, reference)
    found = {node.id: node.id for node in inlined_graph(stages[0], function).graph.nodes}
    for one, two in pairwise(stages):
        if two.parent != one.id:
            step = match_stages(one, two, function)
        else:  # a stage is matched with its parent, not the parent with it
            back = match_stages(two, one, function)
            step = {other: node for node, other in reversed(list(back.items()))}
        found = {node: step[other] for node, other in found.items() if other in step}
    return found


@kept_by_stage
def match_stages(stage: Stage, reference: Stage, function: str) -> Mapping[NodeId, NodeId]:
    """Return another stage's node for each node of a stage that has one."""
    known = known_pairs(stage, reference, function, function)
    return inlined_correspondence(
        inlined_graph(stage, function), inlined_graph(reference, function), known
    )


def known_pairs(
    stage: Stage, reference: Stage, function: str, other: str
) -> Mapping[NodeId, NodeId]:
    """Match nodes of two functions of two stages by variable, tensor, or position in a layer."""
    mine, theirs = reading_of(stage, function), reading_of(reference, other)
    constants = shared_constants(mine.constants, theirs.constants)
    at = {
        position: node
        for node, position in reference.positions.items()
        if node in theirs.graph.index
    }
    positions = {
        one: at[position]
        for one, position in stage.positions.items()
        if position in at and one in mine.graph.index
    }
    return {**positions, **constants, **shared_vars(stage, reference, function, other)}


def shared_vars(
    stage: Stage, reference: Stage, function: str, other: str
) -> Mapping[NodeId, NodeId]:
    """Match the nodes of two functions of two stages whose variable is the same object.

    Most passes keep the variables of the bindings that they do not change, and FuseOps keeps those
    that it moves into new functions. So the nodes of called functions take part, with the ids that
    they have when the function is shown in place of the call. If a function is called several
    times, its nodes have several ids, and each is matched with the same id in the other stage.
    PrimFuncs share no variables. Raises NoFunctionError if a stage lacks its function.
    """
    mine, theirs = grouped(_ids(stage, function)), grouped(_ids(reference, other))
    found: dict[NodeId, NodeId] = {}
    for address, ids in mine.items():
        others = theirs.get(address, ())
        if len(ids) == len(others) == 1:
            found[ids[0]] = others[0]
        else:
            found.update((node_id, node_id) for node_id in ids if node_id in others)
    return found


def shared_constants(
    constants: Mapping[NodeId, tvm.runtime.Tensor], others: Mapping[NodeId, tvm.runtime.Tensor]
) -> Mapping[NodeId, NodeId]:
    """Match constants that hold the same tensor object; several of one tensor match in order."""
    free = grouped((tensor.__chandle__(), node_id) for node_id, tensor in others.items())
    found: dict[NodeId, NodeId] = {}
    for node_id, tensor in constants.items():
        left = free.get(tensor.__chandle__())
        if left:
            found[node_id] = left.pop(0)
    return found


def _ids(stage: Stage, function: str) -> list[tuple[int, NodeId]]:
    """Return the address and the id of each variable, also of called functions.

    If there are more than `_MOST_IDS`, as where functions call each other often, only those of the
    function itself: a part of the others could make a variable with several ids seem to have one.
    """
    found: list[tuple[int, NodeId]] = []
    waiting: list[tuple[str, str, tuple[str, ...]]] = [(function, "", ())]
    while waiting and len(found) <= _MOST_IDS:
        called, prefix, callers = waiting.pop()
        reading = reading_of(stage, called)
        found += [(address, NodeId(prefix + own)) for address, own in reading.variables.items()]
        if len(callers) < MAX_CALL_DEPTH:
            waiting += [
                (node.callee, inlined_id(prefix + node.id, ""), (*callers, node.callee))
                for node in reading.calls
                if node.callee not in callers
            ]
    return list(reading_of(stage, function).variables.items()) if waiting else found


# --- What is derived of a function's reading -----------------------------------------------------


def _kept_by_reading(find: Callable[[Stage, str], _Found]) -> Callable[[Stage, str], _Found]:
    """Cache what is derived of a function of a stage until that is read again."""
    kept = kept_by_stage(lambda stage, function, _: find(stage, function))
    return wraps(find)(lambda stage, function: kept(stage, function, reading_of(stage, function)))


@_kept_by_reading
def tree_of(stage: Stage, function: str) -> ContainerTree:
    """Return the containers of a stage's function: what can be expanded and collapsed."""
    return container_tree(graph_of(stage, function))


@_kept_by_reading
def groups_of(stage: Stage, function: str) -> tuple[Node, ...]:
    """Return the layers, repeats and parts of a stage's function as nodes."""
    return group_nodes(tree_of(stage, function))


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


@kept_by_stage
def source_lines_of(stage: Stage, function: str) -> Mapping[NodeId, tuple[str, int]]:
    """Return where each node was written, as far as that is known; see `source_lines`."""
    found = function_named(stage.module, function)
    return source_lines(found) if isinstance(found, relax.Function) else {}


@kept_by_stage
def source_notes(stage: Stage, function: str) -> Mapping[NodeId, str]:
    """Return the words for where each node was written, such as `model.py, line 23`."""
    return {node: source_words([place]) for node, place in source_lines_of(stage, function).items()}


def nest_of(stage: Stage, function: str) -> LoopNest | None:
    """Return the loop nest of a stage's PrimFunc, None if it has no PrimFunc of this name."""
    found = function_named(stage.module, function)
    return loop_nest(found, function) if isinstance(found, tirx.PrimFunc) else None


def script_of(stage: Stage) -> Script:
    """Return the TVMScript of a stage, with the lines of nodes."""
    return _script(stage.module)


_script = lru_cache(maxsize=8)(script)


# --- Count the floating-point operations of a stage's nodes, including called functions ----------


_MAX_CALLS = 3
"""The depth to which nested calls are counted, as functions may be recursive."""


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
        graph = reading_of(stage, name).graph
        flops = [node_flops(graph, node, of_inner) for node in graph.nodes]
        known = [one for one in flops if one is not None]
        return sum(known) if len(known) == len(flops) else None

    return of_function


# --- Count the operations of a PrimFunc ----------------------------------------------------------


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


@_kept_by_reading
def graph_of(stage: Stage, function: str) -> Graph:
    """Return the graph of a stage's function, with the layers that its nodes belong to.

    A node belongs to the layers of its counterparts in the stage before, and a call to those of its
    callee. The blocks of a PrimFunc have no layers. Raises NoFunctionError if there is no such
    function.
    """
    read = reading_of(stage, function).graph
    if isinstance(stage.module[function], tirx.PrimFunc):
        return read
    origins = [stage]
    while (origin := origins[-1].made_from) is not None and function in origin.module:
        origins.append(origin)
    for one in reversed(origins):  # so that none has to wait for many others
        _layers(one, function)
    return with_layers(read, _layers(stage, function))


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
