"""What a call calls: the one place that reads a callee."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

import tvm
import tvm_ffi
from tvm import ir, relax, tirx

from irviz.model.graph import NodeKind, Resolution

_DESTINATION_PASSING = ("relax.call_tir", "relax.call_dps_packed")


def callee_name(callee: ir.Expr) -> str:
    """Return the name of a GlobalVar or ExternFunc, or "" for any other callee."""
    match callee:
        case relax.ExternFunc():
            return str(callee.global_symbol)
        case ir.GlobalVar():
            return str(callee.name_hint)
        case _:
            return ""


def is_destination_passing(value: ir.Expr) -> bool:
    """Tell whether a value is a call_tir or a call_dps_packed."""
    is_op_call = isinstance(value, ir.Call) and isinstance(value.op, ir.Op)
    return is_op_call and value.op.name in _DESTINATION_PASSING


class Passing(Enum):
    """How an Op that calls something else is given it and its arguments."""

    TUPLED = "(callee, (x, …), …)"
    SPREAD = "(callee, x, …)"


NAMED_CALLS: dict[str, tuple[NodeKind, Passing]] = {
    "relax.call_tir": (NodeKind.CALL_TIR, Passing.TUPLED),
    "relax.call_tir_inplace": (NodeKind.CALL_TIR, Passing.TUPLED),
    "relax.call_tir_with_grad": (NodeKind.CALL_TIR, Passing.TUPLED),
    "relax.dist.call_tir_local_view": (NodeKind.CALL_TIR, Passing.TUPLED),
    "relax.vm.call_tir_dyn": (NodeKind.CALL_TIR, Passing.TUPLED),
    "relax.call_dps_packed": (NodeKind.CALL_DPS_PACKED, Passing.TUPLED),
    "relax.call_pure_packed": (NodeKind.CALL_PACKED, Passing.SPREAD),
    "relax.call_inplace_packed": (NodeKind.CALL_PACKED, Passing.SPREAD),
    "relax.call_builtin_with_ctx": (NodeKind.CALL_PACKED, Passing.TUPLED),
    "relax.call_py_func": (NodeKind.CALL_PACKED, Passing.TUPLED),
    "relax.invoke_closure": (NodeKind.CALL_FUNCTION, Passing.TUPLED),
    "relax.invoke_pure_closure": (NodeKind.CALL_FUNCTION, Passing.TUPLED),
}
"""The Ops that call what their first argument names."""


class Callee(NamedTuple):
    """What is called: `structure` is equal for functions that do the same, whatever their name."""

    name: str
    resolution: Resolution | None
    is_pure: bool
    structure: int | str


class Callees:
    """Looks up what the callees of one module lead to, each of them once."""

    def __init__(self, mod: ir.IRModule) -> None:
        self._functions = {str(gvar.name_hint): f for gvar, f in mod.functions.items()}
        self._python = python_functions(mod)
        self._known: dict[str, Callee] = {}

    def of(self, callee: ir.Expr, operator: str) -> Callee | None:
        """Return what an expression in the place of a callee names, or None if it names nothing.

        A variable is a callee without a resolution: what it holds is known when the module runs.
        """
        if isinstance(callee, ir.Var):
            return Callee(str(callee.name), None, _is_pure(callee), "")
        if isinstance(callee, ir.StringImm) and operator == "relax.call_py_func":
            name = str(callee.value)
            known = Resolution.PYTHON if name in self._python else Resolution.UNKNOWN
            return Callee(name, known, True, name)
        if not isinstance(callee, ir.GlobalVar | relax.ExternFunc):
            return None
        name = callee_name(callee)
        if name not in self._known:
            self._known[name] = self._named(name)
        return self._known[name]

    def _named(self, name: str) -> Callee:
        function = self._functions.get(name)
        if not isinstance(function, relax.Function | tirx.PrimFunc):
            return Callee(name, registered(name), False, name)
        structure = tvm_ffi.structural_hash(
            function.without_attr("global_symbol"), skip_tensor_content=True
        )
        if isinstance(function, tirx.PrimFunc):
            return Callee(name, Resolution.PRIM_FUNC, _is_pure(function), structure)
        return Callee(name, Resolution.FUNCTION, _is_pure(function), structure)


def python_functions(mod: ir.IRModule) -> frozenset[str]:
    """Return the names of a BasePyModule's Python functions: what passes leave of them counts too.

    The module itself forgets them when a pass makes another of it, or when it is written to a
    file; what stays is an ExternFunc that is marked.
    """
    left = [
        str(gvar.name_hint)
        for gvar, function in mod.functions.items()
        if isinstance(function, relax.ExternFunc)
        and function.attrs is not None
        and "is_pyfunc" in function.attrs.keys()  # noqa: SIM118 - no iterator
    ]
    return frozenset([*left, *map(str, getattr(mod, "pyfuncs", None) or ())])


def registered(name: str) -> Resolution:
    """Tell whether a function of this name is registered with TVM."""
    is_there = tvm.get_global_func(name, allow_missing=True) is not None
    return Resolution.LIBRARY if is_there else Resolution.UNKNOWN


def _is_pure(callee: ir.Expr) -> bool:
    type_ = callee.ty
    return bool(type_.purity) if isinstance(type_, relax.FuncType) else False
