"""The callees of calls, and those that could replace them according to their signatures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from types import MappingProxyType

import tvm
from tvm import ir, relax, tirx

from irviz.ir.calls import callee_name, is_destination_passing
from irviz.ir.module_functions import prim_funcs, relax_functions
from irviz.ir.node_ids import NodeIds, definitions
from irviz.model.graph.graph import NodeId
from irviz.transforms.kernels import signature as signatures
from irviz.transforms.kernels.library import (
    LibraryKernel,
    NoPrimFuncError,
    TEDefinition,
    is_current,
    kernels,
    prim_func_for_call,
)
from irviz.transforms.kernels.library import definitions as te_definitions

_MOST_NAMES = 4
_MOST_KEPT = 8


class CallTargetKind(Enum):
    """What kind of callee a name stands for."""

    PRIM_FUNC = "PrimFunc"
    KERNEL = "kernel"
    DEFINITION = "definition"
    REGISTERED = "registered function"


@dataclass(frozen=True)
class CallTarget:
    """A callee by name; `function` is None for what was registered with TVM directly."""

    name: str
    kind: CallTargetKind
    function: tirx.PrimFunc | LibraryKernel | TEDefinition | None


@dataclass(frozen=True)
class BoundCall:
    """A call_tir or call_dps_packed, the variable it is bound to, and the name of its callee."""

    var: ir.Var
    call: ir.Call
    callee: str


@lru_cache(maxsize=_MOST_KEPT)
def dps_calls(function: relax.Function) -> Mapping[NodeId, BoundCall]:
    """Return the destination-passing calls of a Relax function, also in branches and closures."""
    names = NodeIds()
    found = {}
    for var, binding in definitions(function.params, function.body):
        node = names.define(var.name)
        if binding is not None and is_destination_passing(binding.value):
            callee = callee_name(binding.value.args[0])
            if callee:
                found[node] = BoundCall(var, binding.value, callee)
    return MappingProxyType(found)


def call_target(mod: ir.IRModule, name: str) -> CallTarget | None:
    """Look a name up: in the module, the library, the TE definitions, then TVM's registry."""
    function = prim_funcs(mod).get(name)
    if function is not None:
        return CallTarget(name, CallTargetKind.PRIM_FUNC, function)
    if name in kernels() and is_current(name):
        return CallTarget(name, CallTargetKind.KERNEL, kernels()[name])
    if name in te_definitions():
        return CallTarget(name, CallTargetKind.DEFINITION, te_definitions()[name])
    if tvm.get_global_func(name, allow_missing=True) is not None:
        return CallTarget(name, CallTargetKind.REGISTERED, None)
    return None


def call_targets(mod: ir.IRModule) -> dict[str, CallTarget]:
    """Return every possible callee of the module's calls, by name.

    PrimFuncs come first, then kernels in the order of registration, definitions, and the
    functions registered with TVM directly that the module calls.
    """
    called = {
        call.callee
        for function in relax_functions(mod).values()
        for call in dps_calls(function).values()
    }
    names = dict.fromkeys([*prim_funcs(mod), *kernels(), *te_definitions(), *sorted(called)])
    found = {name: call_target(mod, name) for name in names}
    targets = [target for target in found.values() if target is not None]
    kinds = list(CallTargetKind)
    return {target.name: target for target in sorted(targets, key=lambda t: kinds.index(t.kind))}


def misfit(mod: ir.IRModule, call: ir.Call, name: str) -> str:
    """Return why the callee of this name cannot replace that of a call, "" when it can."""
    found = signatures.signature_of_call(call)
    if found is None:
        return "the call has arguments that are not tensors of known shape"
    chosen = call_target(mod, name)
    if chosen is None:
        fitting = [k.name for k in kernels().values() if fits_any(k.signatures, found)]
        some = ", ".join(map(repr, fitting[:_MOST_NAMES]))
        some += ", …" if len(fitting) > _MOST_NAMES else ""
        advice = f"of the library {some} would fit: name one of these, or" if some else "you can"
        return (
            "no function of this name is registered; "
            f"{advice} register yours with @irviz.library.register"
        )
    if chosen.function is None:
        return ""  # registered with TVM directly: its signature is unknown
    wanted = signatures_of(chosen.function, len(found.outputs))
    if not wanted:
        return "it has parameters that are not buffers"
    if not fits_any(wanted, found):
        *most, last = dict.fromkeys(_dtypes(each) for each in wanted)
        dtypes = f"{', '.join(most)} or {last}" if most else last
        return (
            f"its signature is {wanted[0]} of {dtypes}, "
            f"and the call has {found} of {_dtypes(found)}"
        )
    if isinstance(chosen.function, TEDefinition):
        try:
            prim_func_for_call(chosen.function, call)
        except NoPrimFuncError as failure:
            return str(failure)
    return ""


def signatures_of(
    function: tirx.PrimFunc | LibraryKernel | TEDefinition, outputs: int
) -> tuple[signatures.Signature, ...]:
    """Return the signatures of a callee with this many outputs, none if it takes no buffers."""
    if not isinstance(function, tirx.PrimFunc):
        return function.signatures
    own = signatures.signature_of_prim_func(function, outputs)
    return () if own is None else (own,)


def fits_any(wanted: tuple[signatures.Signature, ...], call: signatures.Signature) -> bool:
    """Tell whether a call fits one of the signatures."""
    return any(signatures.fits(each, call) for each in wanted)


def _dtypes(signature: signatures.Signature) -> str:
    return "/".join(sorted({tensor.dtype for tensor in signature.tensors}))
