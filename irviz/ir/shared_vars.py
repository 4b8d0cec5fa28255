"""What two modules have in common: the very variables, and the very tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import tvm
from tvm import ir, relax

from irviz.ir.identity import definitions, drawn_function, identify
from irviz.model.graph import NodeId
from irviz.model.splice import within

MOST_CALLED = 8
"""How deep calls of functions are followed."""


def shared_vars(mod: ir.IRModule, other: ir.IRModule, function: str) -> Mapping[NodeId, NodeId]:
    """Return the node of the other module's function for each node with the same variable.

    Most passes keep the variables of what they leave as it is, and FuseOps those of what it
    moves into a function of its own. So nodes of called functions take part, by the ids they have
    where the function is shown in place of the call. A variable that has several places, because
    its function is called several times, is matched where it has the same one in both modules.
    A PrimFunc shares nothing. Raises NoFunctionError where one of the modules lacks the function.
    """
    mine = _places(mod, drawn_function(mod, function))
    theirs = _places(other, drawn_function(other, function))
    found: dict[NodeId, NodeId] = {}
    for address, places in mine.items():
        others = theirs.get(address, ())
        if len(places) == len(others) == 1:
            found[places[0]] = others[0]
        else:
            found.update((place, place) for place in places if place in others)
    return found


def shared_constants(
    constants: Mapping[NodeId, tvm.runtime.Tensor], others: Mapping[NodeId, tvm.runtime.Tensor]
) -> Mapping[NodeId, NodeId]:
    """Return the constant with the same tensor for each that has one, as `extract.read` has them.

    Where a tensor is several constants, they are matched in their order.
    """
    free: dict[int, list[NodeId]] = {}
    for node_id, tensor in others.items():
        free.setdefault(tensor.__chandle__(), []).append(node_id)
    found: dict[NodeId, NodeId] = {}
    for node_id, tensor in constants.items():
        left = free.get(tensor.__chandle__())
        if left:
            found[node_id] = left.pop(0)
    return found


def _places(mod: ir.IRModule, function: relax.Function | ir.BaseFunc) -> Mapping[int, list[NodeId]]:
    """Return the ids of each variable, by its address."""
    functions = {
        gvar.__chandle__(): called
        for gvar, called in mod.functions.items()
        if isinstance(called, relax.Function)
    }
    found: dict[int, list[NodeId]] = {}
    if isinstance(function, relax.Function):
        for address, node_id in _walk(function, functions, ()):
            found.setdefault(address, []).append(node_id)
    return found


def _walk(
    function: relax.Function, functions: Mapping[int, relax.Function], around: tuple[int, ...]
) -> Iterator[tuple[int, NodeId]]:
    ids = {var.__chandle__(): node_id for var, node_id in identify(function).items()}
    yield from ids.items()
    if not functions or len(around) >= MOST_CALLED:
        return
    for var, binding in definitions(function.params, function.body):
        value: ir.Expr | None = None if binding is None else binding.value
        key = value.op.__chandle__() if isinstance(value, ir.Call) else 0
        called = functions.get(key)
        if called is not None and key not in around:
            call = ids[var.__chandle__()]
            for address, node_id in _walk(called, functions, (*around, key)):
                yield address, within(call, node_id)
