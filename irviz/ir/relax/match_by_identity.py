"""Match the nodes of two modules that share a variable or a tensor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import tvm
from tvm import ir, relax

from irviz.ir.module_functions import drawable_function
from irviz.ir.node_ids import definitions, identify
from irviz.model.graph.graph import NodeId
from irviz.model.graph.inlined_ids import inlined_id
from irviz.model.matching.inlined_graph import MAX_CALL_DEPTH


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
