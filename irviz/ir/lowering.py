"""IRModule -> the same as the build makes it, with each variable's node in the module before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import tvm
from tvm import ir, relax

from irviz.ir.extent import tensors
from irviz.ir.identity import definitions, identify, relax_functions
from irviz.model.graph import NodeId

Known = TypeVar("Known")

WRITES = "CallTIRRewrite"
"""The pass behind which each call writes into a buffer that is allocated before it."""
PLANS = "KillAfterLastUse"
"""The pass behind which storages are shared, and what is no longer used is let go."""


@dataclass(frozen=True, eq=False)
class Traces:
    """What is known of a function's variables.

    `origins` has the node of the module before whose value a variable has, or a call makes;
    `written` the places, among a call's arguments, of the buffers that it writes.
    """

    origins: Mapping[ir.Var, NodeId] = field(default_factory=dict)
    written: Mapping[ir.Var, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Lowered:
    """A module behind a pass of the build, and what is known of each function's variables."""

    module: ir.IRModule
    traces: Mapping[str, Traces]


def lowered(mod: ir.IRModule, until: str) -> Lowered:
    """Return the module as it is behind the pass `until` of the build for `llvm`.

    The passes on Relax that `tvm.compile` has are run, and what they raise is raised; behind
    `WRITES` it does not matter, as what is written is known then. Raises ValueError when the
    build has no pass of this name.
    """
    watch = _Watch(mod, until)
    try:
        with tvm.transform.PassContext(instruments=[watch]), tvm.target.Target("llvm"):
            relax.get_pipeline("default")(mod)
    except Exception:  # TVM raises what its C++ side threw, of any class
        if watch.found is None or until != WRITES:
            raise
    if watch.found is None:
        raise ValueError(f"the build of this TVM has no pass {until!r}")
    return watch.found


@tvm.instrument.pass_instrument
class _Watch:
    """Follows the variables from pass to pass, and keeps the module behind one of them."""

    def __init__(self, mod: ir.IRModule, until: str) -> None:
        self.found: Lowered | None = None
        self._until, self._last = until, mod
        self._traces = {
            name: Traces(identify(function)) for name, function in relax_functions(mod).items()
        }

    def run_after_pass(self, mod: ir.IRModule, info: tvm.ir.transform.PassInfo) -> None:
        if self.found is not None:
            return
        before, after = relax_functions(self._last), relax_functions(mod)
        self._traces = {
            name: _followed(self._traces.get(name, Traces()), before.get(name), function)
            for name, function in after.items()
        }
        self._last = mod
        if info.name == WRITES:
            self._traces = {
                name: _with_calls(self._traces[name], function) for name, function in after.items()
            }
        if info.name == self._until:
            self.found = Lowered(mod, self._traces)


def _followed(traces: Traces, before: relax.Function | None, after: relax.Function) -> Traces:
    """Return what is known of the variables behind a pass.

    A pass keeps variables, or makes others of the same names in the same order.
    """
    if before is None or before.same_as(after):
        return traces
    old = [var for var, _ in definitions(before.params, before.body)]
    new = [var for var, _ in definitions(after.params, after.body)]
    is_renewed = [var.name for var in old] == [var.name for var in new]
    pairs = list(zip(old, new, strict=True)) if is_renewed else [(var, var) for var in new]
    return Traces(_carried(traces.origins, pairs), _carried(traces.written, pairs))


def _carried(
    known: Mapping[ir.Var, Known], pairs: Sequence[tuple[ir.Var, ir.Var]]
) -> dict[ir.Var, Known]:
    return {after: known[before] for before, after in pairs if before in known}


def _with_calls(traces: Traces, function: relax.Function) -> Traces:
    """Add which buffers a call writes, and give both the node that has their value.

    The pass makes `alloc = alloc_tensor(…); _ = f(x, alloc); y = alloc` of `y = call_tir(f, x)`.
    """
    origins, written = dict(traces.origins), dict(traces.written)
    call: ir.Var | None = None
    passed: list[ir.Expr] = []
    for var, binding in definitions(function.params, function.body):
        value = None if binding is None else binding.value
        results = list(value.fields) if isinstance(value, ir.Tuple) else [value]
        places = _places(results, passed)
        if call is not None and places:
            written[call] = places
            if call not in origins and var in origins:
                for one in (call, *results):
                    origins.setdefault(one, origins[var])
        call = None
        if isinstance(value, ir.Call) and not isinstance(value.op, ir.Op) and not tensors(value.ty):
            call, passed = var, list(value.args)
    return Traces(origins, written)


def _places(values: Sequence[ir.Expr | None], passed: Sequence[ir.Expr]) -> tuple[int, ...]:
    """Return where values stand among arguments; nothing when one of them does not."""
    found = [
        next((n for n, other in enumerate(passed) if value.same_as(other)), None)
        if isinstance(value, ir.Var)
        else None
        for value in values
    ]
    return () if None in found else tuple(n for n in found if n is not None)
