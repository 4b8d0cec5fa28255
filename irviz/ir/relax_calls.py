"""Reading calls: the callee, its arguments, and the operators that call their first argument."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import inf, prod
from typing import Any, NamedTuple

import tvm
import tvm_ffi
from tvm import ir, relax, s_tir, tirx

from irviz.ir.framework_calls import computed_by
from irviz.ir.module_functions import function_named, python_functions
from irviz.ir.node_ids import MAX_NESTING
from irviz.ir.tir_statements import parts_of
from irviz.ir.type_and_expression_labels import attributes, once_for_equal, type_label
from irviz.model.graph.graph import (
    CALLEE,
    PURE_UNKNOWN,
    UNKNOWN,
    VIEW,
    Access,
    NodeId,
    NodeKind,
    Position,
    Resolution,
)
from irviz.model.graph.memory_accesses import KILLS, PLANNED_TENSORS, STORAGES

# An Array's own methods call these, and spend time on slices and negative indices.
_size, _item = tvm.get_global_func("ffi.ArraySize"), tvm.get_global_func("ffi.ArrayGetItem")


NAMED_CALLS: dict[str, NodeKind] = {
    "relax.call_tir": NodeKind.CALL_TIR,
    "relax.call_tir_inplace": NodeKind.CALL_TIR,
    "relax.call_tir_with_grad": NodeKind.CALL_TIR,
    "relax.dist.call_tir_local_view": NodeKind.CALL_TIR,
    "relax.vm.call_tir_dyn": NodeKind.CALL_TIR,
    "relax.call_dps_packed": NodeKind.CALL_DPS_PACKED,
    "relax.call_pure_packed": NodeKind.CALL_PACKED,
    "relax.call_inplace_packed": NodeKind.CALL_PACKED,
    "relax.call_builtin_with_ctx": NodeKind.CALL_PACKED,
    "relax.call_py_func": NodeKind.CALL_PACKED,
    "relax.invoke_closure": NodeKind.CALL_FUNCTION,
    "relax.invoke_pure_closure": NodeKind.CALL_FUNCTION,
}
"""The operators that call their first argument. The tests compare this with TVM's registry."""
SPREAD = ("relax.call_pure_packed", "relax.call_inplace_packed")
"""Those that take the callee's arguments one by one, and not as a tuple."""

_WRITES_ARGUMENTS = ("", "relax.vm.call_tir_dyn")
"""A direct call, and the operator, of a PrimFunc that is given what it writes."""


def callee_name(callee: ir.Expr) -> str:
    """Return the name of a GlobalVar or ExternFunc, or "" for any other callee."""
    if type(callee) is ir.GlobalVar:
        return str(callee.name_hint)
    return str(callee.global_symbol) if type(callee) is relax.ExternFunc else ""


def with_callees(mod: ir.IRModule, names: Iterable[str]) -> dict[ir.GlobalVar, ir.BaseFunc]:
    """Return functions of a module, and all that they call, by a GlobalVar or by name."""
    found: dict[ir.GlobalVar, ir.BaseFunc] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in mod and (gvar := mod.get_global_var(name)) not in found:
            function = found[gvar] = mod[gvar]
            kinds = (ir.GlobalVar, relax.ExternFunc)
            waiting += [callee_name(one) for kind in kinds for one in parts_of(function, kind)]
    return found


def is_destination_passing(value: ir.Expr) -> bool:
    """Tell whether a value is a call_tir or a call_dps_packed."""
    is_op_call = isinstance(value, ir.Call) and isinstance(value.op, ir.Op)
    return is_op_call and value.op.name in ("relax.call_tir", "relax.call_dps_packed")


def resolve_registered(name: str) -> Resolution:
    """Tell whether a function of this name is registered with TVM, or a framework computes it."""
    is_registered = computed_by(name) or tvm.get_global_func(name, allow_missing=True) is not None
    return Resolution.LIBRARY if is_registered else Resolution.UNKNOWN


class Callee(NamedTuple):
    """A callee; `structure` is equal for functions that do the same under different names."""

    name: str
    resolution: Resolution | None
    is_pure: bool
    structure: int | str


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

    def __init__(self, mod: ir.IRModule) -> None:
        self._mod = mod
        self._attributes = once_for_equal(attributes)
        self._callees: dict[str, Callee] = {}
        self._operators: dict[int, tuple[str, NodeKind, bool, Access | None]] = {}

    def read(self, call: ir.Call, ids: Mapping[int, NodeId]) -> ValueReading | None:
        """Read a call of Relax; return None for any other, and if the callee's class is unknown."""
        op, arguments = call.op, items(call.args)
        attrs = self._attributes(call.attrs)
        if type(op) is ir.Op:
            operator, kind, is_pure, access = self._operator(op)
            is_call = operator in NAMED_CALLS
            callee = self.callee(arguments[0], operator) if is_call and arguments else None
            if callee is None:
                if not operator.startswith("relax."):  # such as T.if_then_else(n > 1, n, m)
                    return None
                if is_call:  # its first argument names no function
                    kind = NodeKind.OPERATOR
                found, access = leaves(arguments), call_access(call, operator, "", access)
                name = operator
                return ValueReading(kind, found, name, None, name, attrs, is_pure, name, access)
            called, *arguments = arguments
            if operator not in SPREAD and arguments and type(arguments[0]) is ir.Tuple:
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

    def _operator(self, op: ir.Op) -> tuple[str, NodeKind, bool, Access | None]:
        """Return an operator's name, its kind of node, whether it is pure, and what it does."""
        key = op.__chandle__()
        if key not in self._operators:
            name = str(op.name)
            kind = NAMED_CALLS.get(name, NodeKind.OPERATOR)
            is_pure = bool(op.get_attr("FPurity"))
            access = ACCESSES.get(name, None if is_pure else UNKNOWN)
            self._operators[key] = name, kind, is_pure, access
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
        is_followed = type(argument) is ir.Tuple and depth < MAX_NESTING
        if is_followed and (fields := items(argument.fields)):
            found += [((index, *at), leaf) for at, leaf in leaves(fields, depth + 1)]
        else:
            found.append(((index,), argument))
    return found


# --- What calls of Relax do with the memory of their arguments -----------------------------------
#
# TVM's purity does not tell: it calls operators that write over their arguments pure, and a
# check of a type impure.


_NAMES: Sequence[tuple[Access, str]] = (
    (Access(reads=(), frees=(0,)), " ".join(KILLS)),
    (
        VIEW,
        "relax.memory.view relax.memory.ensure_zero_offset relax.builtin.stop_lift_params "
        "vm.builtin.copy vm.builtin.ensure_zero_offset vm.builtin.reshape vm.builtin.tuple_getitem",
    ),
    (
        Access(shares=(0,)),  # a pass decides whether it copies
        "relax.expand_dims relax.flatten relax.hint_on_device relax.reshape relax.squeeze "
        "relax.to_vdevice vm.builtin.to_device",
    ),
    (Access(has_effect=True), "relax.print relax.assert_op"),
    (Access(reads=(), writes=(1,)), "vm.builtin.match_prim_value vm.builtin.match_shape"),
    (
        Access(reads=()),
        f"{' '.join(STORAGES)} "
        "relax.null_value relax.shape_of relax.tensor_to_shape vm.builtin.alloc_shape_heap "
        "vm.builtin.check_func_info vm.builtin.check_prim_value_info vm.builtin.check_shape_info "
        "vm.builtin.check_string_info vm.builtin.check_tensor_info vm.builtin.check_tuple_info "
        "vm.builtin.null_value vm.builtin.shape_of",
    ),
    (
        Access(),
        "vm.builtin.make_prim_value vm.builtin.make_shape vm.builtin.read_if_cond "
        "vm.builtin.tensor_to_shape",
    ),
    (
        Access(reads=(), shares=None),
        "relax.make_closure vm.builtin.make_closure vm.builtin.make_tuple",
    ),
    (PURE_UNKNOWN, "relax.call_pure_packed relax.call_py_func relax.invoke_pure_closure"),
)
ACCESSES = {name: access for access, names in _NAMES for name in names.split()}
"""By the name of an operator, or of a function that is called by name, if not the default."""

_TENSORS = frozenset((*PLANNED_TENSORS, "vm.builtin.alloc_tensor"))
_IN_PLACE = frozenset(("relax.call_tir_inplace", "relax.call_inplace_packed"))
_POINTERS = ("tirx.buffer_data", "tirx.address_of", "tirx.tvm_access_ptr")
_CALLS = ("tirx.call_extern", "tirx.tvm_call_packed", "tirx.tvm_call_cpacked")


def call_access(call: ir.Call, operator: str, callee: str, default: Access | None) -> Access | None:
    """Return what a call does with its arguments.

    `operator` is "" for a direct call, and `default` is what the operator does, or a function that
    is not known.
    """
    if operator in _IN_PLACE:
        return _in_place(call)
    if operator in _TENSORS or callee in _TENSORS:
        return Access(reads=(), shares=(0,), span=_span(call))
    return ACCESSES.get(callee, default)


def _in_place(call: ir.Call) -> Access:
    indices = getattr(call.attrs, "inplace_indices", None)
    if indices is None:  # the call is malformed
        return UNKNOWN
    written = [int(index) for index in indices]
    given = tuple(index for index in written if index >= 0)
    is_tuple = isinstance(call.ty, ir.TupleType)
    fields = tuple(at for at, index in enumerate(written) if index >= 0) if is_tuple else ()
    return Access(writes=given, shares=given, fields=fields)


def _span(call: ir.Call) -> tuple[float, float]:
    """Return the bytes of a tensor in its storage, from 0 up to infinity if they are not known."""
    offset = next((arg for arg in call.args if isinstance(arg, tirx.IntImm)), None)
    shape = next((arg for arg in call.args if isinstance(arg, relax.ShapeExpr)), None)
    dtype = next((arg.value for arg in call.args if isinstance(arg, ir.GenericConst)), None)
    itemsize = getattr(dtype, "itemsize", None)
    if offset is None or shape is None or itemsize is None:
        return 0, inf
    dims = [dim.value if isinstance(dim, tirx.IntImm) else inf for dim in shape.values]
    return int(offset.value), offset.value + itemsize * prod(dims)


@lru_cache(maxsize=1024)
def prim_func_access(function: tirx.PrimFunc) -> Access:
    """Return which arguments a PrimFunc reads and writes; a call may give more of them."""
    walk = _Walk(function)
    read, written = (tuple(sorted(found)) for found in (walk.read, walk.written))
    return Access(read, written, has_effect=walk.has_effect)


class _Walk:
    """Collects the parameters of a PrimFunc that its body reads and writes."""

    def __init__(self, function: tirx.PrimFunc) -> None:
        self.read: set[int] = set()
        self.written: set[int] = set()
        self.has_effect = False
        self._positions = {
            param: index
            for index, param in enumerate(function.params)
            if not isinstance(param.ty, ir.PrimType)  # a number is no memory
        }
        steps = [
            (s_tir.SBlock, self._block),
            (tirx.DeclBuffer, self._declaration),
            (ir.Call, self._call),
            (tirx.BufferStore, lambda one: self._add(one.buffer, self.written)),
            (ir.TensorLoad, lambda one: self._add(one.source, self.read)),
        ]
        tvm_ffi.structural_walk(function.body, steps, order="pre")

    def _add(self, buffer: object, *kinds: set[int]) -> None:
        position = self._positions.get(buffer) if isinstance(buffer, ir.Var) else None
        if position is not None:
            for kind in kinds:
                kind.add(position)

    def _block(self, block: s_tir.SBlock) -> None:
        for match in block.match_buffers:
            self._alias(match.buffer, match.source.source)

    def _declaration(self, declared: tirx.DeclBuffer) -> object:
        data = declared.data
        for source in data.args if isinstance(data, ir.Call) else [data]:
            self._alias(declared.buffer, source)
        return tvm_ffi.WalkResult.SKIP  # the pointer goes nowhere else

    def _alias(self, buffer: ir.Var, source: object) -> None:
        if isinstance(source, ir.Var) and source in self._positions:
            self._positions[buffer] = self._positions[source]

    def _call(self, call: ir.Call) -> None:
        """Count a buffer that is given to a call as read and written, and a pointer to it."""
        name = call.op.name if isinstance(call.op, ir.Op) else ""
        self.has_effect |= name in _CALLS
        for argument in call.args:
            if name in _POINTERS and isinstance(argument, ir.TensorLoad):
                argument = argument.source
            self._add(argument, self.read, self.written)
