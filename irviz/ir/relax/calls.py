"""Reading calls: the callee, its arguments, and the operators that call their first argument."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

import tvm
import tvm_ffi
from tvm import ir, relax, tirx

from irviz.ir.module_functions import function_named, python_functions
from irviz.ir.node_ids import MAX_NESTING
from irviz.ir.relax.accesses import call_access, operator_access, prim_func_access
from irviz.ir.text.text_cache import TextCache
from irviz.ir.text.type_labels import type_label
from irviz.model.graph.access import PURE_UNKNOWN, UNKNOWN, Access
from irviz.model.graph.graph import CALLEE, NodeId, NodeKind, Resolution

Position = tuple[int, ...]
_FIRST: tuple[Position, ...] = tuple((index,) for index in range(16))  # made once

# An Array's own methods call these, and spend time on slices and negative indices.
_size, _item = tvm.get_global_func("ffi.ArraySize"), tvm.get_global_func("ffi.ArrayGetItem")


class Passing(Enum):
    """How an operator takes its callee and the callee's arguments."""

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
"""The operators that call their first argument. The tests compare this with TVM's registry."""

_WRITES_ARGUMENTS = ("", "relax.vm.call_tir_dyn")
"""A direct call, and the operator, of a PrimFunc that is given what it writes."""


def callee_name(callee: ir.Expr) -> str:
    """Return the name of a GlobalVar or ExternFunc, or "" for any other callee."""
    if type(callee) is ir.GlobalVar:
        return str(callee.name_hint)
    return str(callee.global_symbol) if type(callee) is relax.ExternFunc else ""


def is_destination_passing(value: ir.Expr) -> bool:
    """Tell whether a value is a call_tir or a call_dps_packed."""
    is_op_call = isinstance(value, ir.Call) and isinstance(value.op, ir.Op)
    return is_op_call and value.op.name in ("relax.call_tir", "relax.call_dps_packed")


def resolve_registered(name: str) -> Resolution:
    """Tell whether a function of this name is registered with TVM."""
    is_registered = tvm.get_global_func(name, allow_missing=True) is not None
    return Resolution.LIBRARY if is_registered else Resolution.UNKNOWN


class Callee(NamedTuple):
    """A callee; `structure` is equal for functions that do the same under different names."""

    name: str
    resolution: Resolution | None
    is_pure: bool
    structure: int | str


class _Operator(NamedTuple):
    name: str
    kind: NodeKind
    passing: Passing | None
    is_pure: bool
    access: Access | None


class ValueReading(NamedTuple):
    """The kind of node that a value becomes, before its arguments are followed.

    `results` are operands that are nodes already; `structure` identifies what the call computes
    where that is known better than by the callee's name.
    """

    kind: NodeKind
    arguments: list[tuple[Position, ir.Expr]]
    callee: str = ""
    resolution: Resolution | None = None
    operator: str = ""
    attributes: tuple[tuple[str, str], ...] = ()
    is_pure: bool = True
    structure: int | str = ""
    access: Access | None = None
    results: Sequence[tuple[Position, NodeId]] = ()


class CallReader:
    """Reads the calls of one module; each operator and each callee is looked up once.

    Classes are compared by `type`: `isinstance` takes five times as long for TVM's.
    """

    def __init__(self, mod: ir.IRModule, texts: TextCache) -> None:
        self._texts = texts
        self._mod = mod
        self._callees: dict[str, Callee] = {}
        self._operators: dict[int, _Operator] = {}

    def read(self, call: ir.Call, ids: Mapping[int, NodeId]) -> ValueReading | None:
        """Read a call of Relax; return None for any other, and if the callee's class is unknown."""
        op, arguments = call.op, items(call.args)
        attrs = self._texts.attributes(call.attrs)
        if type(op) is ir.Op:
            operator, kind, passing, is_pure, access = self._operator(op)
            callee = self.callee(arguments[0], operator) if passing and arguments else None
            if callee is None:
                if not operator.startswith("relax."):  # such as T.if_then_else(n > 1, n, m)
                    return None
                if passing is not None:  # its first argument names no function
                    kind = NodeKind.OPERATOR
                found, access = leaves(arguments), call_access(call, operator, "", access)
                name = operator
                return ValueReading(kind, found, name, None, name, attrs, is_pure, name, access)
            called, *arguments = arguments
            if passing is Passing.TUPLED and arguments and type(arguments[0]) is ir.Tuple:
                arguments = [*items(arguments[0].fields), *arguments[1:]]
        else:
            called, callee, operator = op, self.callee(op, ""), ""
            if callee is None:
                return None
            is_packed = isinstance(op, relax.ExternFunc)
            kind = NodeKind.CALL_PACKED if is_packed else NodeKind.CALL_FUNCTION
            is_pure = callee.is_pure and not is_packed
            access = None if callee.resolution is Resolution.FUNCTION else UNKNOWN
            if callee.resolution is None and is_pure:  # the value of a variable
                access = PURE_UNKNOWN
        found = leaves(arguments)
        if called.__chandle__() in ids:
            found.insert(0, (CALLEE, called))
        name, resolution, _, structure = callee
        if resolution is Resolution.PRIM_FUNC and operator in _WRITES_ARGUMENTS:
            access = prim_func_access(function_named(self._mod, name))
        else:
            access = call_access(call, operator, name, access)
        facts = (name, resolution, operator, attrs, is_pure, structure, access)
        return ValueReading(kind, found, *facts)

    def callee(self, callee: ir.Expr, operator: str) -> Callee | None:
        """Return the callee that an expression names, or None if it names none.

        A variable is a callee without a resolution: its value is known only at run time.
        """
        if type(callee) in (ir.GlobalVar, relax.ExternFunc):
            name = callee_name(callee)
            if name not in self._callees:
                self._callees[name] = self._look_up(name)
            return self._callees[name]
        if isinstance(callee, ir.Var):
            return Callee(str(callee.name), None, _is_pure(callee), "")
        if isinstance(callee, ir.StringImm) and operator == "relax.call_py_func":
            name = str(callee.value)
            resolution = (
                Resolution.PYTHON if name in python_functions(self._mod) else Resolution.UNKNOWN
            )
            return Callee(name, resolution, True, name)
        return None

    def _look_up(self, name: str) -> Callee:
        function = function_named(self._mod, name)
        if not isinstance(function, relax.Function | tirx.PrimFunc):
            return Callee(name, resolve_registered(name), False, name)
        structure = tvm_ffi.structural_hash(
            function.without_attr("global_symbol"), skip_tensor_content=True
        )
        is_prim_func = isinstance(function, tirx.PrimFunc)
        resolution = Resolution.PRIM_FUNC if is_prim_func else Resolution.FUNCTION
        return Callee(name, resolution, _is_pure(function), structure)

    def _operator(self, op: ir.Op) -> _Operator:
        key = op.__chandle__()
        if key not in self._operators:
            name = str(op.name)
            kind, passing = NAMED_CALLS.get(name, (NodeKind.OPERATOR, None))
            is_pure = bool(op.get_attr("FPurity"))
            access = operator_access(name, is_pure=is_pure)
            self._operators[key] = _Operator(name, kind, passing, is_pure, access)
        return self._operators[key]


def _is_pure(callee: ir.Expr) -> bool:
    return isinstance(callee.ty, relax.FuncType) and bool(callee.ty.purity)


def items(array: Any) -> list[Any]:
    """Return the items of one of TVM's arrays."""
    return [_item(array, index) for index in range(_size(array))]


def other_types(call: ir.Call, type_: ir.Type) -> str:
    """Return the types that a call is given, "" where it is that of its value alone, or none."""
    given = call.ty_args
    count = _size(given)
    if count == 1:
        return other_type(_item(given, 0), type_)
    return ", ".join(type_label(one) for one in items(given)) if count else ""


def other_type(given: ir.Type, type_: ir.Type) -> str:
    """Return a type that is given for a value, "" where it is the value's own."""
    if given.same_as(type_) or tvm_ffi.structural_equal(given, type_):
        return ""
    return type_label(given)


def leaves(arguments: Sequence[ir.Expr], depth: int = 0) -> list[tuple[Position, ir.Expr]]:
    """Return the arguments with their positions; those in nested tuples have longer positions.

    A tuple without fields, or one that is nested too deeply, is itself a leaf.
    """
    found: list[tuple[Position, ir.Expr]] = []
    for index, argument in enumerate(arguments):
        position = _FIRST[index] if index < len(_FIRST) else (index,)
        is_followed = type(argument) is ir.Tuple and depth < MAX_NESTING
        if is_followed and (fields := items(argument.fields)):
            found += [((*position, *at), leaf) for at, leaf in leaves(fields, depth + 1)]
        else:
            found.append((position, argument))
    return found
