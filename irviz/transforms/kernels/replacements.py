"""What calls call, and what could be called instead as far as signatures tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from types import MappingProxyType
from typing import TypeGuard

import tvm
from tvm import ir, relax, tirx

from irviz.ir.callee import callee_name, is_destination_passing
from irviz.ir.identity import Names, definitions, relax_functions
from irviz.model.graph import NodeId
from irviz.transforms.kernels import signature as signatures
from irviz.transforms.kernels.definitions import Definition, NoPrimFuncError, defined, made_for
from irviz.transforms.kernels.library import Kernel, is_current, kernels

_MOST_NAMES = 4
_MOST_KEPT = 8


class Kind(Enum):
    """What a name stands for."""

    PRIM_FUNC = "PrimFunc"
    KERNEL = "kernel"
    DEFINITION = "definition"
    REGISTERED = "registered function"


@dataclass(frozen=True)
class Replacement:
    """What can be called by a name; `function` is nothing for what was registered past irviz."""

    name: str
    kind: Kind
    function: tirx.PrimFunc | Kernel | Definition | None


@dataclass(frozen=True)
class BoundCall:
    """A call_tir or call_dps_packed, the variable it is bound to, and what it calls."""

    var: ir.Var
    call: ir.Call
    callee: str


@lru_cache(maxsize=_MOST_KEPT)
def calls(function: relax.Function) -> Mapping[NodeId, BoundCall]:
    """Return the calls of a Relax function, those in branches and inner functions too."""
    names = Names()
    found = {}
    for var, binding in definitions(function.params, function.body):
        node = names.define(var.name)
        if binding is not None and is_call(binding.value):
            found[node] = BoundCall(var, binding.value, callee_name(binding.value.args[0]))
    return MappingProxyType(found)


def is_call(value: ir.Expr) -> TypeGuard[ir.Call]:
    """Tell whether a value is a call_tir or call_dps_packed of something that has a name."""
    return is_destination_passing(value) and bool(callee_name(value.args[0]))


def prim_funcs(mod: ir.IRModule) -> dict[str, tirx.PrimFunc]:
    """Return the module's PrimFuncs, in the order of their names."""
    found = {
        gvar.name_hint: function
        for gvar, function in mod.functions.items()
        if isinstance(function, tirx.PrimFunc)
    }
    return dict(sorted(found.items()))


def replacement(mod: ir.IRModule, name: str) -> Replacement | None:
    """Return what a name stands for: in the module, in the library, in TE, or else with TVM."""
    function = prim_funcs(mod).get(name)
    if function is not None:
        return Replacement(name, Kind.PRIM_FUNC, function)
    if name in kernels() and is_current(name):
        return Replacement(name, Kind.KERNEL, kernels()[name])
    if name in defined():
        return Replacement(name, Kind.DEFINITION, defined()[name])
    if tvm.get_global_func(name, allow_missing=True) is not None:
        return Replacement(name, Kind.REGISTERED, None)
    return None


def replacements(mod: ir.IRModule) -> dict[str, Replacement]:
    """Return what calls of the module could call, by name.

    PrimFuncs come first, then kernels as they were registered, definitions, and what is
    registered past irviz and called in the module.
    """
    names = dict.fromkeys([*prim_funcs(mod), *kernels(), *defined(), *_called(mod)])
    found = {name: replacement(mod, name) for name in names}
    there = [each for each in found.values() if each is not None]
    return {each.name: each for each in sorted(there, key=lambda r: list(Kind).index(r.kind))}


@lru_cache(maxsize=_MOST_KEPT)
def _called(mod: ir.IRModule) -> tuple[str, ...]:
    """Return the names that the module's Relax functions call, in the order of the alphabet."""
    values = (
        binding.value
        for function in relax_functions(mod).values()
        for _, binding in definitions(function.params, function.body)
        if binding is not None
    )
    return tuple(sorted({callee_name(value.args[0]) for value in values if is_call(value)}))


def misfit(mod: ir.IRModule, call: ir.Call, name: str) -> str:
    """Say why what is called this cannot take the callee's place in a call, or "" when it can."""
    found = signatures.of_call(call)
    if found is None:
        return "the call has arguments that are no tensors of known shape"
    chosen = replacement(mod, name)
    if chosen is None:
        fitting = [k.name for k in kernels().values() if fits_any(k.signatures, found)]
        some = ", ".join(map(repr, fitting[:_MOST_NAMES]))
        some += ", …" if len(fitting) > _MOST_NAMES else ""
        advice = f"of the library {some} would fit: name one of these, or" if some else "you can"
        return (
            "no function of this name is registered; "
            f"{advice} register yours with @irviz.library.register"
        )
    match chosen.function:
        case None:
            return ""  # registered past irviz: its signature is not known here
        case tirx.PrimFunc():
            own = signatures.of_prim_func(chosen.function, len(found.outputs))
            if own is None:
                return "it has parameters that are no buffers"
            wanted: tuple[signatures.Signature, ...] = (own,)
        case _:
            wanted = chosen.function.signatures
    if not fits_any(wanted, found):
        *most, last = dict.fromkeys(_dtypes(each) for each in wanted)
        dtypes = f"{', '.join(most)} or {last}" if most else last
        return (
            f"its signature is {wanted[0]} of {dtypes}, "
            f"and the call has {found} of {_dtypes(found)}"
        )
    if isinstance(chosen.function, Definition):
        try:
            made_for(chosen.function, call)
        except NoPrimFuncError as failure:
            return str(failure)
    return ""


def fits_any(wanted: tuple[signatures.Signature, ...], call: signatures.Signature) -> bool:
    """Tell whether a call has one of the signatures."""
    return any(signatures.fits(each, call) for each in wanted)


def _dtypes(signature: signatures.Signature) -> str:
    dtypes = {tensor.dtype for tensor in (*signature.inputs, *signature.outputs)}
    return "/".join(sorted(dtypes))
