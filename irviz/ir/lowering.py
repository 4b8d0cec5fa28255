"""Run the passes of the build up to one of them, and follow every variable through them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import tvm
from tvm import ir, relax

from irviz.ir.module_functions import relax_functions
from irviz.ir.node_ids import definitions, identify
from irviz.ir.symbolic_shapes import tensor_types
from irviz.model.graph.graph import NodeId

CALL_TIR_REWRITE = "CallTIRRewrite"
"""After this pass each call writes into a buffer that is allocated before it."""
KILL_AFTER_LAST_USE = "KillAfterLastUse"
"""After this pass buffers share storages, and each is freed after its last use."""


@dataclass(frozen=True, eq=False)
class VarOrigins:
    """The relation of a lowered function's variables to the original function.

    `origins` maps a variable to the original node with its value, or that its call computes;
    `written` gives the argument positions of the buffers that a variable's call writes.
    """

    origins: Mapping[ir.Var, NodeId] = field(default_factory=dict)
    written: Mapping[ir.Var, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class LoweredModule:
    """A module after a pass of the build, and the origins of each function's variables."""

    module: ir.IRModule
    origins: Mapping[str, VarOrigins]


def lower(mod: ir.IRModule, until: str) -> LoweredModule:
    """Return the module after the pass `until` of the build for `llvm`.

    This runs the Relax passes of `tvm.compile`, and raises what they raise. An error of a pass
    after `CALL_TIR_REWRITE` is ignored if the module is wanted as that pass leaves it. Raises
    ValueError if the build has no pass of this name.
    """
    watch = _VarTracker(mod, until)
    try:
        with tvm.transform.PassContext(instruments=[watch]), tvm.target.Target("llvm"):
            relax.get_pipeline("default")(mod)
    except Exception:  # TVM raises errors of any class from C++
        if watch.result is None or until != CALL_TIR_REWRITE:
            raise
    if watch.result is None:
        raise ValueError(f"the build of this TVM has no pass {until!r}")
    return watch.result


@tvm.instrument.pass_instrument
class _VarTracker:
    """Follows the variables from pass to pass, and keeps the module after one of them."""

    def __init__(self, mod: ir.IRModule, until: str) -> None:
        self.result: LoweredModule | None = None
        self._until, self._last = until, mod
        self._origins = {
            name: VarOrigins(identify(function)) for name, function in relax_functions(mod).items()
        }

    def run_after_pass(self, mod: ir.IRModule, info: tvm.ir.transform.PassInfo) -> None:
        if self.result is not None:
            return
        before, after = relax_functions(self._last), relax_functions(mod)
        self._origins = {
            name: _follow(self._origins.get(name, VarOrigins()), before.get(name), function)
            for name, function in after.items()
        }
        self._last = mod
        if info.name == CALL_TIR_REWRITE:
            self._origins = {
                name: _with_calls(self._origins[name], function) for name, function in after.items()
            }
        if info.name == self._until:
            self.result = LoweredModule(mod, self._origins)


def _follow(known: VarOrigins, before: relax.Function | None, after: relax.Function) -> VarOrigins:
    """Return the origins of the variables after a pass.

    A pass keeps variables, or makes others of the same names in the same order.
    """
    if before is None or before.same_as(after):
        return known
    old = [var for var, _ in definitions(before.params, before.body)]
    new = [var for var, _ in definitions(after.params, after.body)]
    is_renewed = [var.name for var in old] == [var.name for var in new]
    pairs = list(zip(old if is_renewed else new, new, strict=True))
    return VarOrigins(
        {new: known.origins[old] for old, new in pairs if old in known.origins},
        {new: known.written[old] for old, new in pairs if old in known.written},
    )


def _with_calls(known: VarOrigins, function: relax.Function) -> VarOrigins:
    """Add the buffers that each call writes, and the origin of the call and of the buffers.

    The pass turns `y = call_tir(f, x)` into `alloc = alloc_tensor(…); _ = f(x, alloc); y = alloc`.
    """
    origins, written = dict(known.origins), dict(known.written)
    call: ir.Var | None = None
    arguments: list[ir.Expr] = []
    for var, binding in definitions(function.params, function.body):
        value = None if binding is None else binding.value
        results = list(value.fields) if isinstance(value, ir.Tuple) else [value]
        positions = _positions(results, arguments)
        if call is not None and positions:
            written[call] = positions
            if call not in origins and var in origins:
                for one in (call, *results):
                    origins.setdefault(one, origins[var])
        call = None
        if not isinstance(value, ir.Call) or isinstance(value.op, ir.Op):
            continue
        if not tensor_types(value.ty):
            call, arguments = var, list(value.args)
    return VarOrigins(origins, written)


def _positions(values: Sequence[ir.Expr | None], arguments: Sequence[ir.Expr]) -> tuple[int, ...]:
    """Return the positions of the values among the arguments, or () if one is missing."""
    found = [
        [
            at
            for at, other in enumerate(arguments)
            if isinstance(value, ir.Var) and value.same_as(other)
        ]
        for value in values
    ]
    return tuple(places[0] for places in found) if all(found) else ()
