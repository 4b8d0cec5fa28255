"""Find the values that a function can be called with: an index must stay inside of its tensor.

The ranges are found backwards, from what reads a value to the parameters that it comes from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

import tvm_ffi
from tvm import ir, relax, tirx

from irviz.ir.module_functions import drawable_function, function_named
from irviz.ir.node_ids import nested_bodies
from irviz.ir.relax_calls import NAMED_CALLS
from irviz.ir.symbolic_shapes import evaluate_dim, parameter_types, type_dims
from irviz.ir.tir_statements import parts_of
from irviz.model.graph.graph import NodeKind


class ValueRange(NamedTuple):
    """The values that an argument may have; its limits are included.

    `is_divisor` excludes 0, where an integer division ends the process.
    """

    low: float = -math.inf
    high: float = math.inf
    is_divisor: bool = False

    @property
    def few(self) -> ValueRange:
        """The values that are likely to stay inside after any arithmetic: 0, or 1 to 9."""
        if self.high == math.inf:
            return ValueRange(1, _UNKNOWN.high) if self.is_divisor else self
        return ValueRange(max(self.low, 0), max(self.low, 0), self.is_divisor)

    def before(self, operation: str, number: float) -> ValueRange | None:
        """Return the values that an operation with a number brings into the range, if known."""
        match operation:
            case "add":
                return self._replace(low=self.low - number, high=self.high - number)
            case "subtract":
                return self._replace(low=self.low + number, high=self.high + number)
            case "multiply" if number > 0:
                low, high = math.ceil(self.low / number), math.floor(self.high / number)
                return self._replace(low=low, high=max(low, high))
            case "floor_divide" if number > 0:
                return self._replace(low=self.low * number, high=self.high * number)
            case "mod" | "floor_mod" if self.low <= 0 < number <= self.high + 1:
                return ANY
        return None

    def meet(self, other: ValueRange) -> ValueRange:
        """Return the values in both ranges."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        return ValueRange(low, max(low, high), self.is_divisor or other.is_divisor)


ANY = ValueRange()
_DIVISOR = ValueRange(is_divisor=True)
_UNKNOWN = ValueRange(0, 9)
"""The values of an argument that something unknown reads."""
_WHOLE = ValueRange(-1000, 1000)
"""The values of a float that becomes an integer."""
_MOST_CALLS = 8
_OPERATIONS = {
    tirx.Add: "add",
    tirx.Sub: "subtract",
    tirx.Mul: "multiply",
    tirx.FloorDiv: "floor_divide",
    tirx.FloorMod: "floor_mod",
}
_Dims: TypeAlias = Mapping[str, int]
_Uses: TypeAlias = Iterator[tuple[ir.Expr, ValueRange]]

_MOVING = """
    astype broadcast_to concat expand_dims flatten layout_transform permute_dims reshape split
    squeeze stack repeat tile flip meshgrid strided_slice stop_lift_params hint_on_device
    to_vdevice wrap_param maximum minimum clip abs memory.view where sort dynamic_strided_slice
    take gather_elements gather_nd index_tensor index_put scatter_elements scatter_nd
    slice_scatter ensure_zero_offset memory.ensure_zero_offset
"""
_MOVES = frozenset(_MOVING.split())
"""Operators whose results are numbers of their operands."""
_BOUNDED = frozenset(
    ["argmax", "argmin", "argsort", "nonzero", "one_hot", "shape_of", "size", "bucketize"]
)
"""Operators whose results are in a range whatever their operands are."""
_DIVISIONS = frozenset(["floor_divide", "floor_mod", "mod", "divide"])
_LIMITED = {
    **dict.fromkeys(("left_shift", "right_shift"), ValueRange(0, 7)),
    **dict.fromkeys(("repeat", "reshape", "full", "tensor_to_shape"), ValueRange(1, 8)),
}
"""The values of the integers behind the first operand of an operator: bits and sizes."""
_EXTERNAL = frozenset(
    name.removeprefix("relax.") for name, kind in NAMED_CALLS.items() if kind != NodeKind.CALL_TIR
)


def argument_ranges(mod: ir.IRModule, function: str, dims: _Dims) -> dict[str, ValueRange]:
    """Return the ranges of a function's parameters, by name; those of any value are left out.

    What leads to an index through arithmetic that is not followed is 0. `dims` are the sizes of
    symbolic dimensions, by name.
    """
    called = drawable_function(mod, function)
    found = _Reader(mod, dims).parameters(called, ANY, 0)
    named = zip(parameter_types(called), found, strict=True)
    return {name: one for name, one in named if one != ANY}


class _Reader:
    """Reads the ranges of the functions of a module."""

    def __init__(self, mod: ir.IRModule, dims: _Dims) -> None:
        self._mod, self._dims = mod, dims

    def parameters(self, function: ir.BaseFunc, wanted: ValueRange, depth: int) -> list[ValueRange]:
        """Return the ranges of the parameters if those of the results are `wanted`."""
        if isinstance(function, tirx.PrimFunc):
            return self._of_prim_func(function, wanted)
        ranges: dict[ir.Var, ValueRange] = {}
        self._sequence(function.body, wanted, ranges, depth)
        return [ranges.get(param, ANY) for param in function.params]

    def _sequence(
        self, body: ir.Expr, wanted: ValueRange, ranges: dict[ir.Var, ValueRange], depth: int
    ) -> None:
        """Add the ranges of the variables that a body reads."""
        if not isinstance(body, relax.SeqExpr):
            return _narrow(ranges, body, wanted)
        _narrow(ranges, body.body, wanted)
        for block in list(body.blocks)[::-1]:
            for binding in list(block.bindings)[::-1]:
                own, value = ranges.get(binding.var, ANY), binding.value
                if isinstance(value, relax.If | relax.SeqExpr):
                    for _, _, inner in nested_bodies(value):
                        self._sequence(inner, own, ranges, depth)
                elif isinstance(value, ir.Call):
                    for operand, limits in self._operands(value, own, ranges, depth):
                        _narrow(ranges, operand, limits)
                else:
                    _narrow(ranges, value, own)
        return None

    def _operands(
        self, call: ir.Call, wanted: ValueRange, ranges: Mapping[ir.Var, ValueRange], depth: int
    ) -> _Uses:
        if isinstance(call.op, ir.GlobalVar):
            written = [ranges[one] for one in call.args if one in ranges]
            for one in written:  # a lowered call writes some of its arguments
                wanted = wanted.meet(one)
            yield from self._callee(call.op, list(call.args), wanted, depth)
            return
        name = call.op.name.removeprefix("relax.") if isinstance(call.op, ir.Op) else ""
        if name.startswith("call_tir") and isinstance(call.args[0], ir.GlobalVar):
            yield from self._callee(call.args[0], list(call.args[1].fields), wanted, depth)
        elif name in _EXTERNAL or not name:
            callee = getattr(call.args[0], "global_symbol", "") if call.args else ""
            own = function_named(self._mod, callee) if callee else None
            given = call.args[1:] if callee else call.args
            tupled = (one.fields if isinstance(one, relax.Tuple) else [one] for one in given)
            fields = [one for each in tupled for one in each]
            if isinstance(own, tirx.PrimFunc):
                yield from zip(fields, self._of_prim_func(own, wanted), strict=False)
            else:
                yield from ((one, _UNKNOWN) for one in fields if _is_integer(one))
        else:
            yield from self._indices(name, call)
            yield from self._others(name, call, wanted)

    def _others(self, name: str, call: ir.Call, wanted: ValueRange) -> _Uses:
        """Yield the ranges of operands that follow from that of an operator's result."""
        if name in _DIVISIONS and _is_integer(call):
            yield call.args[1], _DIVISOR
        if name == "astype" and _is_integer(call) and not _is_integer(call.args[0]):
            yield call.args[0], _WHOLE
        if name in _BOUNDED or wanted == ANY:
            return
        number = _constant(call.args[-1]) if call.args else None
        if name in _MOVES:
            indices = [id(operand) for operand, _ in self._indices(name, call)]
            chosen = call.args[1:] if name == "where" else call.args
            yield from ((one, wanted) for one in chosen if id(one) not in indices)
        elif number is not None and (before := wanted.before(name, number)) is not None:
            yield call.args[0], before
        else:
            yield from ((one, wanted.few) for one in call.args)

    def _indices(self, name: str, call: ir.Call) -> _Uses:
        """Yield the operands of an operator that are indices, and their ranges."""
        args, attrs = call.args, call.attrs
        sizes = self._sizes(args[0]) if args else []
        match name:
            case "take":
                axis = attrs.axis
                size = math.prod(sizes) if axis is None else _at(sizes, int(axis))
                yield args[1], ValueRange(0, size - 1)
            case "gather_elements" | "scatter_elements":
                yield args[1], ValueRange(0, _at(sizes, int(attrs.axis)) - 1)
            case "gather_nd" | "scatter_nd" | "index_tensor" | "index_put":
                yield args[1], ValueRange(0, min(sizes, default=1) - 1)
            case "dynamic_strided_slice":
                half = min(sizes, default=1) // 2
                yield args[1], ValueRange(0, half)
                yield args[2], ValueRange(half, 2 * half)
                yield args[3], ValueRange(1, 1)
            case "nn.nll_loss" | "nn.cross_entropy_with_logits" if len(args) > 1:
                yield args[1], ValueRange(0, _at(sizes, min(1, len(sizes) - 1)) - 1)
            case _ if name in _LIMITED:
                yield from ((one, _LIMITED[name]) for one in args[1:] if _is_integer(one))
            case _ if name.startswith(("vision.", "nn.attention_var_len", "grad.", "ccl.")):
                yield from ((one, ValueRange(0, 1)) for one in args if _is_integer(one))

    def _callee(
        self, gvar: ir.GlobalVar, args: list[ir.Expr], wanted: ValueRange, depth: int
    ) -> _Uses:
        function = function_named(self._mod, gvar.name_hint)
        if function is None or depth > _MOST_CALLS:
            yield from ((one, _UNKNOWN) for one in args)
        else:
            yield from zip(args, self.parameters(function, wanted, depth + 1), strict=False)

    def _of_prim_func(self, function: tirx.PrimFunc, wanted: ValueRange) -> list[ValueRange]:
        stores = parts_of(function.body, tirx.BufferStore)
        written = {one.buffer for one in stores} & {*function.params}
        ranges = dict.fromkeys(written, wanted) if wanted != ANY else {}
        looks = self._looks(ranges)
        for _ in range(_MOST_CALLS):  # also through buffers that it writes itself
            before = dict(ranges)
            tvm_ffi.structural_walk(function.body, looks)
            if ranges == before:
                break
        return [ranges.get(param, ANY) for param in function.params]

    def _looks(self, ranges: dict[ir.Var, ValueRange]) -> list[tuple[type, Callable[..., None]]]:
        """Return what to do with the parts of a PrimFunc to narrow the ranges of buffers."""

        def indexed(buffer: ir.Var, indices: list[ir.Expr]) -> None:
            for index, size in zip(indices, buffer.ty.shape, strict=False):
                limit = ValueRange(0, (evaluate_dim(size, self._dims) or 1) - 1)
                _narrow_loads(ranges, index, limit)

        def divided(division: tirx.FloorDiv) -> None:
            if _is_integer(division):
                _narrow_loads(ranges, division.b, _DIVISOR, whole=True)

        def cast(cast: tirx.Cast) -> None:
            if "int" in str(cast.ty.dtype) and "float" in str(cast.value.ty.dtype):
                _narrow_loads(ranges, cast.value, _WHOLE, whole=True)

        def stored(store: tirx.BufferStore) -> None:
            indexed(store.buffer, store.indices)
            if store.buffer in ranges:
                _narrow_loads(ranges, store.value, ranges[store.buffer])

        divisions = (tirx.FloorDiv, tirx.FloorMod, tirx.Div, tirx.Mod)
        return [
            (ir.TensorLoad, lambda load: indexed(load.source, load.indices)),
            (tirx.BufferStore, stored),
            (tirx.For, lambda loop: _narrow_loads(ranges, loop.extent, ValueRange(0, 8))),
            (tirx.Cast, cast),
            *((one, divided) for one in divisions),
        ]

    def _sizes(self, value: ir.Expr) -> list[int]:
        """Return the shape of a value, with 1 for an unknown size."""
        return [evaluate_dim(dim, self._dims) or 1 for dim in type_dims(value.ty) or ()]


def _narrow(ranges: dict[ir.Var, ValueRange], value: ir.Expr, limits: ValueRange) -> None:
    """Narrow the range of a variable, or of those of a tuple."""
    if limits == ANY:
        return
    if isinstance(value, ir.Var):
        ranges[value] = ranges.get(value, ANY).meet(limits)
    elif isinstance(value, relax.TupleGetItem):
        _narrow(ranges, value.tuple_value, limits)
    elif isinstance(value, relax.Tuple):
        for field in value.fields:
            _narrow(ranges, field, limits)


def _narrow_loads(
    ranges: dict[ir.Var, ValueRange], value: ir.Expr, limits: ValueRange, *, whole: bool = False
) -> None:
    """Narrow the ranges of the buffers that an expression reads.

    With `whole` they have these values themselves, whatever the expression makes of them.
    """
    while not whole and not isinstance(value, ir.TensorLoad):
        operation, number = _OPERATIONS.get(type(value), ""), _constant(getattr(value, "b", None))
        before = limits.before(operation, number) if number is not None else None
        if isinstance(value, tirx.Cast):
            value = value.value
        elif before is not None:
            value, limits = value.a, before
        else:
            limits, whole = limits.few, True
    loads = parts_of(value, ir.TensorLoad)
    inner = {id(one.source) for load in loads for one in parts_of(load.indices, ir.TensorLoad)}
    for load in loads:
        if id(load.source) not in inner:
            _narrow(ranges, load.source, limits)


def _is_integer(value: ir.Expr) -> bool:
    return "int" in str(getattr(value.ty, "dtype", None) or "")


def _constant(value: ir.Expr | None) -> float | None:
    """Return the number that a constant is, None for any other value."""
    if isinstance(value, ir.GenericConst) and not value.value.shape:
        return float(value.value.numpy())
    return float(value.value) if isinstance(value, tirx.IntImm) else None


def _at(sizes: list[int], axis: int) -> int:
    return sizes[axis] if -len(sizes) <= axis < len(sizes) else 1
