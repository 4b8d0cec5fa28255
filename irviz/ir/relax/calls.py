"""Reading calls: the callee, its arguments, and the operators that call their first argument."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

import tvm
import tvm_ffi
from tvm import ir, relax, tirx

from irviz.ir.functions import python_functions
from irviz.ir.node_ids import MAX_NESTING
from irviz.ir.text.text_cache import TextCache
from irviz.model.graph.graph import CALLEE, NodeId, NodeKind, Resolution

Position = tuple[int, ...]
FIRST: tuple[Position, ...] = tuple((index,) for index in range(16))
"""The first positions, made once."""

_DESTINATION_PASSING = ("relax.call_tir", "relax.call_dps_packed")


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


class Callees:
    """Resolves the callees of one module, each of them once."""

    def __init__(self, mod: ir.IRModule) -> None:
        self._functions = {str(gvar.name_hint): f for gvar, f in mod.functions.items()}
        self._python = python_functions(mod)
        self._resolved: dict[str, Callee] = {}

    def resolve(self, callee: ir.Expr, operator: str) -> Callee | None:
        """Return the callee that an expression names, or None if it names none.

        A variable is a callee without a resolution: its value is known only at run time.
        """
        if isinstance(callee, ir.Var):
            return Callee(str(callee.name), None, _is_pure(callee), "")
        if isinstance(callee, ir.StringImm) and operator == "relax.call_py_func":
            name = str(callee.value)
            resolution = Resolution.PYTHON if name in self._python else Resolution.UNKNOWN
            return Callee(name, resolution, True, name)
        if not isinstance(callee, ir.GlobalVar | relax.ExternFunc):
            return None
        name = callee_name(callee)
        if name not in self._resolved:
            self._resolved[name] = self._resolve_name(name)
        return self._resolved[name]

    def _resolve_name(self, name: str) -> Callee:
        function = self._functions.get(name)
        if not isinstance(function, relax.Function | tirx.PrimFunc):
            return Callee(name, resolve_registered(name), False, name)
        structure = tvm_ffi.structural_hash(
            function.without_attr("global_symbol"), skip_tensor_content=True
        )
        is_prim_func = isinstance(function, tirx.PrimFunc)
        resolution = Resolution.PRIM_FUNC if is_prim_func else Resolution.FUNCTION
        return Callee(name, resolution, _is_pure(function), structure)


def _is_pure(callee: ir.Expr) -> bool:
    type_ = callee.ty
    return bool(type_.purity) if isinstance(type_, relax.FuncType) else False


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
    results: Sequence[tuple[Position, NodeId]] = ()


class OpForm(NamedTuple):
    """How calls of one operator are read."""

    kind: NodeKind
    operator: str
    passing: Passing | None
    is_pure: bool


class CallReader:
    """Reads the calls of one module.

    `forms` has the form of each operator met so far, and `callees` each function of the module
    that one of them called, both by address.
    """

    def __init__(self, mod: ir.IRModule, texts: TextCache) -> None:
        self.forms: dict[int, OpForm] = {}
        self.callees: dict[int, Callee] = {}
        self._texts, self._resolver = texts, Callees(mod)

    def read(self, call: ir.Call, ids: Mapping[int, NodeId]) -> ValueReading | None:
        """Read a call, or return None if irviz does not know its callee's class."""
        op = call.op
        key = op.__chandle__()
        if not isinstance(op, ir.Op):
            return self._read_direct_call(call, op, ids)
        form = self.forms.get(key)
        if form is None:
            form = self.forms[key] = _op_form(op)
        kind, operator, passing, is_pure = form
        arguments = call.args[:]
        attrs = self._texts.attributes(call.attrs)
        if passing is not None and arguments:
            called, *rest = arguments
            callee = self._resolver.resolve(called, operator)
            if callee is not None:
                if isinstance(called, ir.GlobalVar):
                    self.callees[called.__chandle__()] = callee
                if passing is Passing.TUPLED and rest and isinstance(rest[0], ir.Tuple):
                    rest = [*rest[0].fields[:], *rest[1:]]
                found = list(leaves(rest))
                if called.__chandle__() in ids:
                    found.insert(0, (CALLEE, called))
                name, resolution, _, structure = callee
                return ValueReading(
                    kind, found, name, resolution, operator, attrs, is_pure, structure
                )
        if passing is not None:  # its first argument names no function
            kind = NodeKind.OPERATOR
        return ValueReading(
            kind, list(leaves(arguments)), operator, None, operator, attrs, is_pure, operator
        )

    def _read_direct_call(
        self, call: ir.Call, op: ir.Expr, ids: Mapping[int, NodeId]
    ) -> ValueReading | None:
        callee = self._resolver.resolve(op, "")
        if callee is None:
            return None
        is_packed = isinstance(op, relax.ExternFunc)
        found = list(leaves(call.args[:]))
        if op.__chandle__() in ids:
            found.insert(0, (CALLEE, op))
        name, resolution, is_pure, structure = callee
        return ValueReading(
            NodeKind.CALL_PACKED if is_packed else NodeKind.CALL_FUNCTION,
            found,
            name,
            resolution,
            "",
            self._texts.attributes(call.attrs),
            is_pure and not is_packed,
            structure,
        )


def _op_form(op: ir.Op) -> OpForm:
    name = str(op.name)
    kind, passing = NAMED_CALLS.get(name, (NodeKind.OPERATOR, None))
    return OpForm(kind, name, passing, bool(op.get_attr("FPurity")))


def leaves(arguments: Sequence[ir.Expr], depth: int = 0) -> Iterator[tuple[Position, ir.Expr]]:
    """Yield the arguments with their positions; those in nested tuples have longer positions.

    A tuple without fields, or one that is nested too deeply, is itself a leaf.
    """
    for index, argument in enumerate(arguments):
        is_followed = isinstance(argument, ir.Tuple) and depth < MAX_NESTING
        fields = argument.fields[:] if is_followed else ()
        if fields:
            for position, leaf in leaves(fields, depth + 1):
                yield (index, *position), leaf
        else:
            yield (FIRST[index] if index < len(FIRST) else (index,)), argument
