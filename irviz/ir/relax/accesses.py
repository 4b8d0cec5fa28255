"""What calls of Relax do with the memory of their arguments.

TVM's purity does not tell: it calls operators that write over their arguments pure, and a check of
a type impure.
"""

from __future__ import annotations

from functools import lru_cache
from math import inf, prod

import tvm_ffi
from tvm import ir, relax, s_tir, tirx

from irviz.model.graph.access import PURE_UNKNOWN, UNKNOWN, VIEW, Access
from irviz.model.graph.memory_operators import KILLS, PLANNED_TENSORS, STORAGES

_NEW = Access(reads=())
_MAYBE_VIEW = Access(shares=(0,))  # a pass decides whether it copies
_FREE = Access(reads=(), frees=(0,))
_PRINT = Access(has_effect=True)
_TO_HEAP = Access(reads=(), writes=(1,))

ACCESSES: dict[str, Access] = {
    **dict.fromkeys(STORAGES, _NEW),
    **dict.fromkeys(KILLS, _FREE),
    **dict.fromkeys(
        (
            "relax.memory.view",
            "relax.memory.ensure_zero_offset",
            "relax.builtin.stop_lift_params",
            "vm.builtin.copy",
            "vm.builtin.ensure_zero_offset",
            "vm.builtin.reshape",
            "vm.builtin.tuple_getitem",
        ),
        VIEW,
    ),
    **dict.fromkeys(
        (
            "relax.expand_dims",
            "relax.flatten",
            "relax.hint_on_device",
            "relax.reshape",
            "relax.squeeze",
            "relax.to_vdevice",
            "vm.builtin.to_device",
        ),
        _MAYBE_VIEW,
    ),
    **dict.fromkeys(("relax.print", "relax.assert_op"), _PRINT),
    **dict.fromkeys(("vm.builtin.match_prim_value", "vm.builtin.match_shape"), _TO_HEAP),
    **dict.fromkeys(
        (
            "relax.null_value",
            "relax.shape_of",
            "relax.tensor_to_shape",
            "vm.builtin.alloc_shape_heap",
            "vm.builtin.check_func_info",
            "vm.builtin.check_prim_value_info",
            "vm.builtin.check_shape_info",
            "vm.builtin.check_string_info",
            "vm.builtin.check_tensor_info",
            "vm.builtin.check_tuple_info",
            "vm.builtin.null_value",
            "vm.builtin.shape_of",
        ),
        _NEW,
    ),
    **dict.fromkeys(
        (
            "vm.builtin.make_prim_value",
            "vm.builtin.make_shape",
            "vm.builtin.read_if_cond",
            "vm.builtin.tensor_to_shape",
        ),
        Access(),
    ),
    **dict.fromkeys(
        ("relax.make_closure", "vm.builtin.make_closure", "vm.builtin.make_tuple"),
        Access(reads=(), shares=None),
    ),
    **dict.fromkeys(
        ("relax.call_pure_packed", "relax.call_py_func", "relax.invoke_pure_closure"), PURE_UNKNOWN
    ),
}
"""By the name of an operator, or of a function that is called by name, if not the default."""

_TENSORS = frozenset((*PLANNED_TENSORS, "vm.builtin.alloc_tensor"))
_IN_PLACE = frozenset(("relax.call_tir_inplace", "relax.call_inplace_packed"))
_POINTERS = ("tirx.buffer_data", "tirx.address_of", "tirx.tvm_access_ptr")
_CALLS = ("tirx.call_extern", "tirx.tvm_call_packed", "tirx.tvm_call_cpacked")


def operator_access(operator: str, *, is_pure: bool) -> Access | None:
    """Return what calls of an operator do, None if they read arguments and make a new value."""
    return ACCESSES.get(operator, None if is_pure else UNKNOWN)


def call_access(call: ir.Call, operator: str, callee: str, default: Access | None) -> Access | None:
    """Return what a call does with its arguments.

    Args:
        operator: The name of the operator, "" for a direct call.
        callee: The name of the function that is called.
        default: What the operator does, or a function that is not known.
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
