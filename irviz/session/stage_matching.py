"""Which nodes of two stages correspond."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

import tvm
from tvm import ir, relax

from irviz.ir.module_functions import drawable_function, relax_functions
from irviz.ir.node_ids import definitions, identify
from irviz.model.graph.graph import NodeId, Resolution, inlined_id
from irviz.model.matching.inlined_graph import (
    MAX_CALL_DEPTH,
    InlinedGraph,
    inline_calls,
    inlined_correspondence,
)
from irviz.model.matching.node_matching import compose
from irviz.session.stage_readings import kept_by_stage, reading_of
from irviz.transforms.stage import Stage
from irviz.transforms.stage_tree import StageTree


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
    ours, theirs = tree.lineage(stage_id), tree.lineage(reference)
    common = [stage for stage in ours if stage in theirs]
    if not common:  # a recording has several roots
        return match_stages(ours[-1], theirs[-1], function)
    up = ours[ours.index(common[-1]) :][::-1]
    down = theirs[theirs.index(common[-1]) :]
    steps = [match_stages(child, parent, function) for child, parent in pairwise(up)]
    for parent, child in pairwise(down):
        step = match_stages(child, parent, function)
        steps.append({other: one for one, other in reversed(list(step.items()))})
    if not steps:
        return {node.id: node.id for node in inlined_graph(ours[-1], function).graph.nodes}
    return compose(*steps)


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
    readings = mine, theirs = reading_of(stage, function), reading_of(reference, other)
    constants = shared_constants(mine.constants, theirs.constants)
    if any(one.resolution is Resolution.FUNCTION for each in readings for one in each.graph.nodes):
        # variables move in and out of functions
        return {**constants, **shared_vars(stage.module, reference.module, function, other)}
    places = theirs.variables
    found = {one: places[var] for var, one in mine.variables.items() if var in places}
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
    return {**positions, **constants, **found}


# --- match by identity -------------------------------------------------------------------------
#
# Match the nodes of two modules that share a variable or a tensor.


def shared_vars(
    mod: ir.IRModule, other: ir.IRModule, function: str, other_function: str = ""
) -> Mapping[NodeId, NodeId]:
    """Match the nodes of a function in two modules whose variable is the same object.

    Most passes keep the variables of the bindings that they do not change, and FuseOps keeps those
    that it moves into new functions. So the nodes of called functions take part, with the ids that
    they have when the function is shown in place of the call. If a function is called several
    times, its nodes have several ids, and each is matched with the same id in the other module.
    PrimFuncs share no variables. The function has by default the same name in both modules. Raises
    NoFunctionError if a module lacks the function.
    """
    mine, theirs = _ids_by_var(mod, function), _ids_by_var(other, other_function or function)
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
    free: dict[int, list[NodeId]] = {}
    for node_id, tensor in others.items():
        free.setdefault(tensor.__chandle__(), []).append(node_id)
    found: dict[NodeId, NodeId] = {}
    for node_id, tensor in constants.items():
        left = free.get(tensor.__chandle__())
        if left:
            found[node_id] = left.pop(0)
    return found


def _ids_by_var(mod: ir.IRModule, name: str) -> Mapping[int, list[NodeId]]:
    """Return the ids of each variable, by the variable's address."""
    functions = {
        gvar.__chandle__(): called
        for gvar, called in mod.functions.items()
        if isinstance(called, relax.Function)
    }
    found: dict[int, list[NodeId]] = {}
    function = drawable_function(mod, name)
    if isinstance(function, relax.Function):
        for address, node_id in _walk(function, functions, ()):
            found.setdefault(address, []).append(node_id)
    return found


def _walk(
    function: relax.Function, functions: Mapping[int, relax.Function], callers: tuple[int, ...]
) -> Iterator[tuple[int, NodeId]]:
    ids = {var.__chandle__(): node_id for var, node_id in identify(function).items()}
    yield from ids.items()
    if not functions or len(callers) >= MAX_CALL_DEPTH:
        return
    for var, binding in definitions(function.params, function.body):
        value: ir.Expr | None = None if binding is None else binding.value
        key = value.op.__chandle__() if isinstance(value, ir.Call) else 0
        called = functions.get(key)
        if called is not None and key not in callers:
            call = ids[var.__chandle__()]
            for address, node_id in _walk(called, functions, (*callers, key)):
                yield address, inlined_id(call, node_id)
